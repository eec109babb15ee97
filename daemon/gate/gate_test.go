package gate

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/ledger/lemma"
)

var (
	allClasses  = []lemma.Class{lemma.Explore, lemma.Edit, lemma.Change, lemma.Destructive}
	allModes    = []lemma.Mode{lemma.Block, lemma.Correct, lemma.Annotate, lemma.Log, lemma.Off}
	allVerdicts = []lemma.Verdict{lemma.Confirmed, lemma.Contradicted, lemma.Inconclusive, lemma.Unjudged, lemma.Unverifiable, lemma.OutOfScope, lemma.VerdictTold, lemma.Waived, "undeclared"}
	allEffects  = []shell.Effect{"", shell.ReadOnly, shell.Mutate, shell.Opaque, shell.Destroy, shell.Catastrophe}
)

// TestTable reads the contract's table from testdata and holds every cell of it,
// over all classes, effects, and ways to attend, against Decide.
func TestTable(t *testing.T) {
	raw, err := os.ReadFile("testdata/table.txt")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]string{}
	var head []string
	for line := range strings.SplitSeq(string(raw), "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		if head == nil {
			head = f
			continue
		}
		for i, cell := range f[1:] {
			table[f[0]+"/"+head[i+1]] = cell
		}
	}
	n := 0
	for _, class := range allClasses {
		for _, mode := range allModes {
			for _, v := range allVerdicts {
				for _, effect := range allEffects {
					for bits := range 16 {
						in := In{
							Class: class, Effect: effect, Modes: map[lemma.Class]lemma.Mode{class: mode},
							Attended: bits&1 != 0, OverBudget: bits&2 != 0, Watch: bits&4 != 0, HoldOnUnverifiable: bits&8 != 0,
							Claims: []Claim{{Origin: "declared", LoadBearing: true, Provenance: lemma.Believed, Verdict: v}},
						}
						if v == "undeclared" {
							in.Claims, in.Undeclared = nil, true
						}
						column := mode
						if effect.AtLeast(shell.Destroy) {
							column = lemma.Block
						}
						destructive := class == lemma.Destructive || effect.AtLeast(shell.Destroy)
						cell := table[string(v)+"/"+string(column)]
						if cell == "gap" {
							cell = "released_unverified"
							if effect.AtLeast(shell.Destroy) || in.HoldOnUnverifiable {
								cell = table["inconclusive/"+string(column)]
							}
						}
						if cell == "undeclared" {
							cell = "released_unverified"
							if destructive && column == lemma.Block {
								cell = "ask"
							}
						}
						if cell == "ask" {
							switch {
							case destructive && (!in.Attended || in.Watch):
								cell = "blocked"
							case destructive, in.Attended && !in.Watch && !in.OverBudget:
								cell = "held"
							default:
								cell = "annotated"
							}
						}
						if cell == "" {
							t.Fatalf("the table has no cell for %s in %s", v, column)
						}
						out := Decide(in)
						n++
						if string(out.Decision) != cell {
							t.Errorf("class %s mode %s effect %q verdict %s attended %v over %v watch %v: %s, want %s (%v)",
								class, mode, effect, v, in.Attended, in.OverBudget, in.Watch, out.Decision, cell, out.Reasons)
						}
						asks := out.Decision == lemma.DecHeld || out.Decision == lemma.DecBlocked
						if asks != (len(out.Hold) > 0 || out.HoldTurn) || asks != out.Deny {
							t.Errorf("%s: decision %s, hold %v, turn %v, deny %v", v, out.Decision, out.Hold, out.HoldTurn, out.Deny)
						}
						if (out.Decision == lemma.DecCaught) != (len(out.Correct) > 0) || (out.Decision == lemma.DecAnnotated && v != "undeclared") != (len(out.Note) > 0) {
							t.Errorf("%s: decision %s, correct %v, note %v", v, out.Decision, out.Correct, out.Note)
						}
					}
				}
			}
		}
	}
	t.Logf("%d cells", n)
}

