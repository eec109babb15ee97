package ledger_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

// TestDay models a working day: 60 prompts whose requests grow until a compaction,
// of which there are 3, 900 actions between them, and 5 sub-agents with requests
// of their own. The default of ledger.retain rests on what it takes: 90 such days
// must stay under 1 GB.
func TestDay(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	r := rand.New(rand.NewPCG(1, 2))
	line := func() string {
		switch r.IntN(4) {
		case 0:
			return fmt.Sprintf("2026-01-%02d INFO path=/api/v1/items/%d status=200 duration_ms=%d id=%016x", r.IntN(28), r.IntN(9999), r.IntN(900), r.Uint64())
		case 1:
			return fmt.Sprintf("func handler%d(w http.ResponseWriter, r *http.Request) { if err := store%d.Put(ctx, %d); err != nil { return } }", r.IntN(9999), r.IntN(99), r.IntN(9999))
		case 2:
			return fmt.Sprintf("the proxy forwards request %d to worker %d and the limiter counts them", r.IntN(9999), r.IntN(99))
		}
		return fmt.Sprintf("    location /upload/%d { client_max_body_size %dm; proxy_pass http://10.0.0.%d:8080; }", r.IntN(99), r.IntN(64), r.IntN(255))
	}
	start, err := l.Size(begin)
	if err != nil {
		t.Fatal(err)
	}
	const fixed = 60 << 10 // instructions and tools, the same each time
	frame := strings.Repeat("x", fixed)
	var conversation strings.Builder
	raw := 0
	turn := func(n, actions int) {
		body, err := json.Marshal(map[string]string{"tools": frame, "content": conversation.String()})
		if err != nil {
			t.Fatal(err)
		}
		raw += len(body)
		id := fmt.Sprintf("t_%d", n)
		asked(t, l, id, string(body))
		drafts := make([]ledger.Draft, actions, actions+1)
		for i := range drafts {
			drafts[i] = ledger.Draft{Turn: id, Body: lemma.ActionDecided{Contract: lemma.Contract, Tool: "shell", Summary: line(), State: "ALLOW", Effect: "mutate"}}
		}
		add(t, l, append(drafts, ledger.Draft{Turn: id, Body: lemma.TurnClosed{Contract: lemma.Contract, Decision: lemma.DecReleased}})...)
	}
	for p := range 60 {
		if p%20 == 0 { // compacted
			conversation.Reset()
		}
		for range 100 { // what was said and read since
			conversation.WriteString(line() + "\n")
		}
		turn(p, 15)
		if p%12 == 0 {
			turn(100+p, 0)
		}
	}
	end, err := l.Size(begin)
	if err != nil {
		t.Fatal(err)
	}
	day := end.Used() - start.Used()
	t.Logf("%d kB of requests take %d kB with all entries of the day", raw>>10, day>>10)
	if day*90 > 1<<30 {
		t.Errorf("a day takes %d bytes: 90 of them take more than 1 GB", day)
	}
	if day < 100<<10 {
		t.Errorf("a day takes %d bytes: it is not what it was made for", day)
	}
}
