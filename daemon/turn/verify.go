package turn

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"gettier.dev/gettierd/daemon/gate"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
)

// verified is what one verification found.
type verified struct {
	found    []finding
	readings []reading // in the order in which they were asked for
	factIDs  []string
}

// reading is one measurement and why it was made.
type reading struct {
	sensors.Reading
	reused bool
	failed string // reason, "" = it is evidence
}

// wanted is one measurement that a verification asks for.
type wanted struct {
	req sensors.Request
	key string
}

// verify audits provenance, measures, writes facts and judges.
func (e *Engine) verify(ctx context.Context, q *Request, t *live, decl *lemma.Declaration, oc occasion) (verified, error) {
	var v verified
	var lemmas []lemma.Lemma
	plan := ""
	if decl != nil {
		lemmas, plan = decl.Lemmas, decl.PlanSummary
	}
	if t.scope.Root == "" { // no certain scope, no verdict
		for i, l := range lemmas {
			if l.LoadBearing {
				v.found = append(v.found, finding{claim: e.Redact(l.Claim), lemma: i, origin: "declared", bearing: true, provenance: lemma.Believed,
					verdict: lemma.OutOfScope, reason: t.scope.Evidence, claimID: verdict.TextID(l.Symbols, l.Claim)})
			}
		}
		return v, e.write(ctx, t, judged(v.found)...)
	}

	view := e.Sensors.View(t.scope.Root)
	avail := available(view, t.scope)
	convo := gate.NewConversation(q.Wire, q.Route)
	var drafts []ledger.Draft
	add := func(bodies ...lemma.Body) {
		for _, b := range bodies {
			drafts = append(drafts, ledger.Draft{Turn: t.id, Body: b})
		}
	}
	matches := make([][]lemma.SensorMatch, len(lemmas))
	notes := make([]string, len(lemmas))
	var want []wanted
	index := map[string]int{}
	ask := func(s *spec.Sensor, claim, why string, params map[string]string) string {
		req := sensors.Request{Sensor: s, Params: params, Claim: claim, Root: t.scope.Root, Cwd: t.scope.Cwd, Env: t.scope.Env, Why: why}
		key := sensors.Key(req, strconv.Itoa(t.pid))
		if _, ok := index[key]; !ok {
			index[key] = len(want)
			want = append(want, wanted{req, key})
		}
		return key
	}
	keys := make([][]string, len(lemmas))
	symbols := make([]map[string]string, len(lemmas)) // symbol → key of its look-up
	for i, l := range lemmas {
		if !l.LoadBearing {
			continue
		}
		matches[i], notes[i] = verdict.Match(l, avail)
		for _, m := range matches[i] {
			if s, ok := view.Lookup(m.ID); ok {
				keys[i] = append(keys[i], ask(s, l.Claim, m.Why, nil))
			}
		}
		if s := symbolSensor(view); s != nil {
			for _, sym := range dotted(l) {
				if symbols[i] == nil {
					symbols[i] = map[string]string{}
				}
				symbols[i][sym] = ask(s, "", "symbol", map[string]string{"symbol": sym})
			}
		}
		add(lemma.LemmaMatched{Contract: lemma.Contract, Lemma: i, Claim: l.Claim, Sensors: noNilMatches(matches[i]), Note: notes[i]})
	}
	texts := []string{plan, q.Route.PersonText, oc.action}
	for _, m := range verdict.Sweep(texts, avail) {
		if s, ok := view.Lookup(m.ID); ok {
			ask(s, "", m.Why, nil)
		}
	}

	v.readings = e.measure(ctx, t, want)
	e.facts.Lock()
	defer e.facts.Unlock()
	taken, written, err := e.record(t, &v)
	if err != nil {
		return v, err
	}
	drafts = append(drafts, taken...)

	for i, l := range lemmas {
		if !l.LoadBearing {
			continue
		}
		known := foundSymbols{}
		for sym, key := range symbols[i] {
			known[sym] = v.readings[index[key]]
		}
		f, more := e.judge(t, oc, convo, i, l, notes[i], keys[i], known, index, v.readings)
		add(more...)
		v.found = append(v.found, f)
	}
	v.found = append(v.found, ambient(v.readings, t.scope.Name)...)
	add(e.overruled(t, v, written)...)
	add(judged(v.found)...)
	return v, e.append(ctx, t, drafts...)
}

