package route

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// main is a person's own conversation: what anchors and keys must survive in.
func mainKind(k Kind) bool { return k == New || k == Loop || k == Resend }

// TestAnchorsGrow: request n+1 holds every anchor of request n. A client drops
// history only when it compacts, or when a prompt was taken back before its
// answer began.
func TestAnchorsGrow(t *testing.T) {
	dropped := map[string]bool{
		"claude-code/tui/006.request":           true, // Escape before the first text
		"continue-messages/compact/005.request": true, // two answers become one entry after a compaction
	}
	checked := 0
	for _, rec := range recordings(t) {
		last := map[string][]string{}
		replay(rec, func(r recorded, rt Route) {
			if rt.Kind == SideCompaction {
				clear(last)
				return
			}
			if !mainKind(rt.Kind) && rt.Kind != Subagent {
				return
			}
			now := Anchors(r.req)
			before := last[rt.Conversation]
			last[rt.Conversation] = now
			if len(before) == 0 || dropped[rec.name+"/"+r.file] {
				return
			}
			if len(now) < len(before) || !slices.Equal(now[:len(before)], before) {
				for i := range before {
					if i >= len(now) || now[i] != before[i] {
						t.Errorf("%s/%s: anchor of item %d of %d changed", rec.name, r.file, i, len(before))
						break
					}
				}
				return
			}
			checked++
		})
	}
	if checked < 100 {
		t.Errorf("only %d pairs of requests were compared", checked)
	}
}

// TestCompactionKeepsAnchors: a compaction request shares the history that it
// sums up, its own prompt left out, so that corrections come along.
func TestCompactionKeepsAnchors(t *testing.T) {
	n := 0
	for _, rec := range recordings(t) {
		if !strings.HasPrefix(rec.name, "claude-code/") && !strings.HasPrefix(rec.name, "codex/") {
			continue
		}
		var last []string
		replay(rec, func(r recorded, rt Route) {
			now := Anchors(r.req)
			if rt.Kind == SideCompaction && len(last) > 0 {
				n++
				i := 0
				for i < len(last) && i < len(now) && now[i] == last[i] {
					i++
				}
				if i < len(last)-1 {
					t.Errorf("%s/%s: %d of %d anchors are shared", rec.name, r.file, i, len(last))
				}
				last = nil
			} else if mainKind(rt.Kind) {
				last = now
			}
		})
	}
	if n == 0 {
		t.Error("no compaction was seen")
	}
}

// TestKeyPerTurn: every lap and resend of a turn has the key of its first
// request, and no two turns of a session share one.
func TestKeyPerTurn(t *testing.T) {
	for _, rec := range recordings(t) {
		turn := map[string]string{} // conversation → key of its open turn
		seen := map[string]string{}
		replay(rec, func(r recorded, rt Route) {
			key := KeyOf(testKey, "cred", "up", rt)
			switch {
			case rt.Kind == SideCompaction:
				clear(turn)
			case rt.Kind == New:
				if f := seen[key]; f != "" && !strings.Contains(rec.name, "compact") {
					t.Errorf("%s/%s: the key of %s again", rec.name, r.file, f)
				}
				seen[key], turn[rt.Conversation] = r.file, key
			case rt.Kind == Loop || rt.Kind == Resend:
				if want := turn[rt.Conversation]; want != "" && key != want {
					t.Errorf("%s/%s: another key than its turn's (ordinal %d, %q)", rec.name, r.file, rt.Ordinal, rt.PersonText)
				}
			}
		})
	}
}

// TestMAC: it is the library's HMAC, keys of any length.
func TestMAC(t *testing.T) {
	for _, n := range []int{0, 1, 32, 64, 65, 200} {
		key := bytes.Repeat([]byte{'k'}, n)
		for _, text := range []string{"", "a", strings.Repeat("long ", 100)} {
			m := hmac.New(sha256.New, key)
			m.Write([]byte(text))
			if got := MAC(key, append(make([]byte, MACRoom), text...)); !bytes.Equal(got[:], m.Sum(nil)) {
				t.Errorf("a key of %d bytes, a message of %d: another sum", n, len(text))
			}
		}
	}
}

// TestKeyNormalisesWords: the same words are the same turn, however they are spaced.
func TestKeyNormalisesWords(t *testing.T) {
	a := Key(testKey, KeyInput{Conversation: "c", Ordinal: 1, Text: "fix  the\n\ttotal ", SubagentRoot: "r"})
	for text, same := range map[string]bool{"fix the total": true, "  fix the total": true, "fix thetotal": false, "fix the total r": false, "": false} {
		if got := Key(testKey, KeyInput{Conversation: "c", Ordinal: 1, Text: text, SubagentRoot: "r"}); (got == a) != same {
			t.Errorf("%q: the same key is %t, want %t", text, got == a, same)
		}
	}
	// What a key was made of before it was made without a copy of the text.
	h := hmac.New(sha256.New, testKey)
	for _, f := range []string{"turn", "", "", "c", "1", "fix the total", "r"} {
		put(h, f)
	}
	if want := hex.EncodeToString(h.Sum(nil)); a != want {
		t.Errorf("key %s, want %s", a, want)
	}
}

func TestAppendWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{" ", " ", "\n", "\t", "\v", "\u00a0", "\u0085", "\u2003", "a", "word", "é", "\xff", "\x85", "日本"})).Draw(t, "parts"), "")
		want := "before " + strings.Join(strings.Fields(s), " ")
		if got := string(appendWords([]byte("before "), s)); got != want {
			t.Fatalf("%q became %q, not %q", s, got, want)
		}
	})
}

// TestNamesAllocateLittle guards what each request pays for its names.
func TestNamesAllocateLittle(t *testing.T) {
	in := KeyInput{Credential: "c", Upstream: "u", Conversation: "v", Ordinal: 3, Text: strings.Repeat("word ", 400)}
	head := func(string) string { return "Bearer x" }
	if n := testing.AllocsPerRun(100, func() {
		Key(testKey, in)
		name(testKey, "session", "claude-code", "s")
		Credential(head)
	}); n > 8 {
		t.Errorf("%.0f allocations for a turn's key, a name and a credential", n)
	}
}
