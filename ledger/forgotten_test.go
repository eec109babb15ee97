package ledger_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/archive"
	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
)

// asked appends the opening of a turn with its request.
func asked(t testing.TB, l *ledger.Ledger, turn, request string) {
	t.Helper()
	b := opened("c1")
	b.RequestBlob = sum(request)
	add(t, l, ledger.Draft{Turn: turn, Body: b, Blobs: [][]byte{[]byte(request)}})
}

// TestForgetRequest looks at a log that forgot a request from every side.
func TestForgetRequest(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	l := b.open(t)
	by := lemma.Answerer{UID: 1000, Via: "cli"}
	gone, kept, back := `{"a":"gone"}`, `{"a":"kept"}`, `{"a":"back"}`
	asked(t, l, "t_1", gone)
	asked(t, l, "t_2", kept)
	asked(t, l, "t_3", gone) // the same bytes again
	asked(t, l, "t_4", back)
	add(t, l, ledger.Draft{Turn: "t_5", Body: opened("c1")})
	for turn, want := range map[string]error{"t_9": ledger.ErrNotFound, "t_5": ledger.ErrNotKept} {
		if n, _, err := l.ForgetRequest(ctx, turn, by); n != 0 || !errors.Is(err, want) {
			t.Errorf("%s: %d, %v", turn, n, err)
		}
	}
	size := l.Head().Size
	for _, turn := range []string{"t_1", "t_4"} {
		if n, stored, err := l.ForgetRequest(ctx, turn, by); err != nil || n != 1 || stored < 8 {
			t.Fatalf("%s: %d blobs, %d bytes, %v", turn, n, stored, err)
		}
	}
	for _, turn := range []string{"t_1", "t_3"} {
		if _, _, err := l.ForgetRequest(ctx, turn, by); !errors.Is(err, ledger.ErrNotKept) || !strings.Contains(err.Error(), "already") {
			t.Errorf("%s again: %v", turn, err)
		}
	}
	if got := l.Head().Size - size; got != 2 {
		t.Errorf("%d entries, not one for each", got)
	}
	e, _, err := l.At(size)
	if err != nil || e.Kind != string(lemma.KRequestForgotten) || e.Turn != "t_1" || !bytes.Contains(e.Body, []byte(`"sums":["`+sum(gone)+`"]`)) {
		t.Errorf("entry %d: %+v %v", size, e, err)
	}
	asked(t, l, "t_6", back) // named again: it is there again
	for text, there := range map[string]bool{gone: false, kept: true, back: true} {
		if got, err := l.Blob(sum(text)); (err == nil) != there || there && string(got) != text {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	if r := verified(t, l); r.Blobs != 2 || r.Forgotten != 1 {
		t.Errorf("report: %+v", r)
	}

	tar := exported(t, l)
	if a, _ := agree(t, tar); !a.OK() || a.Blobs != 2 || a.Forgotten != 1 {
		t.Fatalf("%+v", a)
	}
	file, target := filepath.Join(t.TempDir(), "x.tar"), filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(file, tar, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := ledger.Import(ctx, file, target, archive.Options{}); err != nil {
		t.Fatalf("%v %+v", err, r)
	}
	o := b.opt
	o.CheckpointFile = ""
	on, err := ledger.Open(target, o)
	if err != nil {
		t.Fatal(err)
	}
	if r := verified(t, on); r.Blobs != 2 || r.Forgotten != 1 {
		t.Errorf("imported: %+v", r)
	}
	if err := on.Close(); err != nil {
		t.Fatal(err)
	}

	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.Rebuild(ctx, b.path(), b.opt); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ledger.Repair(ctx, b.path(), b.opt); err != nil {
		t.Fatal(err)
	}
	l = b.open(t)
	if r := verified(t, l); r.Blobs != 2 {
		t.Errorf("repaired: %+v", r)
	}
	if _, err := l.Blob(sum(gone)); err == nil {
		t.Error("a repair brought back what was forgotten")
	}
}

// TestRepairForgotten: what was forgotten behind the part that can be proved does
// not come back with the page on which it once stood.
func TestRepairForgotten(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	now := begin
	b.opt.Now = func() time.Time { return now }
	l := b.open(t)
	for range 40 { // free pages before it, which are taken first
		asked(t, l, "t_2", `{"a":"kept"}`)
	}
	noise := make([]byte, 60<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // never fails
	gone := hex.EncodeToString(noise)
	asked(t, l, "t_1", gone)
	now = now.Add(2 * time.Minute)
	add(t, l, note("this entry's checkpoint stays"))
	proved := l.Head().Size
	now = now.Add(2 * time.Minute)
	if _, _, err := l.ForgetRequest(ctx, "t_1", lemma.Answerer{UID: 1, Via: "cli"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(b.path())
	if err != nil {
		t.Fatal(err)
	}
	// Another time in the entry that forgets: it can be read, and not be proved.
	at := []byte(lemma.Time(now))
	if bytes.Count(raw, at) == 0 {
		t.Fatal("the entry is not where it was thought to be")
	}
	wrong := bytes.ReplaceAll(at, []byte("2026"), []byte("2025"))
	if err := os.WriteFile(b.path(), bytes.ReplaceAll(raw, at, wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	_, p, err := ledger.Repair(ctx, b.path(), b.opt)
	if err != nil || p.Size != proved {
		t.Fatalf("%+v %v, not %d entries", p, err, proved)
	}
	l = b.open(t)
	verified(t, l)
	if _, err := l.Blob(sum(gone)); err == nil {
		t.Error("a repair brought back what was forgotten")
	}
	if _, err := l.Blob(sum(`{"a":"kept"}`)); err != nil {
		t.Error(err)
	}
}

// TestRestoreForgotten: a backup from before does not bring a forgotten request
// back, whether the ledger that knows of it can be opened or not.
func TestRestoreForgotten(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		ctx := context.Background()
		b := newBench(t)
		l := b.open(t)
		gone, kept := `{"a":"gone"}`, `{"a":"kept"}`
		asked(t, l, "t_1", gone)
		asked(t, l, "t_2", kept)
		backup := filepath.Join(t.TempDir(), "backup.db")
		f, err := os.Create(backup)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Snapshot(ctx, f); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		asked(t, l, "t_3", `{"a":"later"}`) // the backup has no such turn
		for _, turn := range []string{"t_1", "t_3"} {
			if _, _, err := l.ForgetRequest(ctx, turn, lemma.Answerer{UID: 7, Via: "cli"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if damaged {
			wreck(t, b)
		}
		r, err := ledger.Restore(ctx, backup, b.path(), ledger.RestoreOptions{Options: b.opt, Older: true})
		if err != nil || r.Forgotten != 1 {
			t.Fatalf("damaged %t: %+v %v", damaged, r, err)
		}
		l = b.open(t)
		if got := verified(t, l); got.Blobs != 1 || got.Forgotten != 1 {
			t.Errorf("damaged %t: %+v", damaged, got)
		}
		if _, err := l.Blob(sum(gone)); err == nil {
			t.Errorf("damaged %t: a backup brought back what was forgotten", damaged)
		}
		if _, err := l.Blob(sum(kept)); err != nil {
			t.Errorf("damaged %t: %v", damaged, err)
		}
		if e, _, err := l.At(r.Size - 1); err != nil || e.Turn != "t_1" || !bytes.Contains(e.Body, []byte(`"uid":7`)) {
			t.Errorf("damaged %t: %+v %v", damaged, e, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A request that retention took first is not said to be forgotten by a person.
func TestForgetRequestTooLate(t *testing.T) {
	b := newBench(t)
	now := begin
	b.opt.Now = func() time.Time { return now }
	l := b.open(t)
	asked(t, l, "t_1", "old")
	now = begin.Add(48 * time.Hour)
	if n, err := l.Forget(context.Background(), now); err != nil || n != 1 {
		t.Fatalf("%d, %v", n, err)
	}
	if _, _, err := l.ForgetRequest(context.Background(), "t_1", lemma.Answerer{}); !errors.Is(err, ledger.ErrNotKept) || !strings.Contains(err.Error(), "retain") {
		t.Error(err)
	}
}

// An export that was begun before is not taken for a whole one.
func TestForgetRequestWhileExporting(t *testing.T) {
	l := newBench(t).open(t)
	asked(t, l, "t_1", "gone")
	small(t, l, 600) // more than the writer keeps back
	done := false
	_, err := l.Export(context.Background(), writerFunc(func(p []byte) (int, error) {
		if !done {
			done = true
			if _, _, err := l.ForgetRequest(context.Background(), "t_1", lemma.Answerer{}); err != nil {
				t.Error(err)
			}
		}
		return len(p), nil
	}), nil)
	if !errors.Is(err, ledger.ErrPruned) {
		t.Error(err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// forgottenVector is one export of a log with a request.forgotten.
type forgottenVector struct {
	File string `json:"file"`
	OK   bool   `json:"ok"`
	Why  string `json:"why"`
}

type forgottenCase struct {
	forgottenVector
	tar []byte
}

// forgottenCases are the exports of testdata/vectors/forgotten*.tar.
func forgottenCases(t *testing.T) []forgottenCase {
	const request = `{"model":"m"}`
	h := sum(request)
	named, list := `{"contract":"0.9","request_blob":"`+h+`"}`, func(sums string) string { return `{"contract":"0.9","sums":` + sums + `,"turn":"t_1"}` }
	pub := testKey.Public().(ed25519.PublicKey)
	origin := chain.Origin(pub)
	var out []forgottenCase
	for _, c := range []struct {
		name    string
		ok      bool
		why     string
		entries [][2]string
		blob    bool
	}{
		{"forgotten", true, "a request is named, forgotten, and not there", [][2]string{{"turn.opened", named}, {"request.forgotten", list(`["` + h + `"]`)}}, false},
		{"forgotten-again", true, "it is named once more behind that, and there", [][2]string{{"turn.opened", named}, {"request.forgotten", list(`["` + h + `"]`)}, {"turn.opened", named}}, true},
		{"forgotten-never", false, "it is missing, and no entry says so", [][2]string{{"turn.opened", named}}, false},
		{"forgotten-later", false, "it is named once more behind that, and not there", [][2]string{{"turn.opened", named}, {"request.forgotten", list(`["` + h + `"]`)}, {"turn.opened", named}}, false},
		{"forgotten-there", false, "it is forgotten and still there", [][2]string{{"turn.opened", named}, {"request.forgotten", list(`["` + h + `"]`)}}, true},
		{"forgotten-before", false, "it was forgotten before it was named", [][2]string{{"request.forgotten", list(`["` + h + `"]`)}, {"turn.opened", named}}, false},
		{"forgotten-other", false, "the list is of another kind of entry", [][2]string{{"turn.opened", named}, {"blob.forgotten", list(`["` + h + `"]`)}}, false},
		{"forgotten-upper", false, "upper case in the list", [][2]string{{"turn.opened", named}, {"request.forgotten", list(`["` + strings.ToUpper(h) + `"]`)}}, false},
		{"forgotten-mixed", false, "something else in the list beside it", [][2]string{{"turn.opened", named}, {"request.forgotten", list(`["` + h + `",1]`)}}, false},
		{"forgotten-text", false, "a text for the list", [][2]string{{"turn.opened", named}, {"request.forgotten", list(`"` + h + `"`)}}, false},
		{"forgotten-name", false, "another name for the list", [][2]string{{"turn.opened", named}, {"request.forgotten", `{"Sums":["` + h + `"],"contract":"0.9"}`}}, false},
		{"forgotten-deep", false, "the list stands in another member", [][2]string{{"turn.opened", named}, {"request.forgotten", `{"a":{"sums":["` + h + `"]},"contract":"0.9"}`}}, false},
		{"forgotten-no-name", true, "upper case where a blob would be named", [][2]string{{"turn.opened", `{"contract":"0.9","request_blob":"` + strings.ToUpper(h) + `"}`}}, false},
		{"pruned", true, "a request is named, pruned, and not there", [][2]string{{"turn.opened", named}, {"blob.forgotten", `{"contract":"0.9","through":1}`}}, false},
		{"pruned-odd", true, "what else stands beside through does not matter", [][2]string{{"turn.opened", named}, {"blob.forgotten", `{"blobs":"x","contract":"0.9","through":1}`}}, false},
		{"pruned-name", false, "another name for through", [][2]string{{"turn.opened", named}, {"blob.forgotten", `{"Through":1,"contract":"0.9"}`}}, false},
		{"pruned-text", false, "a text for through", [][2]string{{"turn.opened", named}, {"blob.forgotten", `{"contract":"0.9","through":"1"}`}}, false},
		{"pruned-late", false, "through is the entry's own number", [][2]string{{"turn.opened", named}, {"blob.forgotten", `{"contract":"0.9","through":2}`}}, false},
		{"pruned-less", false, "it is named behind through", [][2]string{{"turn.opened", named}, {"blob.forgotten", `{"contract":"0.9","through":0}`}}, false},
	} {
		f := &forged{}
		f.add(t, "chain.opened", `{"contract":"0.9","log_key":"`+hexOf(pub)+`"}`)
		for _, e := range c.entries {
			f.add(t, e[0], e[1])
		}
		if c.blob {
			f.blob = request
		}
		tar := f.tar(t, []string{mustLine(t, testKey)}, f.at(t, len(f.raw), origin, testKey))
		out = append(out, forgottenCase{forgottenVector{c.name + ".tar", c.ok, c.why}, tar})
	}
	return out
}

// TestForgottenVectors: both implementations say of each export what its row
// says, and name the same entry; what is sound can be imported and verified.
func TestForgottenVectors(t *testing.T) {
	cases := forgottenCases(t)
	if *makeVectors {
		rows := []forgottenVector{}
		for _, c := range cases {
			rows = append(rows, c.forgottenVector)
			if err := os.WriteFile(filepath.Join("testdata", "vectors", c.File), c.tar, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		writeVector(t, "forgotten.json", rows)
	}
	rows := vectorsOf[forgottenVector](t, "forgotten.json")
	if len(rows) != len(cases) {
		t.Fatalf("%d rows, %d cases", len(rows), len(cases))
	}
	for i, v := range rows {
		file := filepath.Join("testdata", "vectors", v.File)
		tar, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(tar, cases[i].tar) {
			t.Errorf("%s is made anew as other bytes", v.File)
		}
		a, b := agree(t, tar)
		if a.OK() != v.OK {
			t.Errorf("%s (%s): %+v\n%+v", v.File, v.Why, a.Problems, b.Problems)
		}
		if p, bad := a.First(); bad && b.First().Seq != p.Seq {
			t.Errorf("%s: they name entries %d and %d: %s, %s", v.File, p.Seq, b.First().Seq, p.What, b.First().What)
		}
		target := filepath.Join(t.TempDir(), "copy.db")
		if _, err := ledger.Import(context.Background(), file, target, archive.Options{}); (err == nil) != v.OK {
			t.Errorf("%s: import: %v", v.File, err)
		} else if err == nil {
			l, err := ledger.Open(target, ledger.Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			verified(t, l)
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
