// Package story tells a turn from its entries, stage by stage, as plain lines:
// what was injected, declared, measured, judged and by which rule, answered,
// decided and sent. The command prints them and the TUI draws them. Lines hold
// foreign text as it came: whoever shows them cleans them. No colours, no layout
// and no calls to the daemon belong here.
package story

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/tui/clean"
	"gettier.dev/gettierd/tui/words"
)

// Line is one line of a story. Since counts from the turn's opening and is
// negative when that is unknown.
type Line struct {
	Stage string
	Since time.Duration
	Seq   uint64 // entry that it is told from
	Text  string
}

// Options say how a story is told.
type Options struct {
	Stamp    func(ts string) string   // a chain time for reading
	Evidence func(blob string) []byte // what a sensor printed; nil leaves it out
}

// teller tells a turn. Readings are known to it before a verdict names them, so
// each stage can say its part.
type teller struct {
	o      Options
	d      ipc.TurnDetail
	values map[string][]string // invocation → key = value, from facts and verdicts
	out    []Line
}

// Tell tells what happened in a turn, in the order of its entries.
func Tell(d ipc.TurnDetail, o Options) []Line {
	t := newTeller(d, o)
	for _, e := range d.Entries {
		t.entry(e)
	}
	return t.out
}

// Gist is one line on an entry, for lists.
func Gist(e ipc.Entry, o Options) string {
	t := newTeller(ipc.TurnDetail{}, o)
	t.entry(e)
	if len(t.out) == 0 {
		return ""
	}
	return t.out[0].Text
}

func newTeller(d ipc.TurnDetail, o Options) *teller {
	if o.Stamp == nil {
		o.Stamp = func(ts string) string { return ts }
	}
	t := &teller{o: o, d: d, values: map[string][]string{}}
	t.collect()
	return t
}

// Head is what stands above a story.
func Head(d ipc.TurnDetail, o Options) []string {
	took := ""
	if s, ok := words.Between(d.OpenedAt, d.ClosedAt); ok {
		took = "  " + words.Millis(s.Milliseconds())
	}
	out := []string{
		fmt.Sprintf("turn %s  %s  %s  %s  %s%s", d.ID, words.Decision(d.Decision), d.Class, d.Scope, o.Stamp(d.OpenedAt), took),
		fmt.Sprintf("%s → %s %s  %s", words.Or(d.Agent, "unknown agent"), d.Upstream, d.Model, d.Format),
	}
	if d.Prompt != "" {
		out = append(out, "“"+strings.TrimSpace(clean.Line(d.Prompt))+"”")
	}
	return out
}

// Foot says where the story stands on the chain.
func Foot(d ipc.TurnDetail) []string {
	es := d.Entries
	if len(es) == 0 {
		return nil
	}
	out := []string{fmt.Sprintf("entries %s to %s of the chain", words.Thousands(es[0].Seq), words.Thousands(es[len(es)-1].Seq))}
	if d.ClosedAt == "" {
		out = append(out, "the turn is open; its last entry is "+d.Stage)
	}
	return out
}

// HasEvidence reports whether sensors printed something that was kept.
func HasEvidence(d ipc.TurnDetail) bool {
	return slices.ContainsFunc(d.Entries, func(e ipc.Entry) bool { return e.Kind == string(lemma.KSensorInvoked) })
}

// Request is the blob of the request that a turn began with, or why there is none.
func Request(d ipc.TurnDetail) (sum, why string) {
	why = "those of turns that begin below class change are not kept"
	for _, e := range d.Entries {
		switch lemma.Kind(e.Kind) {
		case lemma.KTurnOpened:
			var b lemma.TurnOpened
			if json.Unmarshal(e.Body, &b) == nil {
				sum = b.RequestBlob
			}
		case lemma.KRequestForgotten:
			sum, why = "", "it was forgotten (gettier forget)"
		}
	}
	return sum, why
}

// Judged is a claim's verdict, and the value that it rests on.
type Judged struct {
	lemma.ClaimJudged
	MS    int64 // how long the reading took, -1 when it was reused or unknown
	Facts []string
}