// TestDestroyInvariant: whatever lever is pulled, an action that destroys leaves
// only by a person's answer or by verdicts that are settled.
func TestDestroyInvariant(t *testing.T) {
	settled := map[lemma.Verdict]bool{lemma.Confirmed: true, lemma.VerdictTold: true, lemma.Waived: true, lemma.Contradicted: true}
	tags := []lemma.Provenance{lemma.Believed, lemma.Measured, lemma.Told}
	for _, effect := range []shell.Effect{shell.Destroy, shell.Catastrophe} {
		for _, class := range allClasses {
			for n := range len(allModes) * len(tags) {
				mode, tag := allModes[n/len(tags)], tags[n%len(tags)]
				for _, v := range allVerdicts[:8] {
					for _, origin := range []string{"declared", "implied"} {
						for _, onFalse := range []string{"", "annotate", "correct", "hold", "deny"} {
							for _, onUnknown := range []string{"", "annotate", "release", "hold"} {
								for bits := range 32 {
									in := In{
										Class: class, Effect: effect, Modes: map[lemma.Class]lemma.Mode{class: mode}, Attended: bits&1 != 0, OverBudget: bits&2 != 0,
										Watch: bits&4 != 0, HoldOnUnverifiable: bits&8 != 0, AnnotateGaps: bits&16 != 0,
										Claims: []Claim{
											{Origin: "declared", LoadBearing: true, Provenance: lemma.Believed, Verdict: lemma.Confirmed},
											{Origin: origin, LoadBearing: true, Provenance: tag, Verdict: v, OnFalse: onFalse, OnUnknown: onUnknown, Effect: effect, Reason: "pending:x"},
										},
									}
									out := Decide(in)
									leaves := !out.Deny && out.Decision != lemma.DecCaught
									if leaves && (!settled[v] || v == lemma.Contradicted) {
										t.Fatalf("%+v lets it out: %+v", in, out)
									}
								}
							}
						}
					}
				}
			}
		}
	}
}

