package shell

import (
	"os"
	"strings"
	"testing"
)

// TestTyped scores commands that were labelled before any table was looked at. Every
// one that destroys must be seen and no other may ask; at least so many of the others
// are proven to read only.
func TestTyped(t *testing.T) {
	raw, err := os.ReadFile("testdata/typed.txt")
	if err != nil {
		t.Fatal(err)
	}
	destroys, seen, runs, asks, proven := 0, 0, 0, 0, 0
	for line := range strings.SplitSeq(string(raw), "\n") {
		class, cmd, ok := strings.Cut(line, " | ")
		if !ok || line[0] == '#' {
			continue
		}
		cmd = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\|`, "|").Replace(cmd)
		got := Read(cmd)
		switch class {
		case "destroy":
			if destroys++; got.Effect.AtLeast(Opaque) { // it would not run unasked
				seen++
			} else {
				t.Errorf("missed %q: %s by %s", cmd, got.Effect, got.Rule)
			}
		case "run":
			if runs++; got.Effect.AtLeast(Opaque) {
				asks++
				t.Errorf("asks for %q: %s by %s", cmd, got.Effect, got.Rule)
			}
			if got.Effect == ReadOnly {
				proven++
			}
		default:
			t.Fatalf("no class: %q", line)
		}
	}
	t.Logf("recall %d/%d, false flags %d/%d, proven read_only %d", seen, destroys, asks, runs, proven)
	if destroys < 530 || runs < 700 || proven < 300 {
		t.Errorf("%d commands that destroy, %d that do not, %d of them proven read_only", destroys, runs, proven)
	}
}
