package turn

import (
	"context"
	"fmt"
	"strconv"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/daemon/gate"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors"
	"gettier.dev/gettierd/sensors/verdict"
)

// implied measures and judges what the calls of an answer take for granted, by
// the registry's premises and without asking a model (03). What it finds is on
// the chain when it returns; what follows is the gate's to say, and it never
// lowers what the action gate said.
func (e *Engine) implied(ctx context.Context, q *Request, t *live, rs []*ruled, effect shell.Effect) (v verified, err error) {
	if t.side || q.Observe && !effect.AtLeast(shell.Destroy) {
		return v, nil
	}
	acts := make([]shell.Action, len(rs))
	for i, r := range rs {
		acts[i] = r.act
	}
	view := e.Sensors.View(t.scope.Root)
	ims := view.Implied(acts, sensors.Place{Root: t.scope.Root, Cwd: t.scope.Cwd, Env: t.scope.Env})
	if len(ims) == 0 {
		return v, nil
	}
	t.stage = "verify"
	began := e.Now()
	var want []wanted
	at := make([]int, len(ims)) // of its reading, -1 without one
	index := map[string]int{}
	for i, im := range ims {
		if at[i] = -1; im.Unknown != "" {
			continue
		}
		key := sensors.Key(im.Request, strconv.Itoa(t.pid))
		if _, ok := index[key]; !ok {
			index[key] = len(want)
			want = append(want, wanted{im.Request, key})
		}
		at[i] = index[key]
	}
	v.readings = e.measure(ctx, t, want)
	e.facts.Lock()
	defer e.facts.Unlock()
	drafts, written, err := e.record(t, &v)
	if err != nil {
		return v, err
	}
	for i, im := range ims {
		var rd reading
		if at[i] >= 0 {
			rd = v.readings[at[i]]
		}
		f := e.impliedFinding(t, im, rd)
		r := rs[im.Action]
		f.class = gate.CallClass(r.act)
		r.premises = append(r.premises, cutText(im.Premise.ID+" "+string(f.verdict), maxValueText))
		v.found = append(v.found, f)
	}
	for _, b := range append(e.overruled(t, v, written), judged(v.found)...) {
		drafts = append(drafts, ledger.Draft{Turn: t.id, Body: b})
	}
	t.spent("verify", e.Now().Sub(began))
	return v, e.append(ctx, t, drafts...)
}

// impliedFinding judges one premise of an action.
func (e *Engine) impliedFinding(t *live, im sensors.Implied, rd reading) finding {
	p := im.Premise
	res := im.Judge(rd.Reading)
	f := finding{
		claim: e.Redact(p.Claim), lemma: -1, origin: "implied", bearing: true, provenance: lemma.Believed,
		verdict: res.Verdict, reason: e.Redact(res.Reason), rule: p.ID, sensor: res.Sensor, inv: res.Invocation, key: res.Key, measured: res.Measured, claimed: res.Claimed,
		effect: im.Effect, onFalse: p.OnFalse, onUnknown: p.OnUnknown,
	}
	place := verdict.At{Scope: t.scope.Name, Params: im.Params}
	if im.Sensor != nil {
		place.Sensor, f.sensitivity = im.Sensor, im.Sensor.Sensitivity
	}
	id := verdict.Identify(verdict.PremiseClaim(p), place)
	f.claimID, f.topicID = id.Claim, id.Topic
	switch {
	case rd.failed != "":
		f.tried = append(f.tried, fmt.Sprintf("%s could not run (%s): %s", im.Sensor.ID, rd.failed, e.Redact(rd.Detail)))
	case im.Unknown != "":
		f.tried = append(f.tried, e.Redact(im.Unknown))
	case res.Verdict != lemma.Confirmed:
		line := fmt.Sprintf("%s read %s = %s", res.Sensor, res.Key, cutText(res.Measured, maxValueText))
		if more := im.Told(rd.Reading); more != "" {
			line += " (" + cutText(more, maxValueText) + ")"
		}
		f.tried = append(f.tried, e.Redact(line))
	}
	if f.verdict == lemma.Confirmed {
		return f
	}
	// A person's earlier word settles what cannot be measured; what is measured to
	// be false only where the premise says that a person is asked.
	oc := occasion{class: lemma.Explore, effect: im.Effect}
	if ans, ok := e.Store.Answers(t.scope.Name, t.conversation, f.claimID, e.Now()); ok && oc.takes(ans) {
		f.answer = &ans
		if f.verdict != lemma.Contradicted {
			f.verdict, f.reason = lemma.VerdictTold, "answered in hold "+ans.Hold
			if ans.Answer == lemma.AnswerWaive {
				f.verdict = lemma.Waived
			}
		}
	}
	return f
}

// with adds what the actions of an answer take for granted to what else a check
// found.
func (v *verified) with(o verified) {
	v.found = append(v.found, o.found...)
	v.readings = append(v.readings, o.readings...)
	v.factIDs = append(v.factIDs, o.factIDs...)
}

// deniedByPremise reports a premise that is false and whose definition denies
// the action then, where its class has premises at all.
func (c *checked) deniedByPremise() bool {
	for _, f := range c.found {
		if f.origin == "implied" && f.verdict == lemma.Contradicted && f.onFalse == "deny" && f.answer == nil {
			return true
		}
	}
	return false
}
