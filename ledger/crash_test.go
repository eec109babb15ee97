package ledger_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

func iterPull[K, V any](seq iter.Seq2[K, V]) (func() (K, V, bool), func()) { return iter.Pull2(seq) }

const crashDir = "LEDGER_CRASH_DIR"

// TestMain turns the test binary into the child that gets killed, or that looks
// at a damaged file.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		appendForEver(dir)
	}
	if dir := os.Getenv(powerDir); dir != "" {
		appendUntilDark(dir)
	}
	if path := os.Getenv(inspectPath); path != "" {
		inspectChild(path)
	}
	os.Exit(m.Run())
}

// appendForEver appends from several goroutines and prints each sequence number
// after its commit.
func appendForEver(dir string) {
	b := &bench{dir: dir, opt: ledger.Options{Key: testKey, CheckpointFile: dir + "/keys/checkpoint", MmapSize: 64 << 20}}
	l, err := ledger.Open(b.path(), b.opt)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	start := l.Head().Size
	var out sync.Mutex
	for p := range 4 {
		go func() {
			for i := 0; ; i++ {
				turn := fmt.Sprintf("t_%d_%d_%d", start, p, i)
				text := []byte(strings.Repeat(turn, 50))
				r, err := l.Append(context.Background(), ledger.Draft{Turn: turn, Body: opened(fmt.Sprint("c", p))},
					ledger.Draft{Turn: turn, Body: lemma.TurnInjected{BlockBlob: sum(string(text)), Anchor: "a"}, Blobs: [][]byte{text}})
				if err == nil && i%2 == 0 {
					r, err = l.Append(context.Background(), ledger.Draft{Turn: turn, Body: lemma.TurnClosed{Decision: lemma.DecReleased}})
				}
				out.Lock()
				fmt.Println(r.Last, err)
				out.Unlock()
			}
		}()
	}
	select {}
}

// TestKill kills the process amid appends, again and again, with -thorough 200
// times. Whatever it had
// acknowledged is there, everything verifies, and the next start says what
// stopped where.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills eight processes")
	}
	b := newBench(t)
	rounds := 8
	if *thorough {
		rounds = 200
	}
	for round := range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashDir+"="+b.dir)
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var last uint64
		lines := bufio.NewScanner(pipe)
		for n := 0; lines.Scan(); n++ {
			seq, rest, _ := strings.Cut(lines.Text(), " ")
			v, err := strconv.ParseUint(seq, 10, 64)
			if err != nil || rest != "<nil>" {
				t.Errorf("child says %q", lines.Text())
			}
			last = max(last, v)
			if n == 10+7*(round%8) {
				cmd.Process.Kill()
			}
		}
		cmd.Wait()
		l := b.open(t)
		if size := l.Head().Size; size <= last {
			t.Errorf("round %d: %d was acknowledged, size is %d", round, last, size)
		}
		open, err := l.Turns(1000, "", ledger.TurnFilter{Open: true})
		if err != nil || len(open.Items) != 0 {
			t.Errorf("round %d: %d turns still open, %v", round, len(open.Items), err)
		}
		entries, err := l.Entries(l.Head().Size-2, 2)
		if err != nil || len(entries) != 2 || entries[0].Kind != "chain.opened" || entries[1].Kind != "chain.recovered" {
			t.Fatalf("round %d: the log ends with %+v, %v", round, entries, err)
		}
		var rec lemma.ChainRecovered
		if err := json.Unmarshal(entries[1].Body, &rec); err != nil || rec.Checked == 0 {
			t.Errorf("round %d: %+v, %v", round, rec, err)
		}
		for _, s := range rec.Turns {
			row, err := l.Turn(s.Turn)
			if err != nil || row.Stage != s.At || row.ClosedAt == "" || row.Decision != lemma.DecError || !strings.Contains(row.Error, string(s.At)) {
				t.Errorf("round %d: stopped %+v, row %+v, %v", round, s, row, err)
			}
		}
		if round > 0 && len(rec.Turns) == 0 {
			t.Logf("round %d: no turn was open", round)
		}
		verified(t, l)
		l.Close()
	}
}
