package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/scenarios"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
)

// socketPair makes the connection over which a private daemon's holds are
// answered: our end, and the one that the daemon inherits. No other program gets
// either of them.
func socketPair() (ours net.Conn, theirs *os.File, err error) {
	syscall.ForkLock.RLock() // nothing is started before both are marked
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("make a connection for answers: %w", err)
	}
	f := os.NewFile(uintptr(fds[0]), "answers")
	theirs = os.NewFile(uintptr(fds[1]), "answers of the daemon")
	ours, err = net.FileConn(f) // a copy
	f.Close()
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("make a connection for answers: %w", err)
	}
	return ours, theirs, nil
}

// answerer answers the holds of one run by its policy. A nil one answers none.
type answerer struct {
	client *ipc.Client
	truth  truth
	policy Answers

	mu  sync.Mutex
	err error // the first answer that was not taken
}

// waived is the reason of an answer that waives.
const waived = "waived by the run's policy"

// look answers a hold as it opens.
func (a *answerer) look(ctx context.Context, e ipc.Entry) {
	if a == nil || lemma.Kind(e.Kind) != lemma.KHoldOpened {
		return
	}
	var b lemma.HoldOpened
	err := json.Unmarshal(e.Body, &b)
	if err == nil {
		_, err = a.client.AnswerHold(ctx, b.Hold.ID, a.answer(b.Hold))
	}
	if err != nil && ctx.Err() == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.err == nil {
			a.err = err
		}
	}
}

func (a *answerer) answer(h lemma.Hold) ipc.HoldAnswer {
	var out ipc.HoldAnswer
	for _, it := range h.Items {
		x := ipc.ItemAnswer{Item: it.ID, Answer: lemma.AnswerWaive, Text: waived}
		if a.policy == Truth {
			x.Answer, x.Text = a.truth.of(it.Claim)
		}
		out.Items = append(out.Items, x)
	}
	return out
}

// failure is why a hold could not be answered.
func (a *answerer) failure() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

func (a *answerer) close() {
	if a != nil {
		a.client.Close()
	}
}

// truth is what a person who knows the scenario would say.
type truth struct {
	s      *scenarios.Scenario
	reg    *spec.Registry
	benign bool
}

// of answers a claim: what truth.json has measured goes before the judge, as if
// the sensors had run. Where no rule settles it, the seeded belief is known, and
// so is a claim that joins it with another. Of the rest the scenario knows nothing.
func (t truth) of(claim string) (lemma.AnswerKind, string) {
	l := lemma.Lemma{Claim: claim, Provenance: lemma.Believed, LoadBearing: true}
	var all []verdict.Result
	for _, s := range t.reg.Sensors {
		if ev := t.evidence(s); len(ev.Values) > 0 {
			all = append(all, verdict.Judge(verdict.Claim{Lemma: &l}, s, ev))
		}
	}
	r := verdict.Combine(all...)
	joined := strings.HasPrefix(r.Reason, verdict.Compound) && says(t.s, claim)
	switch {
	case r.Verdict == lemma.Contradicted, !t.benign && (worded(t.s, claim) || joined):
		return lemma.AnswerCorrect, t.sentence()
	case r.Verdict == lemma.Confirmed, t.benign && worded(t.s, claim):
		return lemma.AnswerConfirm, ""
	}
	return lemma.AnswerWaive, "the scenario says nothing about this"
}

// evidence is what a sensor would have read.
func (t truth) evidence(s *spec.Sensor) spec.Evidence {
	ev := spec.Evidence{Sensor: s.ID}
	for _, r := range t.s.Truth.Readings {
		for _, x := range s.Extract {
			if r.Sensor != s.ID || r.Key != x.Name {
				continue
			}
			v := spec.Value{Key: x.Name, Type: x.Type, TypeSet: x.TypeSet, Which: x.Which, Text: t.value(r)}
			if all := strings.Fields(v.Text); x.Which == "all" && len(all) > 1 {
				v.Text, v.All = all[0], all
			}
			ev.Values = append(ev.Values, v)
		}
	}
	return ev
}

func (t truth) value(r scenarios.TruthReading) string {
	if t.benign {
		return r.Benign
	}
	return r.Trap
}

// sentence states every reading of truth.json.
func (t truth) sentence() string {
	var parts []string
	for _, r := range t.s.Truth.Readings {
		parts = append(parts, fmt.Sprintf("%s %s is %s", r.Sensor, r.Key, t.value(r)))
	}
	return "On this system " + strings.Join(parts, " and ")
}

// worded reports whether a claim is the seeded belief in one of its wordings.
func worded(s *scenarios.Scenario, claim string) bool {
	return slices.ContainsFunc(s.Claims(), func(c string) bool { return folded(c) == folded(claim) })
}

// says reports whether a claim has the seeded belief as a part.
func says(s *scenarios.Scenario, claim string) bool {
	return slices.ContainsFunc(s.Claims(), func(c string) bool { return strings.Contains(folded(claim), folded(c)) })
}

// folded leaves case and spacing out.
func folded(claim string) string { return strings.ToLower(strings.Join(strings.Fields(claim), " ")) }
