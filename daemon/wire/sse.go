package wire

import (
	"bytes"
	"unicode/utf8"
)

// Event is one server-sent event, or a stretch of comments, with its exact bytes.
type Event struct {
	Raw  []byte // with the blank line that ends it
	Name string // of the event field
	Data []byte // of all data fields, joined by newlines
	// HasData reports a data field, be it empty.
	HasData bool
}

// Splitter cuts a byte stream into events. Lines end in LF or CRLF; a bare CR is
// refused, since clients disagree on whether it ends a line.
type Splitter struct {
	buf  []byte // not yet returned
	line int    // start of the first line that is not complete
	scan int    // how far that line has been searched for its end
}

// maxEvent bounds one event, in bytes: a whole answer may come as one.
const maxEvent = 32 << 20

// Feed takes bytes as they arrive and returns the events that they complete. The
// events' bytes are their own.
func (s *Splitter) Feed(b []byte) ([]Event, error) {
	s.buf = append(s.buf, b...)
	var out []Event
	start := 0
	for {
		n := bytes.IndexByte(s.buf[s.scan:], '\n')
		if n < 0 {
			break
		}
		line := s.buf[s.line : s.scan+n]
		s.scan += n + 1
		s.line = s.scan
		if len(line) > 0 && line[len(line)-1] == '\r' {
			line = line[:len(line)-1]
		}
		if len(line) > 0 {
			continue
		}
		e, err := parseEvent(bytes.Clone(s.buf[start:s.scan]))
		if err != nil {
			s.drop(start)
			return out, err
		}
		out = append(out, e)
		start = s.scan
	}
	s.scan = len(s.buf)
	s.drop(start)
	if len(s.buf) > maxEvent {
		return out, Unreadablef("an event of more than %d bytes", maxEvent)
	}
	return out, nil
}

// drop forgets what has been returned.
func (s *Splitter) drop(n int) {
	s.buf = s.buf[:copy(s.buf, s.buf[n:])]
	s.line -= n
	s.scan -= n
}

// Rest reports whether bytes of an unfinished event are waiting.
func (s *Splitter) Rest() bool { return len(s.buf) > 0 }

func parseEvent(raw []byte) (Event, error) {
	e := Event{Raw: raw}
	if !utf8.Valid(raw) {
		return e, Unreadablef("invalid UTF-8 in an event")
	}
	rest := bytes.TrimPrefix(raw, []byte("\xEF\xBB\xBF"))
	multi := false
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if bytes.IndexByte(line, '\r') >= 0 {
			return e, Unreadablef("a carriage return inside a line of an event")
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "event":
			if e.Name != "" {
				return e, Unreadablef("two names on one event")
			}
			e.Name = string(value)
		case "data":
			switch {
			case !e.HasData:
				e.Data, e.HasData = value, true
			case !multi:
				multi = true
				e.Data = append(append(bytes.Clone(e.Data), '\n'), value...)
			default:
				e.Data = append(append(e.Data, '\n'), value...)
			}
		}
	}
	return e, nil
}

// AppendEvent appends an event of that name ("" for none) with one line of data.
// A line break in data can only be white space of its JSON and becomes a space.
func AppendEvent(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(append(append(dst, "event: "...), name...), '\n')
	}
	dst = append(dst, "data: "...)
	if bytes.IndexByte(data, '\n') >= 0 {
		data = bytes.ReplaceAll(data, []byte{'\n'}, []byte{' '})
	}
	return append(append(dst, data...), "\n\n"...)
}
