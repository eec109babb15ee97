package turn

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"gettier.dev/gettierd/daemon/gate"
	"gettier.dev/gettierd/daemon/hold"
	"gettier.dev/gettierd/daemon/recall"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
)

// factsMax bounds the facts that a turn looks at, newest first.
const factsMax = 2000

// known are the facts of a turn's scopes that hold now. One whose ttl has run out
// holds no more, swept or not.
func (e *Engine) known(scope string, provenance lemma.Provenance) ([]lemma.Fact, error) {
	var out []lemma.Fact
	q := ledger.FactFilter{Scope: scopesOf(scope), Status: lemma.StatusActive, Provenance: provenance, At: e.Now(), Limit: ledger.MaxLimit}
	for {
		page, err := e.Store.Facts(q)
		if err != nil {
			return nil, fmt.Errorf("read facts: %w", err)
		}
		out = append(out, page.Items...)
		if q.Cursor = page.Next; q.Cursor == "" || len(out) >= factsMax {
			return out, nil
		}
	}
}

// scopesOf is what a turn of this scope sees: the host, and its own project.
func scopesOf(scope string) []string {
	if scope == "" || scope == "host" {
		return []string{"host"}
	}
	return []string{"host", scope}
}

// mayRead reports whether an upstream may read what has this sensitivity (13.11).
func mayRead(sensitivity string, trusted bool) bool {
	return sensitivity == "public" || sensitivity == "internal" && trusted
}

// record is what readings leave on the chain: invocations with their redacted
// output, redactions, facts. The facts are returned, too.
func (e *Engine) record(t *live, v *verified) (out []ledger.Draft, written []lemma.Fact, err error) {
	seen := map[string]bool{}
	for _, r := range v.readings {
		if seen[r.Invocation.ID] {
			continue // one run that was asked for twice
		}
		seen[r.Invocation.ID] = true
		var blobs [][]byte
		if r.Invocation.OutputBlob != "" {
			blobs = [][]byte{r.Output}
		}
		if r.failed != "" {
			out = append(out, ledger.Draft{Turn: t.id, Blobs: blobs, Body: lemma.SensorFailed{Contract: lemma.Contract, Invocation: r.Invocation, Reason: r.failed, Detail: r.Detail}})
			continue
		}
		out = append(out, ledger.Draft{Turn: t.id, Blobs: blobs, Body: lemma.SensorInvoked{Contract: lemma.Contract, Invocation: r.Invocation}})
		if r.reused {
			continue
		}
		for _, h := range r.Hits {
			out = append(out, ledger.Draft{Turn: t.id, Body: lemma.RedactionApplied{Contract: lemma.Contract, Where: "sensor " + r.Sensor.ID, Rule: h.Rule, Count: h.Count}})
		}
		for _, val := range r.Evidence.Values {
			if val.Problem != "" {
				continue
			}
			f, bodies, err := e.fact(t, r.Reading, val)
			if err != nil {
				return nil, nil, err
			}
			v.factIDs, written = append(v.factIDs, f.ID), append(written, f)
			for _, b := range bodies {
				out = append(out, ledger.Draft{Turn: t.id, Body: b})
			}
		}
	}
	return out, written, nil
}

// fact turns one value into a fact; inside the old one's ttl another value
// contradicts it.
func (e *Engine) fact(t *live, r sensors.Reading, val spec.Value) (lemma.Fact, []lemma.Body, error) {
	now := e.Now()
	id, err := lemma.NewID(lemma.IDFact, now, e.Entropy)
	if err != nil {
		return lemma.Fact{}, nil, err
	}
	// As the ledger will keep it, or the next reading would differ from it.
	value := e.Redact(cutText(val.Text, maxValueText))
	if r.Sensor.Sensitivity == "secret" {
		value = "present"
	}
	ttl := int64(r.Sensor.TTL / time.Second)
	expires := lemma.Time(now.Add(r.Sensor.TTL))
	origin := r.Sensor.Source
	if origin == "" {
		origin = r.Sensor.ID
	}
	f := lemma.Fact{
		ID: id, Scope: t.scope.Name, Subject: verdict.Subject(r.Sensor.ID, r.Invocation.Params), Claim: r.Sensor.ID + " " + val.Key + " = " + value,
		Key: val.Key, Value: value, Type: string(val.Type), Provenance: lemma.Measured,
		Source: lemma.Source{Kind: "sensor", Ref: r.Invocation.ID, Origin: origin, OriginClass: "sensor"},
		Status: lemma.StatusActive, Sensitivity: r.Sensor.Sensitivity, TTLSeconds: &ttl, CreatedAt: lemma.Time(now), ExpiresAt: &expires,
	}
	out := []lemma.Body{lemma.FactWritten{Contract: lemma.Contract, Fact: f}}
	old, ok := e.Store.FactBy(f.Scope, f.Subject, f.Key)
	if ok && old.Value != f.Value && (old.ExpiresAt == nil || *old.ExpiresAt > f.CreatedAt) {
		delta := fmt.Sprintf("%s %s: previously %s, now measured %s", r.Sensor.ID, val.Key, old.Value, f.Value)
		out = append(out, lemma.FactContradicted{Contract: lemma.Contract, Fact: old.ID, By: id, Delta: delta})
	}
	return f, out, nil
}

