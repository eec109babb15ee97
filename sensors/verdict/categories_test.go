package verdict

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Every category of the table has claims that lead to it and claims, about
// other things, that do not.
func TestCategoryExamples(t *testing.T) {
	data, err := os.ReadFile("testdata/categories.txt")
	if err != nil {
		t.Fatal(err)
	}
	yes, no := map[string]int{}, map[string]int{}
	var categories []string
	for n, line := range strings.Split(string(data), "\n") {
		kind, claim, _ := strings.Cut(line, " ")
		switch {
		case line == "" || kind == "#":
		case kind == "+" || kind == "-":
			var found []string
			for _, h := range Categories(claim, nil) {
				found = append(found, h.Category)
			}
			for _, c := range categories {
				if slices.Contains(found, c) != (kind == "+") {
					t.Errorf("line %d: %q and %s: found %v", n+1, claim, c, Categories(claim, nil))
				}
				if kind == "+" {
					yes[c]++
				} else {
					no[c]++
				}
			}
		default:
			categories = strings.Fields(line)
			for _, c := range categories {
				if !Known(c, nil) {
					t.Errorf("line %d: there is no category %s", n+1, c)
				}
			}
		}
	}
	for c := range keywords {
		if yes[c] < 2 || no[c] < 2 {
			t.Errorf("%s has %d claims about it and %d beside it, at least 2 of each are wanted", c, yes[c], no[c])
		}
	}
	if len(yes) < 40 {
		t.Errorf("only %d categories", len(yes))
	}
}
