// Package replay judges recorded actions once more by another policy, and says
// what would have become milder and what stricter (I-213, B23). Pure: records come
// in as text, and no evidence of a disk is asked for, since that of then is gone.
package replay

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"gettier.dev/gettierd/daemon/action"
)

// Bounds of a record file.
const (
	MaxLine    = 1 << 20
	maxRecords = 1_000_000
	maxShown   = 100 // changes that a report holds
)

// Record is one action, and the state that it must at least have; "" where the
// policy in force is the measure.
type Record struct {
	action.Action
	Least action.State `json:"least,omitempty"`
	// Semantic is the semantic of the decision then, absent where there was none.
	Semantic *action.Semantic `json:"semantic,omitempty"`
}

// Change is an action that two policies rule on differently.
type Change struct {
	Action action.Action `json:"action"`
	From   action.State  `json:"from"`
	To     action.State  `json:"to"`
	Reason string        `json:"reason"`
}

// Report is what a replay found. Loosened and Tightened count apart: one is not
// made good by the other.
type Report struct {
	Base      string   `json:"base"`      // fingerprint of the policy in force
	Candidate string   `json:"candidate"` // and of the other one
	Records   int      `json:"records"`
	Loosened  int      `json:"loosened"`
	Tightened int      `json:"tightened"`
	Changes   []Change `json:"changes"` // the first ones, loosened before tightened

	Adversarial int      `json:"adversarial"`
	Regressed   []Change `json:"regressed"` // adversarial actions that the candidate lets through more easily than it may

	Phases map[action.Phase]int `json:"phases"` // how many of the candidate's decisions each phase would let through although they are not ALLOW
}

//go:embed adversarial.jsonl
var adversarial []byte

// ErrNothingRefused says that a run shows nothing: not one of its adversarial
// actions was refused, so the gate cannot have been at work.
var ErrNothingRefused = errors.New("no adversarial action was refused: this run proves nothing")

// Adversarial are the built-in actions that no policy may let through.
func Adversarial() ([]Record, error) { return Read(adversarial) }

// Read reads one record a line; empty lines and lines that begin with # are
// skipped. The error names the line.
func Read(data []byte) ([]Record, error) {
	var out []Record
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(make([]byte, 0, 64<<10), MaxLine)
	n := 0
	for sc.Scan() {
		n++
		line := bytes.TrimSpace(sc.Bytes())
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("read record in line %d: %w", n, err)
		}
		switch r.Least {
		case "", action.Allow, action.RequireConfirm, action.Escalate, action.Deny:
		default:
			return nil, fmt.Errorf("read record in line %d: no state is %q", n, r.Least)
		}
		if out = append(out, r); len(out) > maxRecords {
			return nil, fmt.Errorf("read records: more than %d", maxRecords)
		}
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("read record in line %d: %w", n+1, err)
	}
	return out, nil
}

// Run judges records by both policies and the adversarial actions by the
// candidate.
func Run(base, candidate *action.Policy, records, corpus []Record) (Report, error) {
	r := Report{Base: base.Fingerprint(), Candidate: candidate.Fingerprint(), Records: len(records), Adversarial: len(corpus), Regressed: []Change{}, Phases: map[action.Phase]int{}}
	var looser, stricter []Change
	for _, rec := range records {
		about := action.Situation{Semantic: rec.Semantic}
		was, is := action.Decide(rec.Action, base, about), action.Decide(rec.Action, candidate, about)
		for _, phase := range []action.Phase{action.PhaseShadow, action.PhaseHardDeny, action.PhaseFull} {
			if action.EnforcedIn(phase, is) == action.Allow && is.State != action.Allow {
				r.Phases[phase]++
			}
		}
		c := Change{rec.Action, was.State, is.State, is.Reason}
		switch {
		case is.State.Rank() < was.State.Rank():
			r.Loosened++
			looser = keep(looser, c)
		case is.State.Rank() > was.State.Rank():
			r.Tightened++
			stricter = keep(stricter, c)
		}
	}
	r.Changes = append(append([]Change{}, looser...), stricter...)
	refused := 0
	for _, rec := range corpus {
		d := action.Decide(rec.Action, candidate, action.Situation{})
		if d.State != action.Allow {
			refused++
		}
		if d.State.Rank() < rec.Least.Rank() && rec.Least != "" {
			r.Regressed = append(r.Regressed, Change{rec.Action, rec.Least, d.State, d.Reason})
		}
	}
	if refused == 0 {
		return r, ErrNothingRefused
	}
	return r, nil
}

func keep(list []Change, c Change) []Change {
	if len(list) < maxShown {
		list = append(list, c)
	}
	return list
}
