// Package wiretest holds what every wire format must keep, as tests that run over
// recorded requests and streams: splices leave other bytes alone, stripping undoes
// them, and a stream means the same however it is cut. Only tests import it.
package wiretest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"gettier.dev/gettierd/daemon/wire"
)

// Recorded is one recorded request.
type Recorded struct {
	Name string // client/session/number
	Kind string // messages | count
	Body []byte
}

// Session is the name without the request's number.
func (r Recorded) Session() string { return r.Name[:strings.LastIndexByte(r.Name, '/')] }

// Load reads packed requests: a line each, name, kind and body between tabs.
func Load(tb testing.TB, path string) []Recorded {
	tb.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer dec.Close()
	text, err := dec.DecodeAll(packed, nil)
	if err != nil {
		tb.Fatal(err)
	}
	var out []Recorded
	for line := range bytes.Lines(text) {
		f := bytes.SplitN(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\t'}, 3)
		if len(f) != 3 {
			tb.Fatalf("a line of %s has %d fields", path, len(f))
		}
		out = append(out, Recorded{string(f[0]), string(f[1]), f[2]})
	}
	return out
}

// Frame is a block of ours that says text.
func Frame(text string) string {
	return wire.BlockOpen + " id=\"v1\">\n" + text + "\n" + wire.BlockClose
}

// Requests checks reading, splicing and stripping on one body.
func Requests(t *testing.T, a wire.Adapter, body []byte) {
	t.Helper()
	r, err := a.Read(body)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	same, err := a.Strip(body)
	if err != nil || len(same) > 0 && (&same[0] != &body[0] || len(same) != len(body)) {
		t.Fatalf("strip of a body without blocks is another slice (%v)", err)
	}
	elements := decodeItems(t, body)
	if len(elements) != len(r.Items) {
		t.Fatalf("%d items read, %d there", len(r.Items), len(elements))
	}
	for i, it := range r.Items {
		if diff := cmp.Diff(elements[i], decode(t, body[it.Span.Start:it.Span.End])); diff != "" {
			t.Fatalf("item %d is not where its span says: %s", i, diff)
		}
	}
	for i := range r.Items {
		Spliced(t, a, r, []wire.Block{{After: i, Text: Frame("one \"quoted\" <&> \u2028 ✓")}})
	}
	if n := len(r.Items); n > 1 {
		Spliced(t, a, r, []wire.Block{{After: 0, Text: Frame("first")}, {After: n - 1, Text: Frame("second")}, {After: n - 1, Text: Frame("third")}})
	}
}

// Spliced checks one splice: nothing else changes, and Strip takes it back.
func Spliced(t *testing.T, a wire.Adapter, r *wire.Request, blocks []wire.Block) {
	t.Helper()
	spliced(t, a, r, blocks)
}

// failer is a test or a property under test.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func spliced(t failer, a wire.Adapter, r *wire.Request, blocks []wire.Block) {
	t.Helper()
	before := bytes.Clone(r.Body)
	got, err := a.Splice(r, blocks)
	if err != nil {
		t.Fatalf("splice: %v", err)
	}
	if !bytes.Equal(before, r.Body) {
		t.Fatal("splice changed the body that it was given")
	}
	if !subsequence(r.Body, got) {
		t.Fatalf("splice lost bytes")
	}
	s, err := a.Read(got)
	if err != nil {
		t.Fatalf("read spliced: %v\n%.2000s", err, got)
	}
	var seen []string
	for _, it := range s.Items {
		for _, p := range it.Parts {
			if p.Kind == wire.Text && wire.IsBlock(p.Text) {
				if it.Role != "user" {
					t.Fatalf("a block stands in an item of role %s", it.Role)
				}
				seen = append(seen, p.Text)
			}
		}
	}
	if len(seen) != len(blocks) {
		t.Fatalf("%d blocks in the request, %d spliced", len(seen), len(blocks))
	}
	back, err := a.Strip(got)
	if err != nil {
		t.Fatalf("strip: %v", err)
	}
	if !bytes.Equal(back, r.Body) {
		t.Fatalf("strip does not undo splice:\n%s", cmp.Diff(string(r.Body), string(back)))
	}
}

// subsequence reports whether got is want with stretches inserted.
func subsequence(want, got []byte) bool {
	for _, c := range got {
		if len(want) > 0 && want[0] == c {
			want = want[1:]
		}
	}
	return len(want) == 0
}

func decode(t testing.TB, raw []byte) any {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("decode %.200s: %v", raw, err)
	}
	return v
}

func decodeItems(t testing.TB, body []byte) []any {
	t.Helper()
	top, _ := decode(t, body).(map[string]any)
	if s, ok := top["input"].(string); ok {
		return []any{s}
	}
	items, ok := top["messages"].([]any)
	if !ok {
		items, _ = top["input"].([]any)
	}
	return items
}