func TestDecideMixes(t *testing.T) {
	claim := func(v lemma.Verdict, edit ...func(*Claim)) Claim {
		c := Claim{Origin: "declared", LoadBearing: true, Provenance: lemma.Believed, Verdict: v}
		for _, e := range edit {
			e(&c)
		}
		return c
	}
	prov := func(p lemma.Provenance) func(*Claim) { return func(c *Claim) { c.Provenance = p } }
	origin := func(o string) func(*Claim) { return func(c *Claim) { c.Origin = o } }
	answer := func(a lemma.AnswerKind) func(*Claim) { return func(c *Claim) { c.Answer = a } }
	idle := func(c *Claim) { c.LoadBearing = false }
	for _, tc := range []struct {
		name string
		in   In
		want lemma.Decision
	}{
		{"held beats caught", In{Class: lemma.Change, Attended: true, Claims: []Claim{claim(lemma.Contradicted), claim(lemma.Inconclusive)}}, lemma.DecHeld},
		{"a note beats a release", In{Class: lemma.Edit, Claims: []Claim{claim(lemma.Confirmed), claim(lemma.Unjudged)}}, lemma.DecAnnotated},
		{"a gap beats a note", In{Class: lemma.Edit, Claims: []Claim{claim(lemma.Unverifiable), claim(lemma.Unjudged)}}, lemma.DecReleasedUnverified},
		{"backed by a measurement: not held", In{Class: lemma.Change, Attended: true, Claims: []Claim{claim(lemma.Inconclusive, prov(lemma.Measured))}}, lemma.DecReleased},
		{"told: not held", In{Class: lemma.Change, Attended: true, Claims: []Claim{claim(lemma.Unjudged, prov(lemma.Told))}}, lemma.DecReleased},
		{"ambient could not run: counted", In{Class: lemma.Change, Attended: true, Claims: []Claim{claim(lemma.Inconclusive, origin("ambient"))}}, lemma.DecReleased},
		{"ambient contradicts", In{Class: lemma.Change, Claims: []Claim{claim(lemma.Contradicted, origin("ambient"))}}, lemma.DecCaught},
		{"not load-bearing", In{Class: lemma.Change, Attended: true, Claims: []Claim{claim(lemma.Contradicted, idle)}}, lemma.DecReleased},
		{"confirmed by a person", In{Class: lemma.Change, Claims: []Claim{claim(lemma.VerdictTold, answer(lemma.AnswerConfirm))}}, lemma.DecConfirmedByUser},
		{"corrected by a person", In{Class: lemma.Change, Claims: []Claim{claim(lemma.Inconclusive, answer(lemma.AnswerCorrect))}}, lemma.DecCorrected},
		{"waived by a person", In{Class: lemma.Destructive, Claims: []Claim{claim(lemma.Waived, answer(lemma.AnswerWaive))}}, lemma.DecWaived},
		{"refused by a person", In{Class: lemma.Change, Claims: []Claim{claim(lemma.Inconclusive, answer(lemma.AnswerDeny))}}, lemma.DecBlocked},
		{"a reading beats an answer", In{Class: lemma.Change, Claims: []Claim{claim(lemma.Contradicted, answer(lemma.AnswerConfirm))}}, lemma.DecCaught},
		{"empty on a destructive turn", In{Class: lemma.Destructive, Attended: true}, lemma.DecHeld},
		{"empty and answered", In{Class: lemma.Destructive, Attended: true, Answer: lemma.AnswerApprove}, lemma.DecConfirmedByUser},
		{"empty on an edit", In{Class: lemma.Edit}, lemma.DecReleased},
		{"explore", In{Class: lemma.Explore}, lemma.DecPassThrough},
		{"implied under its action's class", In{Class: lemma.Explore, Claims: []Claim{claim(lemma.Contradicted, origin("implied"), func(c *Claim) { c.Class, c.Effect = lemma.Change, shell.Mutate })}}, lemma.DecCaught},
		{"implied: deny", In{Class: lemma.Change, Claims: []Claim{claim(lemma.Contradicted, origin("implied"), func(c *Claim) { c.OnFalse = "deny" })}}, lemma.DecBlocked},
		{"implied: hold", In{Class: lemma.Change, Attended: true, Claims: []Claim{claim(lemma.Contradicted, origin("implied"), func(c *Claim) { c.OnFalse = "hold" })}}, lemma.DecHeld},
		{"implied: hold, answered", In{Class: lemma.Change, Claims: []Claim{claim(lemma.Contradicted, origin("implied"), func(c *Claim) { c.OnFalse, c.Answer = "hold", lemma.AnswerApprove })}}, lemma.DecConfirmedByUser},
		{"implied: unknown is noted", In{Class: lemma.Change, Attended: true, Claims: []Claim{claim(lemma.Inconclusive, origin("implied"))}}, lemma.DecAnnotated},
		{"failed stage closes actions", In{Class: lemma.Edit, Effect: shell.Mutate, Failed: "verify"}, lemma.DecError},
		{"failed stage passes explore", In{Class: lemma.Explore, Failed: "verify"}, lemma.DecReleasedUnverified},
		{"an unknown class is not harmless", In{Class: "odd", Attended: true, Claims: []Claim{claim(lemma.Inconclusive)}}, lemma.DecHeld},
		{"an unknown verdict settles nothing", In{Class: lemma.Change, Attended: true, Claims: []Claim{claim("odd")}}, lemma.DecHeld},
	} {
		if out := Decide(tc.in); out.Decision != tc.want {
			t.Errorf("%s: %s, want %s (%v)", tc.name, out.Decision, tc.want, out.Reasons)
		}
	}
}

func TestCounts(t *testing.T) {
	var cs []Claim
	for _, v := range allVerdicts[:8] {
		cs = append(cs, Claim{Origin: "declared", Verdict: v})
	}
	cs = append(cs, Claim{Origin: "ambient", Verdict: lemma.Contradicted})
	got := Decide(In{Class: lemma.Edit, Claims: cs}).Counts
	want := lemma.Counts{Lemmas: 8, Confirmed: 1, Contradicted: 2, Inconclusive: 1, Unjudged: 1, Unverifiable: 1, OutOfScope: 1, Told: 1, Waived: 1}
	if got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
}

func BenchmarkDecide(b *testing.B) {
	in := In{Class: lemma.Change, Attended: true}
	for i := range 8 {
		in.Claims = append(in.Claims, Claim{Origin: "declared", LoadBearing: true, Provenance: lemma.Believed, Verdict: allVerdicts[i]})
	}
	for b.Loop() {
		if out := Decide(in); out.Decision == "" {
			b.Fatal(fmt.Sprint(out))
		}
	}
}