// Verdicts lists what was judged in a turn: the contradicted first, then in order.
func Verdicts(d ipc.TurnDetail) []Judged {
	t := newTeller(d, Options{})
	took := map[string]int64{}
	var out []Judged
	for _, e := range d.Entries {
		switch lemma.Kind(e.Kind) {
		case lemma.KSensorInvoked:
			var b lemma.SensorInvoked
			if json.Unmarshal(e.Body, &b) == nil && b.Invocation.Reused == "" {
				took[b.Invocation.ID] = b.Invocation.DurationMS
			}
		case lemma.KClaimJudged:
			var b lemma.ClaimJudged
			if json.Unmarshal(e.Body, &b) != nil {
				continue
			}
			j := Judged{ClaimJudged: b, MS: -1, Facts: t.values[b.Invocation]}
			if ms, ok := took[b.Invocation]; ok {
				j.MS = ms
			}
			out = append(out, j)
		}
	}
	slices.SortStableFunc(out, func(a, b Judged) int { return rank(a.Verdict) - rank(b.Verdict) })
	return out
}

// Answers lists what people answered in a turn.
func Answers(d ipc.TurnDetail) []lemma.Answer {
	var out []lemma.Answer
	for _, e := range d.Entries {
		var b lemma.HoldAnsweredBody
		if e.Kind == string(lemma.KHoldAnswered) && json.Unmarshal(e.Body, &b) == nil {
			out = append(out, b.Answers...)
		}
	}
	return out
}

func rank(v lemma.Verdict) int {
	switch v {
	case lemma.Contradicted:
		return 0
	case lemma.Inconclusive, lemma.Unjudged:
		return 1
	case lemma.Confirmed, lemma.VerdictTold, lemma.Waived:
		return 2
	}
	return 3
}

// Output finds the blob that holds what an invocation printed.
func Output(d ipc.TurnDetail, invocation string) (inv lemma.Invocation, ok bool) {
	for _, e := range d.Entries {
		switch lemma.Kind(e.Kind) {
		case lemma.KSensorInvoked:
			var b lemma.SensorInvoked
			if json.Unmarshal(e.Body, &b) == nil && b.Invocation.ID == invocation {
				return b.Invocation, true
			}
		case lemma.KSensorFailed:
			var b lemma.SensorFailed
			if json.Unmarshal(e.Body, &b) == nil && b.Invocation.ID == invocation {
				return b.Invocation, true
			}
		}
	}
	return inv, false
}

// collect finds the values that readings gave, which stand in other entries.
func (t *teller) collect() {
	add := func(inv, key, value string) {
		v := key + " = " + words.Quote(value)
		if inv != "" && key != "" && !slices.Contains(t.values[inv], v) {
			t.values[inv] = append(t.values[inv], v)
		}
	}
	for _, e := range t.d.Entries {
		switch lemma.Kind(e.Kind) {
		case lemma.KFactWritten:
			var b lemma.FactWritten
			if json.Unmarshal(e.Body, &b) == nil {
				add(b.Fact.Source.Ref, b.Fact.Key, b.Fact.Value)
			}
		case lemma.KClaimJudged:
			var b lemma.ClaimJudged
			if json.Unmarshal(e.Body, &b) == nil && b.Measured != "" {
				add(b.Invocation, b.Key, b.Measured)
			}
		}
	}
}

// say adds one line to a stage.
func (t *teller) say(stage string, e ipc.Entry, format string, args ...any) {
	since, ok := words.Between(t.d.OpenedAt, e.TS)
	if !ok {
		since = -1
	}
	t.out = append(t.out, Line{Stage: stage, Since: since, Seq: e.Seq, Text: fmt.Sprintf(format, args...)})
}

// block adds foreign text of several lines.
func (t *teller) block(e ipc.Entry, stage, text string) {
	for l := range strings.SplitSeq(strings.TrimRight(clean.Text(text), "\n"), "\n") {
		t.say(stage, e, "│ %s", l)
	}
}

// entry tells one entry in the words of its stage.
func (t *teller) entry(e ipc.Entry) {
	tell, ok := tellers[lemma.Kind(e.Kind)]
	if !ok {
		t.say("other", e, "%s", e.Kind)
		return
	}
	if err := tell(t, e); err != nil {
		t.say("other", e, "%s cannot be read: %s", e.Kind, err.Error())
	}
}

func told[B any](f func(*teller, ipc.Entry, B)) func(*teller, ipc.Entry) error {
	return func(t *teller, e ipc.Entry) error {
		var b B
		if err := json.Unmarshal(e.Body, &b); err != nil {
			return err
		}
		f(t, e, b)
		return nil
	}
}
