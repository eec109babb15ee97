package ledger_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
	"go.etcd.io/bbolt"
)

var makeFixture = flag.Bool("make-fixture", false, "write testdata/v1.db anew; never needed for a format that exists")

// story writes a ledger of format 1 with fixed clock and key: one gated turn
// that was caught, a hold that was answered, a told fact, a side request, a turn
// that never ended.
func story(t *testing.T, dir string) string {
	t.Helper()
	b := &bench{dir: dir, opt: ledger.Options{Key: testKey, Version: "fixture", MmapSize: 1 << 20}}
	now := begin
	b.opt.Now = func() time.Time { now = now.Add(time.Second); return now }
	l := b.open(t)
	const turn = "t_01kjxw3n00fixture0000000000"
	block := "<gettier-verification id=\"v1\">\nlimit measured: 1m\n</gettier-verification>"
	f := factOf("f_01kjxw3n00fixture0000000000", "project:shop", "1m", 300, begin)
	add(t, l, ledger.Draft{Turn: turn, Body: opened("c1")})
	add(t, l, ledger.Draft{Turn: turn, Body: lemma.TurnDeclared{Contract: "0.9", Rung: 1, At: "prompt", PlanSummary: "raise the app's limit", Attempts: 1,
		Lemmas: []lemma.Lemma{{Claim: "the proxy lets 10m through", Provenance: lemma.Believed, LoadBearing: true,
			FalsifyingObservation: &lemma.FalsifyingObservation{Sensor: "proxy.config", Key: "limit", Operator: lemma.Lt, Value: json.Number("20.10")}}}}},
		ledger.Draft{Turn: turn, Body: lemma.LemmaMatched{Contract: "0.9", Claim: "the proxy lets 10m through", Sensors: []lemma.SensorMatch{{ID: "proxy.config", Why: "proxy.body:body limit"}}}})
	output := "client_max_body_size 1m;\n"
	add(t, l, ledger.Draft{Turn: turn, Blobs: [][]byte{[]byte(output)}, Body: lemma.SensorInvoked{Contract: "0.9", Invocation: lemma.Invocation{ID: "i_1", SensorID: "proxy.config",
		Params: map[string]string{"conf": "/etc/nginx/nginx.conf"}, Argv: []string{"nginx", "-T"}, StartedAt: lemma.Time(begin), DurationMS: 12, Sandbox: "none", OutputHash: sum(output), OutputBlob: sum(output)}}},
		write(f))
	add(t, l, ledger.Draft{Turn: turn, Body: lemma.ClaimJudged{Contract: "0.9", ClaimID: "claim", Claim: "the proxy lets 10m through", Origin: "declared", Verdict: lemma.Contradicted, Reason: "rule", Measured: "1m", Claimed: "10m"}})
	add(t, l, ledger.Draft{Turn: turn, Body: lemma.GateDecided{Contract: "0.9", Decision: lemma.DecCaught, Class: lemma.Change, Mode: lemma.Block, Counts: lemma.Counts{Lemmas: 1, Contradicted: 1}}})
	add(t, l, ledger.Draft{Turn: turn, Blobs: [][]byte{[]byte(block)}, Body: lemma.TurnInjected{Contract: "0.9", Conversation: "c1", BlockBlob: sum(block), Anchor: sum("anchor"), Why: "verification", Facts: []string{f.ID}}},
		ledger.Draft{Turn: turn, Body: lemma.TurnGrounded{Contract: "0.9", BlockBlob: sum(block), Anchor: sum("anchor")}})
	add(t, l, ledger.Draft{Turn: turn, Body: lemma.TurnClosed{Contract: "0.9", Decision: lemma.DecCaught, Status: 200, Timings: map[string]int64{"declare": 900, "verify": 12}}})
	add(t, l, ledger.Draft{Turn: "t_2", Body: opened("c2")}, ledger.Draft{Turn: "t_2", Body: lemma.HoldOpened{Contract: "0.9", Hold: holdOf("h_1", "claim2")}})
	add(t, l, ledger.Draft{Body: answer("h_1", "claim2", lemma.AnswerConfirm, lemma.ScopeProject, begin.Add(24*time.Hour))})
	newer := factOf("f_02kjxw3n00fixture0000000000", "project:shop", "10m", 300, begin.Add(time.Minute))
	add(t, l, write(newer), ledger.Draft{Body: lemma.FactContradicted{Contract: "0.9", Fact: f.ID, By: newer.ID, Delta: "previously 1m, now measured 10m"}})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return b.path()
}