// overruled ends the told facts of this project that a reading contradicts: what
// is measured wins over what was said. A fact of the whole host is not ended by
// what one project measures.
func (e *Engine) overruled(t *live, v verified, written []lemma.Fact) []lemma.Body {
	told, err := e.known(t.scope.Name, lemma.Told)
	if err != nil { // they stay, and the next reading finds them
		e.Log.Warn("read facts", "error", err.Error())
		return nil
	}
	var out []lemma.Body
	for _, f := range told {
		if f.Scope != t.scope.Name {
			continue
		}
		sensor, key, ok := e.against(f, v)
		if !ok {
			continue
		}
		by, ok := e.measured(t, v, written, sensor, key)
		if !ok {
			continue
		}
		out = append(out, lemma.FactContradicted{
			Contract: lemma.Contract, Fact: f.ID, By: by.ID,
			Delta: fmt.Sprintf("%s %s: a person said %s, now measured %s", sensor, key, cutText(f.Claim, maxClaimText), by.Value),
		})
	}
	return out
}

// against names the sensor and key whose reading contradicts a told fact: as a
// claim of this turn, or its own words judged by the sensor's rules.
func (e *Engine) against(f lemma.Fact, v verified) (sensor, key string, ok bool) {
	for _, found := range v.found {
		if found.claimID != f.Key || f.Key == "" || found.sensor == "" {
			continue
		}
		says, known := e.asserts(f)
		if known && (says && found.verdict == lemma.Contradicted || !says && found.verdict == lemma.Confirmed) {
			return found.sensor, found.key, true
		}
	}
	for _, r := range v.readings {
		if r.failed != "" || len(r.Sensor.Params) > 0 {
			continue // with another claim's parameters it says nothing of this one
		}
		if res := verdict.Judge(verdict.Claim{Text: f.Claim}, r.Sensor, r.Evidence); res.Verdict == lemma.Contradicted {
			return r.Sensor.ID, res.Key, true
		}
	}
	return "", "", false
}

// measured is the fact that a reading of this verification left.
func (e *Engine) measured(t *live, v verified, written []lemma.Fact, sensor, key string) (lemma.Fact, bool) {
	for _, r := range v.readings {
		if r.Sensor.ID != sensor || r.failed != "" {
			continue
		}
		subject := verdict.Subject(sensor, r.Invocation.Params)
		for _, f := range written {
			if f.Subject == subject && f.Key == key {
				return f, true
			}
		}
		if f, ok := e.Store.FactBy(t.scope.Name, subject, key); ok { // a reading that was reused
			return f, true
		}
	}
	return lemma.Fact{}, false
}

// asserts reports whether a told fact says that the claim of its key is true:
// a confirmation does, a correction says that it is not. known is false when the
// answer behind the fact cannot be found.
func (e *Engine) asserts(f lemma.Fact) (says, known bool) {
	if f.Source.Ref == hold.RefTell {
		return true, true
	}
	h, err := e.Store.Hold(f.Source.Ref)
	if err != nil {
		return false, false
	}
	for _, it := range h.Items {
		if it.ClaimID == f.Key && it.Answer != nil {
			return it.Answer.Answer == lemma.AnswerConfirm, true
		}
	}
	return false, false
}