// available is the view as the matcher wants it. Whether parameters can be
// filled is asked of the very function that fills them.
func available(view *sensors.View, sc Scope) verdict.Sensors {
	if view == nil {
		return verdict.Sensors{}
	}
	return verdict.Sensors{
		InForce: view.Sensors, Pending: view.Pending, Waiting: view.Waiting, Matching: view.Matching,
		Binds: func(s *spec.Sensor, claim string) bool {
			return sensors.Binds(sensors.Request{Sensor: s, Claim: claim, Root: sc.Root, Cwd: sc.Cwd})
		},
	}
}

func noNilMatches(m []lemma.SensorMatch) []lemma.SensorMatch {
	if m == nil {
		return []lemma.SensorMatch{}
	}
	return m
}

// measure takes readings, reusing those of this scope that are young enough and
// older than no released change.
func (e *Engine) measure(ctx context.Context, t *live, want []wanted) []reading {
	out := make([]reading, len(want))
	var reqs []sensors.Request
	var at []int
	for i, w := range want {
		if r, ok := e.reuse.find(t.scope.Name, w.key, w.req.Sensor, e.Now()); ok {
			r.Invocation.Reused = r.Invocation.ID
			out[i] = reading{Reading: r, reused: true}
			continue
		}
		reqs = append(reqs, w.req)
		at = append(at, i)
	}
	began := e.Now()
	for j, r := range e.Sensors.Run(ctx, reqs) {
		i := at[j]
		reason, failed := sensors.Failed(r)
		out[i] = reading{Reading: r}
		if failed {
			out[i].failed = reason
		} else {
			e.reuse.keep(t.scope.Name, want[i].key, r, began)
		}
	}
	return out
}

// judge settles one lemma: matched sensors may hold it, swept ones may only catch it.
func (e *Engine) judge(t *live, oc occasion, convo gate.Conversation, i int, l lemma.Lemma, note string, keys []string, known foundSymbols, index map[string]int, readings []reading) (finding, []lemma.Body) {
	// What is told of a claim stands in a block, a question or a note: a secret in
	// it must not.
	f := finding{claim: e.Redact(l.Claim), lemma: i, origin: "declared", bearing: true}
	var bodies []lemma.Body
	var results []verdict.Result
	matched := map[int]bool{}
	for _, k := range keys {
		matched[index[k]] = true
	}
	for n, r := range readings {
		var res verdict.Result
		switch {
		case r.failed != "" && matched[n]:
			res = verdict.CouldNotRun(r.Sensor.ID, r.Invocation.ID, r.failed)
			f.tried = append(f.tried, fmt.Sprintf("%s could not run (%s): %s", r.Sensor.ID, r.failed, r.Detail))
		case r.failed != "":
			continue
		default:
			if len(r.Sensor.Params) > 0 && !matched[n] {
				continue // a reading with another claim's parameters says nothing of this one
			}
			res = verdict.Judge(verdict.Claim{Lemma: &l}, r.Sensor, r.Evidence)
			for _, w := range res.Warnings {
				bodies = append(bodies, lemma.LemmaWarned{Contract: lemma.Contract, Lemma: i, Field: "falsifying_observation", Reason: cutText(w, maxValueText)})
			}
			if !matched[n] && res.Verdict != lemma.Contradicted {
				continue
			}
			if matched[n] {
				f.tried = append(f.tried, fmt.Sprintf("%s %s", r.Sensor.ID, cmp.Or(res.Reason, string(res.Verdict))))
			}
		}
		results = append(results, res)
	}
	if res, ok := judgeSymbols(l, known); ok {
		results = append(results, res)
	}
	res := verdict.Combine(results...)
	f.verdict, f.reason, f.rule, f.sensor, f.inv = res.Verdict, res.Reason, res.Rule, res.Sensor, res.Invocation
	f.key, f.measured, f.claimed = res.Key, res.Measured, res.Claimed
	if f.verdict == lemma.Unverifiable && note != "" {
		f.reason = note
	}
	at := verdict.At{Scope: t.scope.Name}
	for n, r := range readings { // the sensor that decided, else the first that was matched
		if r.Sensor.ID == res.Sensor {
			f.sensitivity = r.Sensor.Sensitivity
		}
		if r.Sensor.ID == res.Sensor || (at.Sensor == nil && matched[n]) {
			at.Sensor, at.Params = r.Sensor, r.Invocation.Params
			if r.Sensor.ID == res.Sensor {
				break
			}
		}
	}
	id := verdict.Identify(verdict.Claim{Lemma: &l}, at)
	f.claimID, f.topicID = id.Claim, id.Topic

	eff, why := gate.AuditProvenance(l, convo, e.backing(t, f))
	if f.verdict == lemma.Contradicted && eff != lemma.Believed {
		eff, why = lemma.Believed, "a reading of this turn contradicts it"
	}
	f.provenance = eff
	if why != "" && l.Provenance != lemma.Believed {
		e.counts.downgraded.Add(1)
		bodies = append(bodies, lemma.ProvenanceDowngraded{Contract: lemma.Contract, Lemma: i, Claim: l.Claim, From: l.Provenance, Reason: cutText(why, maxValueText)})
	}
	if f.verdict == lemma.Contradicted || f.verdict == lemma.Confirmed {
		return f, bodies
	}
	if ans, ok := e.Store.Answers(t.scope.Name, t.conversation, f.claimID, e.Now()); ok && oc.takes(ans) {
		f.answer = &ans
		f.verdict, f.reason = lemma.VerdictTold, "answered in hold "+ans.Hold
		if ans.Answer == lemma.AnswerWaive {
			f.verdict = lemma.Waived
		}
	}
	return f, bodies
}

