package action

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// golden is the SHA-256 over the decisions on all own examples, in order. It
// changes with the rules, and with nothing else: not with the machine, the day or
// the order of a map. A change of the rules shows the new one when the test fails.
const golden = "be47eb2d8b8d7caef0555b37ff76469b9502797a2f309e37ab820d7fe9bd2544"

func TestGolden(t *testing.T) {
	files, err := filepath.Glob("shell/testdata/families/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	slices.Sort(files)
	sum := sha256.New()
	n := 0
	refused := 0
	for _, f := range append(files, "shell/testdata/commands.txt") {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(raw), "\n") {
			if p := strings.SplitN(line, " | ", 3); len(p) == 3 && line[0] != '#' {
				cmd := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\|`, "|").Replace(p[2])
				for _, a := range []Action{{Command: cmd}, {Tool: "Bash", Args: mustJSON(t, map[string]string{"command": cmd})}, {Raw: cmd}} {
					d := Decide(a, nil, Situation{})
					if b := mustJSON(t, d); n%2 == 0 && string(b) != string(mustJSON(t, Decide(a, nil, Situation{}))) {
						t.Errorf("%q: two decisions differ", cmd)
					} else {
						sum.Write(b)
					}
					if n++; !d.Allowed {
						refused++
					}
				}
			}
		}
	}
	if refused == 0 { // a run in which nothing was refused shows nothing
		t.Fatal("nothing was refused")
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != golden {
		t.Errorf("the decisions on %d own examples have the digest %s", n, got)
	}
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// corpus reads the commands of a labelled file that lies outside of the
// repository, in the folder GETTIER_CASES.
func corpus(t testing.TB, name string) []string {
	t.Helper()
	dir := os.Getenv("GETTIER_CASES")
	if dir == "" {
		t.Skip("GETTIER_CASES names no folder of labelled commands")
	}
	f, err := os.Open(filepath.Join(dir, name+".jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	sc := bufio.NewScanner(z)
	sc.Buffer(nil, 4<<20)
	for sc.Scan() {
		var r struct{ Command string }
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r.Command)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestGoldenCorpora tells the digest over labelled commands, twice the same.
func TestGoldenCorpora(t *testing.T) {
	for _, name := range []string{"guards.dev", "tldr.dev", "nl2bash.dev"} {
		cmds := corpus(t, name)
		var digests [2]string
		for i := range digests {
			sum := sha256.New()
			for _, c := range cmds {
				sum.Write(mustJSON(t, Decide(Action{Command: c}, nil, Situation{})))
			}
			digests[i] = hex.EncodeToString(sum.Sum(nil))
		}
		if digests[0] != digests[1] {
			t.Errorf("%s: two runs differ", name)
		}
		t.Logf("%s: %d commands, digest %s", name, len(cmds), digests[0])
	}
}
