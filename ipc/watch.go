package ipc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// maxFrame bounds one event in bytes: an entry has at most 65,535.
const maxFrame = 256 << 10

// maxWait is the longest pause between two tries to reconnect.
const maxWait = 5 * time.Second

// Watch yields the entries after since (nil: from now on) of the given kinds
// (none: all; families like turn.* count), each once and in order. When the
// stream breaks it yields the reason as an error and goes on by itself where it
// stopped; it ends when ctx does, when the caller stops, or after a refusal
// (*Problem with a 4xx status, *Foreign) that trying again would not change.
func (c *Client) Watch(ctx context.Context, since *uint64, kinds ...string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var at *uint64
		if since != nil {
			v := *since
			at = &v
		}
		pause := c.wait
		for {
			w := watcher{c: c, kinds: kinds, at: at}
			err := w.run(ctx, yield)
			at = w.at
			if w.stopped || ctx.Err() != nil {
				return
			}
			if !yield(Entry{}, err) || permanent(err) {
				return
			}
			if w.got {
				pause = c.wait
			}
			t := time.NewTimer(pause)
			select {
			case <-ctx.Done():
				t.Stop()
				return
			case <-t.C:
			}
			pause = min(2*pause, maxWait)
		}
	}
}

func permanent(err error) bool {
	var (
		p *Problem
		f *Foreign
	)
	return errors.As(err, &p) && p.Status/100 == 4 || errors.As(err, &f)
}

// ErrLagged: the reader was too slow and was let go; Watch goes on by itself.
var ErrLagged = errors.New("the event stream lagged")

// watcher is one connection of a Watch.
type watcher struct {
	c       *Client
	kinds   []string
	at      *uint64 // everything up to here has been seen
	got     bool    // the connection said something
	stopped bool    // the caller stopped
}

func (w *watcher) run(ctx context.Context, yield func(Entry, error) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q := url.Values{}
	if len(w.kinds) > 0 {
		q.Set("kinds", strings.Join(w.kinds, ","))
	}
	if w.at != nil {
		q.Set("since", strconv.FormatUint(*w.at, 10))
	}
	resp, err := w.c.send(ctx, http.MethodGet, "/v1/events", q, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	// The server says something every 15 s: longer silence is a dead peer.
	var silent atomic.Bool
	silence := time.AfterFunc(w.c.idle, func() { silent.Store(true); cancel() })
	defer silence.Stop()
	frames := newFrames(resp.Body)
	for {
		f, err := frames.next()
		if silent.Load() {
			err = fmt.Errorf("nothing was heard for %s", w.c.idle)
		}
		if err != nil {
			return w.c.lost(context.WithoutCancel(ctx), err)
		}
		silence.Reset(w.c.idle)
		w.got = true
		switch {
		case f.beat != nil:
			w.at = f.beat
		case f.event == "lagged":
			return ErrLagged
		case f.event == "problem":
			return frameProblem(f)
		case f.id != nil:
			var e Entry
			if err := json.Unmarshal(f.data, &e); err != nil {
				return fmt.Errorf("read event %d: %w", *f.id, err)
			}
			if e.Seq != *f.id {
				return fmt.Errorf("read event %d: it calls itself %d", *f.id, e.Seq)
			}
			if w.at != nil && e.Seq <= *w.at {
				continue // seen before
			}
			w.at = f.id
			silence.Stop() // the caller may take its time with it
			if !yield(e, nil) {
				w.stopped = true
				return nil
			}
			silence.Reset(w.c.idle)
		}
	}
}

// frame is one event of a stream, or a heartbeat.
type frame struct {
	id    *uint64
	event string
	data  []byte
	beat  *uint64
}

// frames reads Server-Sent Events as our server writes them.
type frames struct{ r *bufio.Reader }

func newFrames(r io.Reader) *frames { return &frames{bufio.NewReaderSize(r, 32<<10)} }

func (fr *frames) next() (frame, error) {
	var f frame
	size := 0
	for {
		line, err := fr.line(&size)
		if err != nil {
			return frame{}, err
		}
		if len(line) == 0 {
			if f.event != "" || f.beat != nil {
				return f, nil
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "":
			if n, err := strconv.ParseUint(strings.TrimPrefix(string(value), "hb "), 10, 53); err == nil {
				f.beat = &n
			}
		case "id":
			n, err := strconv.ParseUint(string(value), 10, 53)
			if err != nil {
				return frame{}, fmt.Errorf("read event: bad id: %w", err)
			}
			f.id = &n
		case "event":
			f.event = string(value)
		case "data":
			f.data = append(f.data, value...)
		}
	}
}

// line reads one line without its end; the sizes of a frame's lines add up in size.
func (fr *frames) line(size *int) ([]byte, error) {
	var out []byte
	for {
		part, err := fr.r.ReadSlice('\n')
		*size += len(part)
		if *size > maxFrame {
			return nil, fmt.Errorf("read event: more than %d bytes", maxFrame)
		}
		out = append(out, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(out, "\r\n"), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}