// TestFixture opens the stored ledger of format 1 and reads it to the last
// fact. It must pass for ever: this file stands for every chain out there.
func TestFixture(t *testing.T) {
	stored := filepath.Join("testdata", "v1.db")
	if *makeFixture {
		raw, err := os.ReadFile(story(t, t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(stored, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("testdata", "v1.seed"), []byte(hex.EncodeToString(testKey.Seed())+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	seed, err := os.ReadFile(filepath.Join("testdata", "v1.seed"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(seed)))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(stored)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	b.opt.Key, b.opt.CheckpointFile = ed25519.NewKeyFromSeed(key), ""
	if err := os.WriteFile(b.path(), raw, 0o600); err != nil {
		t.Fatal(err)
	}

	o := b.opt
	o.ReadOnly, o.Key = true, nil
	l, err := ledger.Open(b.path(), o)
	if err != nil {
		t.Fatal(err)
	}
	r := verified(t, l)
	if r.Size != 16 || r.Blobs != 2 || r.Origin != chain.Origin(b.opt.Key.Public().(ed25519.PublicKey)) {
		t.Errorf("report: %+v", r)
	}
	if want := vector(t, "root"); r.Root != want {
		t.Errorf("root %s, FORMAT.md says %s", r.Root, want)
	}
	if _, first, err := l.At(0); err != nil || string(first) != vector(t, "entry 0") {
		t.Errorf("entry 0 is %s, %v", first, err)
	} else if h := chain.Hash(first); hex.EncodeToString(h[:]) != vector(t, "hash of entry 0") {
		t.Errorf("hash of entry 0 is %x", h)
	}
	if got := string(l.Checkpoint()); got != vector(t, "checkpoint") {
		t.Errorf("checkpoint:\n%s", got)
	}
	if _, err := l.Append(context.Background(), note("x")); err == nil {
		t.Error("appended to a ledger open for reading")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(b.path()); !bytes.Equal(after, raw) {
		t.Error("reading changed the file")
	}

	// And today's program goes on where it ended.
	l = b.open(t)
	if f, ok := l.FactBy("project:shop", "proxy.config@1", "limit"); !ok || f.Value != "10m" {
		t.Errorf("fact: %+v", f)
	}
	if bs, err := l.Blocks("c1"); err != nil || len(bs) != 1 || !strings.Contains(bs[0].Text, "measured: 1m") {
		t.Errorf("blocks: %+v, %v", bs, err)
	}
	if a, ok := l.Answers("project:shop", "c9", "claim2", begin); !ok || a.Answer != lemma.AnswerConfirm {
		t.Errorf("answer: %+v", a)
	}
	if row, err := l.Turn("t_2"); err != nil || row.Error != "stopped at hold.opened" {
		t.Errorf("turn: %+v, %v", row, err)
	}
	verified(t, l)
}

// TestFixtureIsReproduced writes the same story today: every byte of every
// bucket must come out as it was stored.
func TestFixtureIsReproduced(t *testing.T) {
	want, got := dump(t, filepath.Join("testdata", "v1.db")), dump(t, story(t, t.TempDir()))
	// The folds have moved on since: the chain and what it folds to have not.
	delete(want, `meta "fold"`)
	delete(got, `meta "fold"`)
	for k, v := range want {
		if w, ok := got[k]; !ok || w != v {
			t.Errorf("%s:\nstored %q\nnow    %q", k, v, w)
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok && !strings.HasPrefix(k, "deltas ") { // since fold 3
			t.Errorf("%s is new", k)
		}
	}
}

func dump(t *testing.T, path string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tmp := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(tmp, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(tmp, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all := map[string]string{}
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			if string(name) == "blobs" { // compressed: another version may pack tighter
				return nil
			}
			return b.ForEach(func(k, v []byte) error {
				all[fmt.Sprintf("%s %q", name, k)] = string(v)
				return nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// vector reads a value out of FORMAT.md, so that the page cannot drift from the code.
func vector(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "\nVector: "+name+"\n\n```\n")
	value, _, closed := strings.Cut(rest, "```\n")
	if !ok || !closed {
		t.Fatalf("FORMAT.md has no vector %q", name)
	}
	if strings.Count(value, "\n") == 1 {
		return strings.TrimSuffix(value, "\n")
	}
	return value
}
