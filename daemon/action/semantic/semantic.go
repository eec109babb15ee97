// Package semantic measures how near a text lies to the principles of the
// constitution: the cosine between embeddings that an OpenAI-compatible endpoint
// makes. What it finds is an input of the action gate, which lets it add a question
// and nothing else; what it cannot find is skipped.
package semantic

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/daemon/action/endpoint"
)

const (
	maxText   = 8 << 10 // bytes of a text that are measured
	maxAnswer = 16 << 20
	maxVector = 16 << 10 // numbers of one embedding
	coldLoad  = 2 * time.Minute
)

// Evaluator asks one model. It is safe for concurrent use, and declines until Warm
// has loaded the model: a cold one takes seconds, which no action waits for.
type Evaluator struct {
	model   string
	timeout time.Duration // of one measurement; a warm model takes a few milliseconds
	client  *openai.Client

	mu    sync.Mutex
	terms string // fingerprint of the policy whose principles are measured
	warm  []principle
}

type principle struct {
	name   string
	vector []float32
}

// New makes an evaluator; nothing is asked yet.
func New(o endpoint.Options, timeout time.Duration) (*Evaluator, error) {
	c, err := endpoint.New("constitution", o, maxAnswer)
	if err != nil {
		return nil, err
	}
	return &Evaluator{model: o.Model, timeout: timeout, client: c}, nil
}

// Warm loads the model by measuring the policy's principles, and returns how many
// there are.
func (e *Evaluator) Warm(ctx context.Context, p *action.Policy) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, coldLoad)
	defer cancel()
	var texts []string
	for _, c := range p.Constitution.Principles {
		texts = append(texts, c.Name+": "+strings.Join(c.Keywords, "; "))
	}
	if len(texts) == 0 {
		return 0, nil
	}
	vectors, err := e.embed(ctx, texts)
	if err != nil {
		return 0, err
	}
	warm := make([]principle, len(vectors))
	for i, v := range vectors {
		warm[i] = principle{p.Constitution.Principles[i].Name, v}
	}
	e.mu.Lock()
	e.terms, e.warm = p.Fingerprint(), warm
	e.mu.Unlock()
	return len(warm), nil
}

// Measure says how near a text lies to the principles of a policy.
func (e *Evaluator) Measure(ctx context.Context, p *action.Policy, text string) *action.Semantic {
	e.mu.Lock()
	terms, warm := e.terms, e.warm
	e.mu.Unlock()
	if terms != p.Fingerprint() {
		return &action.Semantic{Skipped: action.SkippedCold}
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	vectors, err := e.embed(ctx, []string{text})
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return &action.Semantic{Skipped: action.SkippedTimeout}
		}
		return &action.Semantic{Skipped: action.SkippedFailed}
	}
	out := &action.Semantic{}
	for _, w := range warm {
		percent, ok := cosine(vectors[0], w.vector)
		if !ok { // another model answers than the one that was warmed
			return &action.Semantic{Skipped: action.SkippedFailed}
		}
		out.Near = append(out.Near, action.Near{Principle: w.name, Percent: percent})
	}
	return out
}

func (e *Evaluator) embed(ctx context.Context, texts []string) ([][]float32, error) {
	for i, t := range texts {
		texts[i] = strings.ToValidUTF8(t[:min(len(t), maxText)], "")
	}
	resp, err := e.client.CreateEmbeddings(ctx, openai.EmbeddingRequestStrings{Input: texts, Model: openai.EmbeddingModel(e.model)})
	if err != nil {
		return nil, fmt.Errorf("ask %s for embeddings: %w", e.model, err)
	}
	out := make([][]float32, len(texts))
	for _, d := range resp.Data {
		if d.Index < 0 || d.Index >= len(out) || out[d.Index] != nil || len(d.Embedding) == 0 || len(d.Embedding) > maxVector {
			return nil, fmt.Errorf("ask %s for embeddings: the answer is none", e.model)
		}
		out[d.Index] = d.Embedding
	}
	for _, v := range out {
		if v == nil {
			return nil, fmt.Errorf("ask %s for embeddings: %d texts, fewer answers", e.model, len(texts))
		}
	}
	return out, nil
}

// cosine in percent, half to even; not ok where there is none.
func cosine(a, b []float32) (int, bool) {
	if len(a) != len(b) {
		return 0, false
	}
	var dot, na, nb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot, na, nb = dot+x*y, na+x*x, nb+y*y
	}
	c := math.RoundToEven(100 * dot / math.Sqrt(na*nb))
	if math.IsNaN(c) || math.IsInf(c, 0) {
		return 0, false
	}
	return int(min(max(c, -100), 100)), true
}
