package verdict

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/spec"
)

func mustTemplate() *regexp.Regexp {
	return regexp.MustCompile(`\{\{\s*[A-Za-z_][A-Za-z0-9_]*\s*\}\}`)
}

// take checks what a rule took from a claim. A number must be a whole one
// (`\d+ MB` finds 5 MB in 1.5 MB), stated exactly, and bounded, if at all, on
// the side that the rule's operator means. end is where the rule's match ends.
func (b *bound) take(claim *sentence, lo, hi, start, end int) string {
	got := claim.text[lo:hi]
	if got == "" {
		return MissingValue
	}
	lower := claim.lower
	if len(lower) != len(claim.text) { // folding changed lengths: offsets mean nothing
		lower = claim.text
	}
	first, last := isDigit(got[0]), isDigit(got[len(got)-1])
	numeral := first || spelled[strings.ToLower(got)] != "" || numerals[firstWord(got)]
	b.numeric = b.numeric || numeral
	if determiners[strings.ToLower(got)] || !numeral && (partOfName(claim.text, lo, hi, start, end) || inSentence(claim.text, lo, hi, end)) {
		return AmbiguousValue
	}
	b.word = b.word || !numeral
	if !numeral && !last {
		return ""
	}
	if first && cutBefore(claim.text, lo) || numeral && share.MatchString(claim.text[:lo]) {
		return AmbiguousValue
	}
	after := claim.text[hi:]
	switch {
	case last && decimals.MatchString(after):
		// 14 of 14.11: a contradiction of the first components stands.
		b.partial = true
	case cutAfter(after):
		return AmbiguousValue
	case last && (end == hi || b.rule.Type == spec.Bytes || b.rule.Type == spec.Duration) && (startsWord(after) || unitFollows(after)):
		return AmbiguousValue
	}
	if !numeral {
		return ""
	}
	if w := boundConflict(lower[:lo], b.rule); w != "" {
		return w
	}
	if m := strings.TrimSpace(trailBound.FindString(strings.ToLower(after))); m != "" && !names(b.rule.When, m) {
		return Hedged + ":" + m
	}
	return ""
}

// partOfName: the match ends in the middle of a name, as [a-z]+ does in app.rw.
func partOfName(text string, lo, hi, start, end int) bool {
	joiner := func(s string) bool { return s != "" && strings.IndexByte(".-_@/:+", s[0]) >= 0 }
	if after := text[hi:]; end == hi {
		if startsWord(after) || joiner(after) && startsWord(after[1:]) {
			return true
		}
	}
	if before := text[:lo]; start == lo && before != "" {
		last := before[len(before)-1:]
		if endsWord(before) || joiner(last) && last != ":" && endsWord(before[:len(before)-1]) {
			return true
		}
	}
	return false
}

// inSentence: what was taken is a word of the sentence rather than a name: an
// ordinary word, or one that another word follows which the pattern does not
// read. In quotes anything is a name.
func inSentence(text string, lo, hi, end int) bool {
	got := strings.ToLower(text[lo:hi])
	if strings.ContainsAny(got, " \"'`") || lo > 0 && strings.IndexByte("\"'`", text[lo-1]) >= 0 {
		return false
	}
	if ordinary[got] || strings.HasSuffix(got, "ly") && len(got) > 4 {
		return true
	}
	if end > hi {
		return false // the pattern reads on
	}
	rest := strings.TrimLeft(text[hi:], "\"'`")
	next := tokens(rest)
	return len(next) > 0 && !afterValue[next[0]]
}

// participle is the ending of a word that says what was done to a thing, or
// what it does.
func participle(word string) string {
	for _, end := range []string{"ed", "ing"} {
		if len(word) > len(end)+2 && strings.HasSuffix(strings.ToLower(word), end) {
			return end
		}
	}
	return ""
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func startsWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return wordRune(r)
}

func endsWord(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return wordRune(r)
}

// decimals: the number before goes on behind a point.
var decimals = regexp.MustCompile(`^\.\d`)

func firstWord(s string) string {
	w, _, _ := strings.Cut(strings.ToLower(s), " ")
	return w
}

// share: 2 of 3, one out of three.
var share = regexp.MustCompile(`(?i)(?:\d|\b(?:one|two|three|four|five|six|some|none|most|all)) (?:out )?of (?:the |its |our )?$`)

// A range has two ends, and no number of it is the one that is claimed: 2 to 3,
// 2 GB to 4 GB, two through four, 2..4.
const rangeMark = `(?:to|through|thru|till|up to|-|–|−|\.\.\.?)`

