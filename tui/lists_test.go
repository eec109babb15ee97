package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

func TestFactFilter(t *testing.T) {
	for _, c := range []struct {
		in   string
		want ipc.FactQuery
		why  safe
	}{
		{"", ipc.FactQuery{}, ""},
		{"proxy limit", ipc.FactQuery{Text: "proxy limit"}, ""},
		{" provenance:measured status:active scope:shop  x", ipc.FactQuery{Provenance: "measured", Status: "active", Scope: "project:shop", Text: "x"}, ""},
		{"scope:host scope:", ipc.FactQuery{Scope: "host"}, ""},
		{"scope:project:a", ipc.FactQuery{Scope: "project:a"}, ""},
		{"http://x", ipc.FactQuery{Text: "http://x"}, ""},
		{"status:old", ipc.FactQuery{Status: "old"}, "status is active, stale, contradicted or invalidated"},
		{"provenance:x", ipc.FactQuery{Provenance: "x"}, "provenance is measured, told or believed"},
	} {
		got, why := factFilter(c.in)
		if d := cmp.Diff(c.want, got); d != "" || why != c.why {
			t.Errorf("%q: %s\n%q", c.in, d, why)
		}
	}
	for in, bad := range map[string]bool{"decision:caught agent:codex": false, "scope:shop": false, "decision:x": true, "word": true, "agent:": true} {
		if _, why := turnFilter(in); (why != "") != bad {
			t.Errorf("%q: %q", in, why)
		}
	}
}

func TestLedger(t *testing.T) {
	// Without a hold no clock runs but that of the facts.
	onRigOf(t, 80, 24, Options{}, func(d *fake) { d.HoldRows = nil }, func(r *rig) {
		r.key("2")
		r.shows("for good", "▮▮▯▯▯ 4 min", "✗ contradicted", "日本語の値")
		r.wait(61 * time.Second)
		r.shows("▮▮▯▯▯ 3 min")
		r.wait(3 * time.Minute)
		r.hides("▮▮▯▯▯", "1 min")
		r.key("/")
		r.typed("status:stale")
		r.shows("os.locale")
		r.hides("proxy.config limit", "Postgres")
		r.typed("x")
		r.key("enter")
		r.shows("status is active, stale")
		r.key("backspace", "enter")
		r.shows("/ status:stale", "os.locale")
		r.key("/", "esc")
		r.shows("proxy.config limit")

		// What was told appears, and the selected row stays selected.
		r.key("down", "down")
		before, _ := r.m.ledger.list.Selected()
		r.key("n")
		r.typed("staging is a copy")
		r.key("enter")
		r.wait(time.Second)
		r.shows("staging is a copy")
		if after, _ := r.m.ledger.list.Selected(); after.ID != before.ID {
			t.Errorf("the cursor went from %s to %s", before.ID, after.ID)
		}
		r.key("x", "enter")
		r.shows("it needs a reason")
		r.typed("replaced")
		r.key("enter")
		r.settle()
		if r.d.calls["invalidate"] != 1 || r.d.calls["tell"] != 1 {
			t.Errorf("calls: %v", r.d.calls)
		}
		r.key("y")
		if !strings.Contains(r.out.String(), "\x1b]52;c;") {
			t.Errorf("nothing was copied: %q", r.out.String())
		}
		r.key("enter")
		r.wait(100 * time.Millisecond)
		r.shows("what this key was", "1m")
	})
}

// What persons wrote for models stands beside the facts, cleaned like them.
func TestKnowledge(t *testing.T) {
	onRig(t, 80, 24, Options{}, func(r *rig) {
		r.key("2", "w")
		r.wait(100 * time.Millisecond)
		r.shows("nothing is kept for models to read", "gettier knowledge add")
		r.key("esc")
		r.d.Knowing = []lemma.Knowledge{
			{ID: "k_01j0000000000000000000000a", Scope: "project:shop", Text: "staging shares its queue with production", Topics: []string{"queue", "db.target"}, Sensitivity: "internal"},
			{ID: "k_01j0000000000000000000000b", Scope: "host", Text: "the vault\x1b[31m is upstairs", Topics: []string{}, Sensitivity: "secret"},
		}
		r.key("w")
		r.wait(100 * time.Millisecond)
		r.shows("staging shares its queue with production", "called by  queue, db.target", "shop · internal", "secret, never sent", "is upstairs", "gettier knowledge edit")
		r.hides("nothing is kept", "\x1b[31m is")
		r.key("esc")
		r.d.mu.Lock()
		r.d.down = errors.New("no answer")
		r.d.mu.Unlock()
		r.key("w")
		r.wait(100 * time.Millisecond)
		r.shows("could not be read", "no answer")
		r.key("esc")
		r.shows("proxy.config limit")
	})
}

