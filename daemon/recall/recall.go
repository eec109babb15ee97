// Package recall chooses the knowledge that a prompt calls up: by its topics, by
// the categories of the keyword table that both speak of, and by the words that
// they share. Pure and deterministic, so that a log can be replayed: no clock, no
// order of a map. What is then told to whom is decided in daemon/turn.
package recall

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/verdict"
)

// About is what a prompt is about.
type About struct {
	Text     string              // the person's words; the first 16 KiB are read
	Dir      string              // where the agent stands, from the project's root on
	Matching map[string][]string // own phrases of categories, as the registry has them
}

// Hit is a piece of knowledge that was called up, and why in one line.
type Hit struct {
	lemma.Knowledge
	Score int
	Why   string
}

const (
	maxRead = 16 << 10
	// A topic was written for this purpose; a category is a table's guess.
	perTopic, perCategory, perWord = 8, 3, 1
	// maxCategories bounds what the table adds, since its categories overlap.
	maxCategories = 2
)

// Rank returns the pieces that the prompt calls up, the best first; of equals the
// project's before the host's, then the older. A piece is called up by a topic, by
// two words of its text, or by one that stands in a category of both.
func Rank(items []lemma.Knowledge, a About) []Hit {
	text := a.Text[:min(len(a.Text), maxRead)]
	said, categories := words(text+"\n"+a.Dir), categoriesOf(text, a.Matching)
	var out []Hit
	for _, k := range items {
		if h, ok := match(k, said, categories, a.Matching); ok {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(level(a.Scope), level(b.Scope)), cmp.Compare(a.ID, b.ID))
	})
	return out
}

func level(scope string) int {
	if scope == "host" {
		return 1
	}
	return 0
}

func match(k lemma.Knowledge, said map[string]bool, categories []string, own map[string][]string) (Hit, bool) {
	h := Hit{Knowledge: k}
	why := func(format string, args ...any) {
		if h.Why == "" {
			h.Why = fmt.Sprintf(format, args...)
		}
	}
	topics := 0
	for _, t := range k.Topics {
		if slices.Contains(categories, strings.ToLower(t)) || all(said, words(t)) {
			topics++
			why("topic:%s", t)
		}
	}
	shared := 0
	for _, t := range slices.Sorted(keys(words(k.Text))) {
		if said[t] && !stop[t] {
			shared++
		}
	}
	common := 0
	if shared > 0 { // the table reads a sentence, which costs more than a look-up
		for _, c := range categoriesOf(k.Text, own) {
			if common < maxCategories && slices.Contains(categories, c) {
				common++
				why("category:%s", c)
			}
		}
	}
	if topics == 0 && shared < 2 && common == 0 {
		return h, false
	}
	why("words:%d", shared)
	h.Score = topics*perTopic + common*perCategory + shared*perWord
	return h, true
}

func keys(m map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// all reports whether every word is said; of no words none is.
func all(said, words map[string]bool) bool {
	for w := range words {
		if !said[w] {
			return false
		}
	}
	return len(words) > 0
}

// words are the words of a text in lower case, without the s of a plural.
func words(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
			w = w[:len(w)-1]
		}
		if len(w) > 1 {
			out[w] = true
		}
	}
	return out
}

// categoriesOf are the categories that the keyword table finds in a text, sorted,
// sentence by sentence: a phrase's words have to stand together.
func categoriesOf(text string, own map[string][]string) []string {
	var out []string
	for _, s := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\n\r.?!;", r) }) {
		for _, h := range verdict.Categories(s, own) {
			out = append(out, h.Category)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// stop are words that join any two sentences.
var stop = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`the and for are was were has have had not with that this from its into than then they their there will would can could
		should does did been being which when where what who how all any each per via use used using set only also just but our one two you your we it is in on
		at by to of or as an be do if no so up out my me he she please make sure need want add change fix file code here now`) {
		m[w] = true
	}
	return m
}()