var (
	rangeBefore = regexp.MustCompile(`(?i)(?:\d[\w.,]*%?|\b(?:one|two|three|four|five|six|seven|eight|nine|ten))(?: ?[a-zµ%]{1,12})? ?` + rangeMark + ` ?$`)
	rangeAfter  = regexp.MustCompile(`(?i)^ ?(?:[a-zµ%]{1,12} )?` + rangeMark + ` ?(?:\d|(?:one|two|three|four|five|six|seven|eight|nine|ten)\b)`)
)

// cutBefore: the number that ends here began earlier, has a sign or a bare
// point (.5), or is the end of a range.
func cutBefore(s string, lo int) bool {
	if lo == 0 {
		return false
	}
	head := s[:lo]
	prev := head[len(head)-1]
	if isDigit(prev) || rangeBefore.MatchString(head) {
		return true
	}
	for _, joint := range []string{".", ",", ":", "-", "–", "−", "/", "_"} {
		if rest, ok := strings.CutSuffix(head, joint); ok {
			// report-25 and /tmp/25 are names, localhost:25 is not.
			return joint != ":" || rest == "" || rest[len(rest)-1] == ' ' || isDigit(rest[len(rest)-1])
		}
	}
	return false
}

// cutAfter: the number goes on (25,000, 10-25), is a rate (25 MB/s), or a share.
func cutAfter(after string) bool {
	if after == "" {
		return false
	}
	if isDigit(after[0]) || after[0] == '%' || rangeAfter.MatchString(after) {
		return true
	}
	if after[0] == '/' && len(after) > 1 {
		return true
	}
	for _, joint := range []string{",", ":", "-", "–", "−", "_", " - ", " – ", " to ", " % "} {
		if rest, ok := strings.CutPrefix(after, joint); ok && rest != "" && isDigit(rest[0]) {
			return true
		}
	}
	return false
}

// unitFollows: the rule left the number's unit behind.
func unitFollows(after string) bool {
	next := tokens(after)
	return len(next) > 0 && (sizeText.MatchString("1 "+next[0]) || timeText.MatchString("1 "+next[0]))
}

// side is the bound that the words before a number make it, "" for none. The
// longer reading is meant: no less than is not less than.
func side(before string) (op lemma.Operator, words string) {
	upper, lower := upperBound.FindString(before), lowerBound.FindString(before)
	words, op = upper, lemma.Le
	strictly := lemma.Lt
	if len(lower) > len(upper) {
		words, op, strictly = lower, lemma.Ge, lemma.Gt
	}
	if words == "" {
		return "", ""
	}
	if strictBound.MatchString(before) && !strings.HasPrefix(words, "no") {
		op = strictly
	}
	return op, strings.TrimSpace(words)
}

// exactly: a bound that for one number means the number.
var exactly = words(`only just merely`)

var upTo = regexp.MustCompile(`\bup to\s*$`)

// boundConflict holds the words before a number against the rule's operator.
func boundConflict(before string, r *spec.Rule) string {
	if m := strings.TrimSpace(approximate.FindString(before)); m != "" && !names(r.When, m) {
		return Hedged + ":" + m
	}
	if r.Operator == lemma.Eq && upTo.MatchString(before) && !names(r.When, "up to") {
		return Hedged + ":up to" // a bound, though of a limit it is the limit itself
	}
	op, word := side(before)
	switch {
	case op == "", op == r.Operator, names(r.When, word),
		op == lemma.Gt && r.Operator == lemma.Ge, op == lemma.Lt && r.Operator == lemma.Le,
		r.Operator == lemma.Eq && exactly[word]:
		return ""
	}
	return Hedged + ":" + word
}

// aNumber is a numeral of a claim, spelled or in digits.
var aNumber = regexp.MustCompile(`\b(?:\d[\w.]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|single)\b`)

// constantBounds does the same for a rule whose value is a constant: at least
// one process is not one process.
func constantBounds(claim *sentence, r *spec.Rule) string {
	for _, at := range aNumber.FindAllStringIndex(claim.lower, 16) {
		if w := boundConflict(claim.lower[:at[0]], r); w != "" {
			return w
		}
		if m := strings.TrimSpace(trailBound.FindString(claim.lower[at[1]:])); m != "" && !names(r.When, m) {
			return Hedged + ":" + m
		}
	}
	return ""
}