// Rows that arrive change the list, and what is selected stays.
func TestTurns(t *testing.T) {
	onRig(t, 80, 24, Options{}, func(r *rig) {
		r.key("3", "down")
		r.wait(time.Second)
		r.shows("✓─✓─✓─✗───✓─✓", "✗ caught", `measured  "1m`, "rule proxy.config judge 1")
		for i := range 250 {
			r.d.TurnRows = append([]ipc.Turn{{ID: fmt.Sprintf("t_new%03d", i), Agent: "bot", Prompt: fmt.Sprintf("task %d", i), OpenedAt: at(time.Minute)}}, r.d.TurnRows...)
			r.d.Append(fmt.Sprintf("t_new%03d", i), lemma.TurnOpened{Contract: lemma.Contract})
			if i%10 == 0 {
				r.wait(300 * time.Millisecond)
			}
		}
		r.wait(2 * time.Second)
		if got, ok := r.m.turns.list.Selected(); !ok || got.ID != turnCaught {
			t.Errorf("selected %q", got.ID)
		}
		r.shows("✗ caught")
		r.key("g")
		r.shows("task 249")
		if n := r.d.calls["turns"]; n > 45 {
			t.Errorf("the list was read %d times", n)
		}
		r.key("/")
		r.typed("decision:caught")
		r.key("enter")
		r.shows("raise the upload")
		r.hides("task 249")
	})
}

func TestStory(t *testing.T) {
	onRig(t, 80, 24, Options{}, func(r *rig) {
		r.key("3", "down", "enter")
		r.shows("turn k3vq", "declare", "rung 1 (forced tool call)")
		r.key("e", "G")
		r.wait(100 * time.Millisecond)
		text := func() string {
			var b strings.Builder
			for _, row := range r.m.pager.rows {
				b.WriteString(string(row.prefix+row.text) + "\n")
			}
			return b.String()
		}
		for _, want := range []string{"│ client_max_body_size 1m;", "✗ contradicted", "allow  mutate  Edit", "time: declare 1.2 s", "│ <gettier-verification"} {
			if !strings.Contains(text(), want) {
				t.Errorf("the story lacks %q:\n%s", want, text())
			}
		}
		// An open turn's story goes on by itself, and stays at its end.
		r.key("esc", "up", "enter", "G")
		r.d.Append(turnOpen, lemma.TurnUndeclared{Contract: lemma.Contract, Reason: "the model said nothing"})
		r.wait(500 * time.Millisecond)
		r.shows("nothing: the model said nothing", "the turn is open")
	})
}

func TestSensors(t *testing.T) {
	onRig(t, 80, 24, Options{}, func(r *rig) {
		r.key("4")
		r.shows("? changed", "? pending", "✗ broken", "limit = ")
		r.key("t")
		r.typed("nginx accepts 25 MB")
		r.key("enter")
		r.settle()
		r.shows("nginx -T -c /etc/nginx/nginx.conf", `limit = "1m"  bytes  conf.d/shop.conf:3`, "✗ contradicted  judge 1", "│ client_max_body_size 1m;", "1 secret, rule token.bearer")
		r.key("esc", "enter")
		r.shows("+  ttl: 600", "-  ttl: 300")
		r.key("a")
		r.settle()
		r.shows("✓ approved: user/proxy.config")
		r.wait(time.Second)
		r.hides("? changed")
		r.key("down", "t", "enter")
		r.shows("it needs host=…")
		r.key("esc")
		// What was shown is what is approved.
		r.d.Diffs["project/shop/db.version"] = ipc.SensorDiff{ID: "db.version", Qualified: "project/shop/db.version", Hash: "old", Text: strings.Repeat("+ a line\n", 40)}
		r.key("enter", "a")
		r.shows("approve: read to the end first")
		r.key("G", "a")
		r.settle()
		r.shows("not approved")
	})
}

