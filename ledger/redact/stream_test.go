package redact

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// streamed writes text in parts of the given sizes, over and over.
func streamed(t testing.TB, text []byte, sizes ...int) ([]byte, []Hit) {
	t.Helper()
	var out bytes.Buffer
	s := New().NewStream(&out)
	for i := 0; len(text) > 0; i++ {
		n := min(len(text), sizes[i%len(sizes)])
		if m, err := s.Write(text[:n]); m != n || err != nil {
			t.Fatalf("Write: %d, %v", m, err)
		}
		text = text[n:]
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), s.Hits()
}

// A long text comes out of a stream as it comes out in one piece, wherever its
// secrets stand in relation to the parts.
func TestStreamEqualsWhole(t *testing.T) {
	var b bytes.Buffer
	r := rand.New(rand.NewPCG(3, 4))
	for b.Len() < 3<<20 {
		b.Write(mixedText(8<<10 + r.IntN(8<<10)))
		b.WriteByte('\n')
		switch r.IntN(3) {
		case 0:
			b.WriteString(pem() + "\n")
		case 1:
			fmt.Fprintf(&b, "apiVersion: v1\ndata:\n  a: %s\n%s  z: %s\nkind: Secret\n---\n", random(24, alnum), strings.Repeat("  # nothing\n", 4000), random(28, alnum))
		case 2:
			b.WriteString("-----BEGIN PRIVATE " + "KEY-----\n" + strings.Repeat(random(64, alnum)+"\n", 700) + "-----END PRIVATE " + "KEY-----\n")
		}
	}
	text := b.Bytes()
	want, hits := New().Bytes(text)
	for _, sizes := range [][]int{{1 << 30}, {4096}, {1, 1 << 16, 70001}, {stretch + 1}} {
		got, seen := streamed(t, text, sizes...)
		if !bytes.Equal(got, want) {
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			t.Fatalf("parts of %v: differs at %d: %.120q, whole %.120q", sizes, i, got[i:], want[i:])
		}
		if diff := cmp.Diff(Merge(hits), seen); diff != "" {
			t.Errorf("parts of %v: %s", sizes, diff)
		}
	}
}

// Each case, put across the place where the stream cuts, comes out whole.
func TestStreamCuts(t *testing.T) {
	in, want := ownCases(t)
	filler := strings.Repeat("a quiet line of a log with nothing in it\n", (stretch+holdBack)/41+1)
	for i := range in {
		for _, back := range []int{1, len(in[i]) / 2, len(in[i]) - 1} {
			// The first cut falls back bytes into the case.
			lead := stretch - back
			before := filler[len(filler)-lead:]
			text := before + in[i] + "\n" + filler[:holdBack*2]
			got, _ := streamed(t, []byte(text), stretch+holdBack, 1<<20)
			if w := before + want[i] + "\n" + filler[:holdBack*2]; string(got) != w {
				t.Fatalf("case %q cut %d in: got …%q", in[i], back, got[max(0, lead-40):min(len(got), lead+len(in[i])+60)])
			}
		}
	}
}

// A password that was named once is known in all that follows, however far.
func TestStreamRemembers(t *testing.T) {
	pw := password()
	text := "DB_PASSWORD=" + pw + "\n" + strings.Repeat("nothing here\n", 200_000) + "and then " + pw + " stood there alone\n"
	got, hits := streamed(t, []byte(text), 32<<10)
	if bytes.Contains(got, []byte(pw)) || len(hits) != 2 {
		t.Errorf("hits %v, end %q", hits, got[len(got)-80:])
	}
}

// Memory is bounded: by the stretch, the context and the hold-back.
func TestStreamIsBounded(t *testing.T) {
	s := New().NewStream(new(bytes.Buffer))
	line := []byte(strings.Repeat("x", 4095) + "\n")
	for range 8 << 10 {
		s.Write(line)
		if len(s.buf) > 2*(stretch+holdBack+lookBack) {
			t.Fatalf("%d bytes are kept", len(s.buf))
		}
	}
}

type broken struct{ after int }

var errBroken = errors.New("broken pipe")

func (b *broken) Write(p []byte) (int, error) {
	if b.after--; b.after < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestStreamStopsAtAnError(t *testing.T) {
	s := New().NewStream(&broken{after: 1})
	text := bytes.Repeat([]byte("nothing\n"), 1<<20)
	if _, err := s.Write(text); !errors.Is(err, errBroken) {
		t.Errorf("Write: %v", err)
	}
	if err := s.Close(); !errors.Is(err, errBroken) {
		t.Errorf("Close: %v", err)
	}
}

// Whatever the text and the parts, a short text streams as it comes out whole.
func FuzzStream(f *testing.F) {
	in, _ := ownCases(f)
	for i, s := range in {
		f.Add([]byte(s), uint16(i))
	}
	f.Fuzz(func(t *testing.T, in []byte, size uint16) {
		if len(in) > 32<<10 {
			return // says nothing here
		}
		want, _ := New().Bytes(in)
		if got, _ := streamed(t, in, int(size)+1, 7); !bytes.Equal(got, want) {
			t.Fatalf("%q streams as %q, whole %q", in, got, want)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	text := mixedText(8 << 20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		streamed(b, text, 64<<10)
	}
}
