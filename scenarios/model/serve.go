package model

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// format is one wire format: bytes to a view, a reply to bytes.
type format interface {
	read(body []byte) (*view, error)
	// whole is the complete answer.
	whole(v *view, a answer) any
	// events are the answer's stream, one complete event each, in pieces as a
	// provider sends them.
	events(v *view, a answer) []string
	fault(message string) any
}

// answer is a reply with what the format needs around it.
type answer struct {
	reply
	id      string
	name    string // scripted:<policy>
	created int64
	in, out int // tokens
	cached  int // of in
}

func readAll(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	return body, nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the client is gone: nobody to tell
}

// tokens is a rough count: four bytes a token, as is usual for English text.
func tokens(s string) int { return (len(s) + 3) / 4 }

func (m *Model) serve(w http.ResponseWriter, r *http.Request, f format) {
	body, err := readAll(r.Body)
	if err != nil {
		writeJSON(w, http.StatusRequestEntityTooLarge, f.fault(err.Error()))
		return
	}
	v, err := f.read(body)
	if err != nil {
		writeJSON(w, http.StatusBadRequest, f.fault(err.Error()))
		return
	}
	rep, policy := m.answer(v)
	a := answer{reply: rep, name: "scripted:" + string(policy), created: time.Now().Unix(),
		in: tokens(v.raw), out: tokens(rep.text), cached: tokens(m.cached(v.raw))}
	for _, c := range rep.calls {
		a.out += tokens(c.args)
	}
	a.id = fmt.Sprintf("scripted-%s-%d", policy, m.answers.Add(1))
	dying := policy == Dies && !v.asksToDeclare()
	if !v.stream {
		if dying {
			cutShort(w, f.whole(v, a))
			return
		}
		writeJSON(w, http.StatusOK, f.whole(v, a))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	rc := http.NewResponseController(w)
	events := f.events(v, a)
	for i, ev := range events {
		if dying && i >= len(events)/2 {
			panic(http.ErrAbortHandler) // the documented way to cut a connection
		}
		if policy == Slow && i > 0 && !pause(r.Context(), m.o.Pace) {
			return
		}
		if _, err := io.WriteString(w, ev); err != nil {
			return
		}
		if err := rc.Flush(); err != nil {
			return
		}
	}
}

// cutShort announces a whole answer and sends half of it.
func cutShort(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(data[:len(data)/2])
	_ = http.NewResponseController(w).Flush() // else nothing at all would arrive
	panic(http.ErrAbortHandler)
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// keptPrompts is how many prompts a provider's cache of ours remembers.
const keptPrompts = 32

// cached returns the longest prefix that body shares with a prompt seen before,
// so that a gate which disturbs the provider's prompt cache shows in usage.
func (m *Model) cached(body string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	best := 0
	for _, p := range m.prompts {
		n := 0
		for n < len(p) && n < len(body) && p[n] == body[n] {
			n++
		}
		best = max(best, n)
	}
	m.prompts = append(m.prompts, body)
	if len(m.prompts) > keptPrompts {
		m.prompts = m.prompts[1:]
	}
	return body[:best]
}

// chunks cuts text into pieces at spaces, as tokens come.
func chunks(s string) []string {
	var out []string
	for len(s) > 0 {
		n := strings.IndexByte(s[1:], ' ') + 1
		if n == 0 {
			n = len(s)
		}
		for n < len(s) && n < 12 {
			k := strings.IndexByte(s[n+1:], ' ')
			if k < 0 {
				n = len(s)
			} else {
				n += k + 1
			}
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}