func TestAudit(t *testing.T) {
	onRigOf(t, 80, 24, Options{}, func(d *fake) {
		for i := range 3000 {
			d.Append("", lemma.StateLost{Contract: lemma.Contract, Reason: fmt.Sprint("reason ", i)})
		}
	}, func(r *rig) {
		r.key("8")
		r.shows("3,012", "reason 2999")
		r.key("home")
		r.shows("chain.opened")
		r.key("down", "enter")
		r.shows("kind      turn.opened", `"agent": "claude-code"`, "hash      ")
		r.key("esc", "t")
		r.shows("turn k3vq")
		r.key("esc")
		for range 40 {
			r.key("pgdown")
		}
		row, ok := r.m.audit.list.Selected()
		if !ok || row.seq == 0 {
			t.Fatal("no row after paging")
		}
		r.d.Append("", lemma.StateLost{Contract: lemma.Contract, Reason: "later"})
		r.wait(100 * time.Millisecond)
		if now, _ := r.m.audit.list.Selected(); now.seq != row.seq {
			t.Error("the cursor left its row")
		}
		r.key("G")
		r.shows("reason", "later", "following")
		r.key("v")
		r.wait(200 * time.Millisecond)
		r.shows("✓ intact: 3,014 entries", "chain 3,014 ✓")
	})
}

// A page that does not come is asked for again, and not all the time.
func TestPageFails(t *testing.T) {
	onRig(t, 80, 24, Options{}, func(r *rig) {
		r.d.mu.Lock()
		r.d.down = context.DeadlineExceeded
		r.d.mu.Unlock()
		r.key("2")
		r.wait(3 * time.Second)
		r.shows("facts: gettierd did not answer in time")
		if n := r.d.calls["facts"]; n < 2 || n > 5 {
			t.Errorf("asked %d times in 3 s", n)
		}
		r.d.mu.Lock()
		r.d.down = nil
		r.d.mu.Unlock()
		r.wait(2 * time.Second)
		r.shows("proxy.config limit")
	})
}

// A frame of 160×48 costs the same for any number of rows.
func BenchmarkFrame(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := frameOf(b, n)
			b.ReportAllocs()
			for b.Loop() {
				m.View()
			}
		})
	}
}

func frameOf(t testing.TB, n int) *Model {
	m := New(t.Context(), Options{Client: newFake(), Now: func() time.Time { return began }})
	m.Update(tea.WindowSizeMsg{Width: 160, Height: 48})
	m.Update(linkUp{status: ipc.Status{Proxy: "127.0.0.1:11435", Chain: ipc.Head{Size: uint64(n), Root: "abcd"}}, asOf: uint64(n) - 1, fresh: true})
	m.show(m.index(m.audit))
	m.Update(tick{})
	for k := max(0, n-512) / auditPage; k <= (n-1)/auditPage; k++ {
		var page []auditRow
		for i := k * auditPage; i < min(n, (k+1)*auditPage); i++ {
			page = append(page, readEntry(ipc.Entry{Seq: uint64(i), TS: at(0), Kind: "turn.opened", Turn: turnCaught, Body: []byte(`{"kind":"new","class":"change","reasons":["words.config","日本"],"scope":"project:shop"}`)}))
		}
		m.audit.list.Put(wantOf(m, k), page, "")
	}
	return m
}

func TestFrameAllocates(t *testing.T) {
	m := frameOf(t, 100_000)
	if s, ok := m.audit.list.Selected(); !ok || s.seq != 99_999 {
		t.Fatalf("selected %d, %v", s.seq, ok)
	}
	if a := testing.AllocsPerRun(50, func() { m.View() }); a > 40 {
		t.Errorf("%.0f allocations a frame", a)
	}
}
