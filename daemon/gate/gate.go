// Package gate rules on premises: how consequential a turn is, which provenance
// a claim really has, and what the verdicts on its claims mean for the answer.
// Pure: the same input gives the same decision, so that a replay is exact. It
// measures nothing, asks nobody and keeps nothing.
package gate

import (
	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/ledger/lemma"
)

// DefaultModes is the mode of each class when nothing is configured.
func DefaultModes() map[lemma.Class]lemma.Mode {
	return map[lemma.Class]lemma.Mode{
		lemma.Explore: lemma.Off, lemma.Edit: lemma.Correct,
		lemma.Change: lemma.Block, lemma.Destructive: lemma.Block,
	}
}

// In is everything a decision depends on.
type In struct {
	Class lemma.Class
	// Effect is the strongest effect among the actions that this decision would
	// let out, "" when it lets none out.
	Effect shell.Effect
	Modes  map[lemma.Class]lemma.Mode // an absent class has its default
	Watch  bool                       // gate.mode: watch
	// Attended: a person can answer now (TUI, editor, interactive chat).
	Attended bool
	// OverBudget: the hold budget of this hour or day is used up.
	OverBudget bool
	// Undeclared: a declaration was due and none came. An empty declaration
	// on a destructive turn counts as none, whatever this says.
	Undeclared         bool
	HoldOnUnverifiable bool
	AnnotateGaps       bool
	Claims             []Claim
	// Failed is a stage of ours that failed: destructive and blocked classes
	// close, the others go on visibly.
	Failed string
}

// Claim is one premise with its verdict.
type Claim struct {
	Origin      string // declared | implied | ambient
	LoadBearing bool
	Provenance  lemma.Provenance // effective, after the audit
	Verdict     lemma.Verdict
	Reason      string
	// Answer is what a person answered in this turn, "" when nobody did.
	Answer lemma.AnswerKind
	// Class and Effect are those of the action that implies the claim; empty for
	// declared and ambient ones.
	Class     lemma.Class
	Effect    shell.Effect
	OnFalse   string // hold | correct | deny | annotate, implied only
	OnUnknown string // annotate | hold | release, implied only
}

// Out is the decision.
type Out struct {
	Decision lemma.Decision
	Class    lemma.Class
	Mode     lemma.Mode
	Counts   lemma.Counts
	Reasons  []string
	Hold     []int // claims that a person must settle (also when blocked unattended)
	Correct  []int // claims whose truth goes back to the model before it answers
	Note     []int // claims that get a line at the end of the answer
	// HoldTurn: the turn as a whole needs a person (undeclared and destructive).
	HoldTurn bool
	// Deny: actions of this answer must not leave, whatever a person has said so far.
	Deny bool
}

// Decide is the table class × mode × verdict × attendance.
func Decide(in In) Out { return Out{Decision: lemma.DecReleased, Class: in.Class} }

// PromptClass classes a person's words. tools reports a client that can act.
func PromptClass(text string, tools bool) (lemma.Class, []string) { return lemma.Explore, nil }

// ActionClass classes an action by its effect and the files it touches.
func ActionClass(effect shell.Effect, paths []string) lemma.Class { return lemma.Change }

// Trivial reports whether edits are too small to declare for: docs, comments,
// tests, few lines, in no file that runs or instructs by itself.
func Trivial(edits []shell.Edit) (bool, string) { return false, "" }
