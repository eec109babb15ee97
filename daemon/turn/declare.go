package turn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
)

const (
	// declareTimeout bounds one call of a declare pass.
	declareTimeout = 2 * time.Minute
	// reasoningTokens is the output cap where thinking counts as output.
	reasoningTokens = 8192
	// largePrefix is where adding a tool costs more than an instruction: a request
	// of more bytes (about 8k tokens) starts at the cache-neutral rung.
	largePrefix = 32 << 10
	// retryRungAfter is how many declared turns a model stays on a worse rung
	// before a better one is tried again.
	retryRungAfter = 50
	// promptRetries is how often rung 3 tries again with the validator's message.
	promptRetries = 2
)

const askFacts = `Stop before acting. %sList the facts about THIS system that your plan depends on and that could differ here: versions, limits, configuration, which host, database or process is in use, what is installed. Leave out what is true of the language or library everywhere. One claim per lemma, present tense.`

const askJSON = ` Call no tool. Answer with nothing but one JSON object:
{"plan_summary": "…", "lemmas": [{"claim": "…", "provenance": "measured|told|believed", "load_bearing": true}]}
measured = a tool result of this conversation shows it; told = the user said it; believed = you assume it. load_bearing = the plan fails or turns wrong if the claim is false. "lemmas" may be empty.`

// instruction is the text of a declare pass. action is what the model was about
// to do, "" when it is asked at the prompt.
func instruction(rung wire.Rung, action string) string {
	about := ""
	if action != "" {
		about = "You are about to run " + quote(action, maxClaimText) + ". "
	}
	text := fmt.Sprintf(askFacts, about)
	if rung != 1 {
		text += askJSON
	}
	return text
}

// ladder is the order of rungs for a request: the remembered rung first, else
// the cache-neutral one for large prefixes and the forced call for small ones.
// After retryRungAfter turns on one rung the better ones are tried again.
func ladder(known ledger.Rung, size int) []wire.Rung {
	order := []wire.Rung{1, 2, 3, 0}
	if size > largePrefix {
		order = []wire.Rung{0, 1, 2, 3}
	}
	if known.Rung < 0 || known.Turns >= retryRungAfter {
		return order
	}
	out := []wire.Rung{wire.Rung(known.Rung)}
	for _, r := range order {
		if int(r) != known.Rung {
			out = append(out, r)
		}
	}
	return out
}

// pass is the outcome of a declare pass.
type pass struct {
	decl  *lemma.Declaration
	warns []lemma.LemmaWarned
	rung  int
	tries int
	tried []string // why each attempt before failed
	usage lemma.Usage
}

// errUpstreamRefused ends the ladder: asking again on another rung cannot help.
var errUpstreamRefused = errors.New("the upstream refused the declare pass")

// declare runs the compliance ladder on body, the request as it was sent.
func (e *Engine) declare(ctx context.Context, q *Request, body []byte, action string) (pass, error) {
	p := pass{rung: -1}
	r, err := q.Adapter.Read(body)
	if err != nil {
		return p, fmt.Errorf("read request: %w", err)
	}
	known := e.Store.ModelRung(q.Upstream.Name(), q.Wire.Model)
	limit := e.Settings().DeclareMaxTokens
	if q.Wire.Thinking {
		limit = max(limit, reasoningTokens)
	}
	for _, rung := range ladder(known, len(body)) {
		complaint := ""
		tries := 1
		if rung == 3 {
			tries += promptRetries
		}
		for range tries {
			p.tries++
			raw, usage, err := e.ask(ctx, q, r, wire.DeclareOptions{
				Rung: rung, Instruction: instruction(rung, action), Complaint: complaint, MaxTokens: limit,
			})
			p.usage = p.usage.Add(usage)
			if err == nil {
				var decl lemma.Declaration
				if decl, p.warns, err = lemma.ParseDeclaration(raw); err == nil {
					p.decl, p.rung = &decl, int(rung)
					return p, nil
				}
			}
			if ctx.Err() != nil {
				return p, ctx.Err()
			}
			complaint = err.Error()
			p.tried = append(p.tried, fmt.Sprintf("rung %d: %s", rung, e.Redact(cutText(complaint, maxValueText))))
			if errors.Is(err, errUpstreamRefused) {
				return p, nil
			}
		}
	}
	return p, nil
}

// ask makes one call of a declare pass and returns the declaration's JSON.
func (e *Engine) ask(ctx context.Context, q *Request, r *wire.Request, o wire.DeclareOptions) ([]byte, lemma.Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, declareTimeout)
	defer cancel()
	body, err := q.Adapter.Declare(r, o)
	if err != nil {
		return nil, lemma.Usage{}, fmt.Errorf("build declare pass: %w", err)
	}
	resp, err := q.Upstream.Call(ctx, body)
	if err != nil {
		return nil, lemma.Usage{}, fmt.Errorf("%w: %w", errUpstreamRefused, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, lemma.Usage{}, fmt.Errorf("%w: %w", errUpstreamRefused, err)
	}
	switch {
	case resp.StatusCode/100 == 2:
	case resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusUnprocessableEntity:
		return nil, lemma.Usage{}, fmt.Errorf("%w: status %d: %s", wire.ErrNotCompliant, resp.StatusCode, cutText(string(raw), maxValueText))
	default:
		return nil, lemma.Usage{}, fmt.Errorf("%w: status %d", errUpstreamRefused, resp.StatusCode)
	}
	if isStream(resp) { // some upstreams only stream: the answer is collected
		st := q.Adapter.NewStream()
		if _, err := st.Feed(raw); err != nil {
			return nil, lemma.Usage{}, fmt.Errorf("%w: %w", wire.ErrNotCompliant, err)
		}
		decl, err := st.Answer().Declaration(o.Rung)
		return decl, st.Answer().Usage, err
	}
	return q.Adapter.ReadDeclaration(o.Rung, raw)
}

// cutText shortens s to at most n bytes on a rune boundary, on one line.
func cutText(s string, n int) string {
	var b strings.Builder
	for w := range strings.FieldsSeq(strings.ToValidUTF8(s, "�")) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if b.WriteString(w); b.Len() > n {
			break // the rest is cut anyway
		}
	}
	if s = b.String(); len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
