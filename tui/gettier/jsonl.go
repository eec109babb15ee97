package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxJSONLine bounds one line of input; a longer one is an error of its own and
// is skipped to its end.
const maxJSONLine = 64 << 20

var errLongLine = fmt.Errorf("longer than %d bytes", maxJSONLine)

// badLine is what stands in the output for a line that could not be read.
type badLine struct {
	Error string `json:"error"`
	Line  int    `json:"line"` // from 1
}

// jsonLines answers each line of in with one line on out. A line that each
// refuses is answered by a badLine and counted; the rest goes on. What is ready
// is written out whenever no more input waits, so that another program can hold
// a conversation. The error is that of reading or writing.
func jsonLines(in io.Reader, out io.Writer, each func(line []byte) (any, error)) (bad int, err error) {
	r := bufio.NewReaderSize(in, 64<<10)
	w := bufio.NewWriterSize(out, 64<<10)
	_, tty := terminal(out)
	var answer bytes.Buffer
	enc := json.NewEncoder(&answer)
	enc.SetEscapeHTML(false)
	var line []byte
	for n := 1; ; n++ {
		if r.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return bad, fmt.Errorf("write answers: %w", err)
			}
		}
		line, err = readLine(r, line[:0])
		if errors.Is(err, io.EOF) {
			break
		}
		var v any
		if err == nil {
			v, err = each(line)
		} else if !errors.Is(err, errLongLine) {
			return bad, fmt.Errorf("read line %d: %w", n, err)
		}
		if err != nil {
			bad++
			v = badLine{Error: err.Error(), Line: n}
		}
		answer.Reset()
		if err := enc.Encode(v); err != nil {
			return bad, fmt.Errorf("write answer %d: %w", n, err)
		}
		b := answer.Bytes()
		if tty {
			b = append(escapeJSON(b[:len(b)-1]), '\n')
		}
		if _, err := w.Write(b); err != nil {
			return bad, fmt.Errorf("write answer %d: %w", n, err)
		}
	}
	if err := w.Flush(); err != nil {
		return bad, fmt.Errorf("write answers: %w", err)
	}
	return bad, nil
}

// readLine appends the next line without its end to buf. io.EOF means that
// there is none; a last line without an end is one.
func readLine(r *bufio.Reader, buf []byte) ([]byte, error) {
	long, some := false, false
	for {
		part, err := r.ReadSlice('\n')
		some = some || len(part) > 0
		if len(buf)+len(part) > maxJSONLine {
			long = true
		}
		if !long {
			buf = append(buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !(errors.Is(err, io.EOF) && some):
			return buf, err
		case long:
			return buf, errLongLine
		}
		return bytes.TrimRight(buf, "\r\n"), nil
	}
}

// strictJSON decodes exactly one JSON object; numbers keep their spelling.
func strictJSON(line []byte, into any) error {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return errors.New("an empty line")
	}
	if line[0] != '{' {
		return errors.New("not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("not read as JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data after the JSON object")
	}
	return nil
}

// refusedLines is the end of a run in which some lines could not be read.
func refusedLines(bad int) error {
	if bad == 0 {
		return nil
	}
	return &exit{code: exitFound, err: fmt.Errorf("%d of the lines could not be read: their answers say why", bad)}
}