// Elements is what a provider's cache sees of messages: the items as values, with
// cache_control taken out and a plain content, or a plain input, written as its
// one text block.
func Elements(t testing.TB, body []byte) []any {
	t.Helper()
	items := decodeItems(t, body)
	top, _ := decode(t, body).(map[string]any)
	_, responses := top["input"]
	for i := range items {
		if s, ok := items[i].(string); ok {
			items[i] = map[string]any{"type": "message", "role": "user", "content": s}
		}
		items[i] = uncached(items[i])
		if m, ok := items[i].(map[string]any); ok {
			if s, ok := m["content"].(string); ok {
				kind := "text"
				if responses {
					kind = "input_text"
				}
				m["content"] = []any{map[string]any{"type": kind, "text": s}}
			}
		}
	}
	return items
}

func uncached(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "cache_control")
		for k := range v {
			v[k] = uncached(v[k])
		}
	case []any:
		for i := range v {
			v[i] = uncached(v[i])
		}
	}
	return v
}

// Prefixed checks stickiness: where request n+1 is request n and a suffix, it
// stays so with a block spliced into both at the last item of n.
func Prefixed(t *testing.T, a wire.Adapter, first, second []byte) (checked bool) {
	t.Helper()
	ea, eb := Elements(t, first), Elements(t, second)
	if len(eb) < len(ea) || !reflect.DeepEqual(ea, eb[:len(ea)]) {
		return false
	}
	ra, err := a.Read(first)
	if err != nil {
		t.Fatal(err)
	}
	rb, err := a.Read(second)
	if err != nil {
		t.Fatal(err)
	}
	block := []wire.Block{{After: len(ra.Items) - 1, Text: Frame("sticky")}}
	sa, err := a.Splice(ra, block)
	if err != nil {
		t.Fatal(err)
	}
	sb, err := a.Splice(rb, block)
	if err != nil {
		t.Fatal(err)
	}
	ea, eb = Elements(t, sa), Elements(t, sb)
	if len(eb) < len(ea) {
		t.Fatalf("the later request has fewer elements with blocks: %d < %d", len(eb), len(ea))
	}
	if diff := cmp.Diff(ea, eb[:len(ea)]); diff != "" {
		t.Fatalf("the earlier request is no longer a prefix:\n%s", diff)
	}
	return true
}

// Split checks that a stream means the same however it is cut, byte by byte
// included, and returns its pieces.
func Split(t *testing.T, a wire.Adapter, stream []byte) ([]wire.Piece, *wire.Answer, error) {
	t.Helper()
	pieces, s, err := feed(a, stream, len(stream))
	check := func(how string, p []wire.Piece, o wire.Stream, oerr error) {
		t.Helper()
		if diff := cmp.Diff(pieces, p); diff != "" {
			t.Fatalf("%s: other pieces: %s", how, diff)
		}
		if fmt.Sprint(err) != fmt.Sprint(oerr) || s.Done() != o.Done() {
			t.Fatalf("%s: %v done=%v, was %v done=%v", how, oerr, o.Done(), err, s.Done())
		}
		if diff := cmp.Diff(s.Answer(), o.Answer()); diff != "" {
			t.Fatalf("%s: another answer: %s", how, diff)
		}
	}
	for _, step := range []int{1, 2, 3, 7, 64, 333, 1000} {
		p, o, oerr := feed(a, stream, step)
		check(fmt.Sprintf("in steps of %d", step), p, o, oerr)
	}
	if err == nil {
		var raw []byte
		for _, p := range pieces {
			raw = append(raw, p.Raw...)
		}
		if !bytes.HasPrefix(stream, raw) {
			t.Fatal("the pieces are not the stream")
		}
	}
	if err != nil && !errors.Is(err, wire.ErrUnreadable) {
		t.Fatalf("a fault that is not ErrUnreadable: %v", err)
	}
	return pieces, s.Answer(), err
}

func feed(a wire.Adapter, stream []byte, step int) ([]wire.Piece, wire.Stream, error) {
	s := a.NewStream()
	out := []wire.Piece{}
	for len(stream) > 0 {
		n := min(step, len(stream))
		p, err := s.Feed(bytes.Clone(stream[:n]))
		out = append(out, p...)
		if err != nil {
			return out, s, err
		}
		stream = stream[n:]
	}
	return out, s, nil
}

// Kinds are the kinds of pieces, runs of the same kind once.
func Kinds(pieces []wire.Piece) string {
	var out []string
	for _, p := range pieces {
		if len(out) == 0 || out[len(out)-1] != string(p.Kind) {
			out = append(out, string(p.Kind))
		}
	}
	return strings.Join(out, " ")
}

// Pieces reads a stream that must be good.
func Pieces(tb testing.TB, a wire.Adapter, stream []byte) ([]wire.Piece, wire.Stream) {
	tb.Helper()
	s := a.NewStream()
	p, err := s.Feed(stream)
	if err != nil {
		tb.Fatalf("read stream: %v\n%s", err, stream)
	}
	return p, s
}
