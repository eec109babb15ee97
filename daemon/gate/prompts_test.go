package gate

import (
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
)

// labelled is one prompt of ../route/testdata/prompts/labels.txt.
type labelled struct {
	class lemma.Class
	tools bool
	why   string
	text  string
}

// kept is the half that only the figure is taken from: what fails in it is
// counted and not shown, so that nobody tunes a rule on it.
func (l labelled) kept() bool { return sha256.Sum256([]byte(l.text))[0]&1 == 1 }

func labels(t testing.TB) []labelled {
	t.Helper()
	raw, err := os.ReadFile("../route/testdata/prompts/labels.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []labelled
	var section labelled
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "", line[0] == '#':
		case line[0] == '[':
			head, why, ok := strings.Cut(line[1:], "] ")
			class, client, ok2 := strings.Cut(head, " ")
			if !ok || !ok2 || why == "" || client != "tools" && client != "chat" || lemma.Class(class).Rank() < 0 {
				t.Fatalf("a section like no other: %s", line)
			}
			section = labelled{class: lemma.Class(class), tools: client == "tools", why: why}
		default:
			l := section
			l.text = strings.ReplaceAll(line, `\n`, "\n")
			out = append(out, l)
		}
	}
	return out
}

// TestLabelledPrompts is the router's figure: at least 98 of 100 right, in the
// half that rules were made on and in the half that nobody looked at.
func TestLabelledPrompts(t *testing.T) {
	all := labels(t)
	if len(all) < 400 {
		t.Errorf("only %d prompts are labelled", len(all))
	}
	seen := map[string]bool{}
	var total, wrong [2]int
	confused := map[string]int{}
	for _, l := range all {
		if seen[l.text] {
			t.Errorf("twice: %q", l.text)
		}
		seen[l.text] = true
		half := 0
		if l.kept() {
			half = 1
		}
		total[half]++
		got, why := PromptClass(l.text, l.tools)
		if len(why) == 0 {
			t.Errorf("no reason for a prompt of class %s", l.class)
		}
		if got == l.class {
			continue
		}
		wrong[half]++
		if half == 0 {
			t.Logf("%q: %s by %v, labelled %s (%s)", l.text, got, why, l.class, l.why)
		} else {
			confused[fmt.Sprintf("%s instead of %s", got, l.class)]++
		}
	}
	for half, name := range [...]string{"half for tuning", "half for the figure"} {
		right := 100 * float64(total[half]-wrong[half]) / float64(total[half])
		t.Logf("%s: %d of %d right, %.1f %%", name, total[half]-wrong[half], total[half], right)
		if right < 98 {
			t.Errorf("%s: %.1f %% right, at least 98 are wanted", name, right)
		}
	}
	var kinds []string
	for k, n := range confused {
		kinds = append(kinds, fmt.Sprintf("%d × %s", n, k))
	}
	slices.Sort(kinds)
	t.Log(kinds)
}

// TestForcefulSpellings: each of them is found wherever it stands in an act.
func TestForcefulSpellings(t *testing.T) {
	for _, f := range forceful {
		for _, text := range []string{"run " + f + " x", "please run " + f + " x and then continue"} {
			if got, why := PromptClass(text, true); got != lemma.Destructive {
				t.Errorf("%q: %s by %v", text, got, why)
			}
		}
	}
}

// TestPromptClassAllocations guards the router's cost by a count, never by time.
func TestPromptClassAllocations(t *testing.T) {
	all := labels(t)
	n := testing.AllocsPerRun(5, func() {
		for _, l := range all {
			PromptClass(l.text, l.tools)
		}
	}) / float64(len(all))
	if n > 8 {
		t.Errorf("%.1f allocations a prompt", n)
	}
}

// BenchmarkLabelledPrompts is the figure of one prompt, over all that are labelled.
func BenchmarkLabelledPrompts(b *testing.B) {
	all := labels(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l := all[i%len(all)]
		PromptClass(l.text, l.tools)
	}
}

// BenchmarkLongPrompt is the most that is ever looked at.
func BenchmarkLongPrompt(b *testing.B) {
	text := strings.Repeat("Please look at the upload handler, fix what is wrong there and restart nginx. ", 100)
	for b.Loop() {
		PromptClass(text, true)
	}
}