// backing is what the ledger knows about a finding. A correction stands under the
// id of the claim that it corrects, and backs it least of all.
func (e *Engine) backing(t *live, f finding) gate.Backing {
	b := gate.Backing{ClaimID: f.claimID}
	facts, err := e.known(t.scope.Name, "")
	if err != nil { // nothing backs: the tag is lowered, never raised
		e.Log.Warn("read facts", "error", err.Error())
		return b
	}
	for _, fact := range facts {
		if fact.Provenance == lemma.Told {
			if fact.Key != f.claimID {
				continue
			}
			if says, known := e.asserts(fact); !known || !says {
				continue
			}
		}
		b.Facts = append(b.Facts, fact)
	}
	b.Satisfies = func(fact lemma.Fact) bool {
		return f.verdict == lemma.Confirmed && fact.Key == f.key && strings.HasPrefix(fact.Subject, f.sensor+"@")
	}
	return b
}

// untold are the changes of these scopes that no block has told and this upstream
// may read; the caller holds e.telling until the block is stored.
func (e *Engine) untold(scope string, trusted bool) ([]ledger.Delta, error) {
	all, err := e.Store.Deltas(scopesOf(scope), e.Now())
	if err != nil {
		return nil, fmt.Errorf("read changes: %w", err)
	}
	out := all[:0]
	for _, d := range all {
		if mayRead(d.Fact.Sensitivity, trusted) && mayRead(d.Old.Sensitivity, trusted) {
			out = append(out, d)
		}
	}
	return out, nil
}

// injectFacts gives a new prompt what is known, what changed, and the knowledge
// that it calls up, as far as its conversation was not told.
func (e *Engine) injectFacts(ctx context.Context, q *Request, t *live) error {
	if t.scope.Name == "" || t.conversation == "" || q.NoFacts {
		return nil
	}
	trusted := q.Upstream.Trusted()
	facts, err := e.known(t.scope.Name, "")
	if err != nil {
		return err
	}
	standing, err := e.standing(q)
	if err != nil {
		return fmt.Errorf("read blocks: %w", err)
	}
	var sent strings.Builder // what a compaction took away is said again
	for _, b := range standing {
		sent.WriteString(b.Text)
	}
	e.telling.Lock()
	defer e.telling.Unlock()
	deltas, err := e.untold(t.scope.Name, trusted)
	if err != nil {
		return err
	}
	var news []lemma.Fact
	for _, f := range facts {
		if mayRead(f.Sensitivity, trusted) && !tells(sent.String(), f) {
			news = append(news, f)
		}
	}
	notes, err := e.recalled(q, t, sent.String())
	if err != nil {
		return err
	}
	b := factsBlock(deltas, news, notes, e.Settings().InjectMaxBytes)
	if b.text == "" {
		return nil
	}
	return e.store(ctx, q, t, b, nil, false)
}

// recalled is the knowledge that this prompt calls up, this upstream may read and
// its conversation was not told.
func (e *Engine) recalled(q *Request, t *live, sent string) ([]lemma.Knowledge, error) {
	page, err := e.Store.Knowledge(scopesOf(t.scope.Name)...)
	if err != nil {
		return nil, fmt.Errorf("read knowledge: %w", err)
	}
	if len(page.Items) == 0 {
		return nil, nil
	}
	about := recall.About{Text: q.Route.PersonText}
	if view := e.Sensors.View(t.scope.Root); view != nil {
		about.Matching = view.Matching
	}
	if dir, err := filepath.Rel(t.scope.Root, t.scope.Cwd); err == nil && !strings.HasPrefix(dir, "..") {
		about.Dir = dir
	}
	var out []lemma.Knowledge
	for _, h := range recall.Rank(page.Items, about) {
		if mayRead(h.Sensitivity, q.Upstream.Trusted()) && !strings.Contains(sent, knowledgeLine(h.Knowledge)) {
			out = append(out, h.Knowledge)
		}
	}
	return out, nil
}

// tells reports whether blocks already say this fact, and say it last: a value
// that came back after another one is news again.
func tells(sent string, f lemma.Fact) bool {
	line := factLine(f)
	if f.Provenance == lemma.Told {
		return strings.Contains(sent, line)
	}
	name, _, _ := strings.Cut(line, " = ")
	for end := len(sent); ; {
		i := strings.LastIndex(sent[:end], name+" = ")
		if i < 0 {
			return false
		}
		if i > 0 && (sent[i-1] == ' ' || sent[i-1] == '(') { // not the end of a longer name
			return strings.HasPrefix(sent[i:], line)
		}
		end = i + len(name)
	}
}