// ambient judges what ambient sensors stand guard over. One that could not run
// is counted, never a hold.
func ambient(readings []reading, scope string) []finding {
	var out []finding
	for _, r := range readings {
		if r.failed != "" || !r.Sensor.Ambient {
			continue
		}
		for i := range r.Sensor.Expect {
			x := r.Sensor.Expect[i]
			res := verdict.Judge(verdict.Claim{Text: x.Claim, Expect: &x}, r.Sensor, r.Evidence)
			id := verdict.Identify(verdict.Claim{Text: x.Claim, Expect: &x}, verdict.At{Scope: scope, Sensor: r.Sensor, Params: r.Invocation.Params})
			out = append(out, finding{
				claim: x.Claim, lemma: -1, origin: "ambient", bearing: true, provenance: lemma.Believed,
				verdict: res.Verdict, reason: res.Reason, rule: res.Rule, sensor: res.Sensor, inv: res.Invocation, key: res.Key,
				measured: res.Measured, claimed: res.Claimed, claimID: id.Claim, topicID: id.Topic, sensitivity: r.Sensor.Sensitivity,
			})
		}
	}
	return out
}

// judged are the claim.judged entries of findings.
func judged(found []finding) []lemma.Body {
	out := make([]lemma.Body, 0, len(found))
	for _, f := range found {
		out = append(out, lemma.ClaimJudged{
			Contract: lemma.Contract, ClaimID: f.claimID, TopicID: f.topicID, Lemma: f.lemma, Claim: f.claim, Origin: f.origin, Provenance: f.provenance,
			Verdict: f.verdict, Reason: f.reason, Rule: f.rule, Sensor: f.sensor, Invocation: f.inv, Key: f.key,
			Measured: cutText(f.measured, maxValueText), Claimed: f.claimed,
		})
	}
	return out
}

// reuse keeps the newest reading per scope and request while its ttl runs.
type reuse struct {
	mu    sync.Mutex
	kept  map[string]map[string]kept
	since map[string]time.Time // per scope: older readings are not reused
}

type kept struct {
	r  sensors.Reading
	at time.Time
}

// maxKept bounds the readings remembered per scope.
const maxKept = 256

func (u *reuse) find(scope, key string, s *spec.Sensor, now time.Time) (sensors.Reading, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	k, ok := u.kept[scope][key]
	if !ok || k.r.Sensor.Hash != s.Hash || now.Sub(k.at) >= s.TTL || !k.at.After(u.since[scope]) || s.Effects == spec.Mutates {
		return sensors.Reading{}, false
	}
	return k.r, true
}

func (u *reuse) keep(scope, key string, r sensors.Reading, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.kept == nil {
		u.kept, u.since = map[string]map[string]kept{}, map[string]time.Time{}
	}
	if u.kept[scope] == nil || len(u.kept[scope]) >= maxKept {
		u.kept[scope] = map[string]kept{}
	}
	u.kept[scope][key] = kept{r, at}
}

// changed ends the reuse of a scope's readings: an action that may have changed
// what they measured was released.
func (u *reuse) changed(scope string, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.kept, scope)
	if u.since == nil {
		u.since = map[string]time.Time{}
	}
	u.since[scope] = now
}
