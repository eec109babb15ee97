package route

import (
	"slices"
	"strings"
	"testing"
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
