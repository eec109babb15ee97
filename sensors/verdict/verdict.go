// Package verdict is where a claim meets a reading: which sensors a lemma is
// matched to, what a reading says about a claim, when two claims are the same.
// Pure and deterministic, so that a log can be replayed. Everything in it leans
// one way: a fabricated contradiction is the one outcome that must never
// happen, so whatever is unclear gives no verdict. What follows from a verdict
// is decided in daemon/gate; no I/O and no policy live here.
package verdict

import (
	"strings"
	"unicode"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/spec"
)

// Why there is no verdict, in Result.Reason. Hedged, Compound and Negated are
// followed by ":" and the word that did it.
const (
	MissingValue   = extract.Missing
	AmbiguousValue = extract.Ambiguous
	TypeMismatch   = extract.Mismatch
	NoRule         = "no_rule"
	Compound       = "compound"
	Hedged         = "hedged"
	Negated        = "negated"
	NoSensor       = "no_sensor"
)

// What settled a claim, in Result.Rule; a curated rule is judge[N], from 1.
const (
	RuleSymbols     = "symbols"
	RuleObservation = "falsifying_observation"
	RuleFalsifier   = "falsifier"
	RuleExpect      = "expect"
)

// Claim is what is judged. Lemma brings falsifiers and symbols; with Expect
// the text is not read at all, only the expectation.
type Claim struct {
	Text    string // default Lemma.Claim
	Lemma   *lemma.Lemma
	Expect  *spec.Expect
	Symbols Symbols // nil: nothing is known of any symbol
}

// Presence is what is known of a symbol.
type Presence int

const (
	Unknown Presence = iota
	Exists
	Absent
)

// Symbols says whether a dotted API path exists in what is installed here, and
// where that was looked up. Only Absent ever settles anything.
type Symbols interface {
	Presence(path string) (Presence, string)
}

// Result is one judgement. Measured is one line of at most 200 bytes.
type Result struct {
	Verdict    lemma.Verdict
	Reason     string
	Rule       string
	Sensor     string // id
	Invocation string
	Key        string
	Measured   string
	Claimed    string // canonical source text of the claimed value
	Operator   lemma.Operator
	Type       spec.Type
	Place      string
	Warnings   []string // falsifiers that were dropped, and why
}

// Combine is the verdict of several sensors on one claim: contradicted before
// confirmed before inconclusive before unjudged. None at all is unverifiable.
func Combine(results ...Result) Result {
	rank := func(v lemma.Verdict) int {
		switch v {
		case lemma.Contradicted:
			return 4
		case lemma.Confirmed:
			return 3
		case lemma.Inconclusive:
			return 2
		case lemma.Unjudged:
			return 1
		}
		return 0
	}
	best := Result{Verdict: lemma.Unverifiable, Reason: NoSensor}
	for _, r := range results {
		if rank(r.Verdict) > rank(best.Verdict) {
			best = r
		}
	}
	return best
}

// CouldNotRun is the result of a matched sensor that failed; word is one of the
// runner's reasons.
func CouldNotRun(sensor, invocation, word string) Result {
	return Result{Verdict: lemma.Inconclusive, Reason: "could_not_run:" + word, Sensor: sensor, Invocation: invocation}
}

// text is the claim's own words.
func (c Claim) text() string {
	if c.Text == "" && c.Lemma != nil {
		return c.Lemma.Claim
	}
	return c.Text
}

// maxMeasured bounds what a result shows of a value.
const maxMeasured = 200

// oneLine makes a value fit to be shown: control characters become spaces.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, s)
	if s = strings.TrimSpace(s); len(s) > maxMeasured {
		s = strings.ToValidUTF8(s[:maxMeasured-3], "") + "…"
	}
	return s
}
