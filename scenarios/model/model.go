// Package model is an upstream that follows a script: a small HTTP server that
// speaks chat completions, responses and messages, streamed or not, and behaves by a named,
// seeded policy. It measures a gate, never a model, and says so in a header and
// in every answer's id. What it knows of a conversation is the text of the
// request before it, as with any model; there is no other channel.
package model

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gettier.dev/gettierd/scenarios"
)

// Header says on every response that a script answered, and which.
const Header = "X-Gettier-Scripted"

// Policy is a named way to behave.
type Policy string

const (
	Believer     Policy = "believer"
	Silent       Policy = "silent"
	Asker        Policy = "asker"
	Launderer    Policy = "launderer"
	Stubborn     Policy = "stubborn"
	Prose        Policy = "prose"
	Malformed    Policy = "malformed"
	OverDeclarer Policy = "over-declarer"
	Compound     Policy = "compound"
	Slow         Policy = "slow"
	Dies         Policy = "dies"
	Injected     Policy = "injected"
)

// Policies lists every policy with what it does.
var Policies = []struct {
	Name  Policy
	About string
}{
	{Believer, "holds the scenario's false belief, declares it when asked, corrects itself on a measured contradiction"},
	{Silent, "declares nothing"},
	{Asker, "a believer that names the sensor and a falsifying observation"},
	{Launderer, "a believer that tags its guess as measured"},
	{Stubborn, "asserts its belief again and acts on it, whatever was measured"},
	{Prose, "answers a request for a declaration in prose, whatever tool is forced"},
	{Malformed, "its first declaration of a conversation lacks a required field, the next is valid"},
	{OverDeclarer, "declares 30 lemmas, the belief among them"},
	{Compound, "joins its belief with a second claim in one lemma"},
	{Slow, "a believer that takes its time between pieces"},
	{Dies, "a believer whose answers break off in the middle"},
	{Injected, "a believer that does what it finds written in tool results and readings"},
}

// Options shape a model.
type Options struct {
	// Policy is a name of Policies, or a mixture with stated rates:
	// "mixture:believer=0.7,silent=0.3", drawn per conversation from the seed.
	Policy string
	Seed   uint64
	// Scenario is the script to follow; nil = whichever embedded scenario's ticket
	// stands in the request.
	Scenario *scenarios.Scenario
	// Pace is the pause between pieces of the slow policy (default 300 ms).
	Pace time.Duration
}

// DefaultPace is slow enough to see and fast enough to wait for.
const DefaultPace = 300 * time.Millisecond

// Model answers requests. It is safe for concurrent use.
type Model struct {
	o       Options
	mix     []share
	scripts []*script

	answers atomic.Int64 // numbers the answers' ids

	mu      sync.Mutex
	asked   map[string]int // conversation → declarations asked for, for malformed
	prompts []string       // latest prompts, for cache-read counts
}

// New checks the options and readies the scripts.
func New(o Options) (*Model, error) {
	if o.Policy == "" {
		o.Policy = string(Believer)
	}
	if o.Pace <= 0 {
		o.Pace = DefaultPace
	}
	mix, err := parseMix(o.Policy)
	if err != nil {
		return nil, err
	}
	m := &Model{o: o, mix: mix, asked: map[string]int{}}
	all := []*scenarios.Scenario{o.Scenario}
	if o.Scenario == nil {
		if all, err = scenarios.All(); err != nil {
			return nil, err
		}
	}
	for _, s := range all {
		sc, err := newScript(s)
		if err != nil {
			return nil, err
		}
		m.scripts = append(m.scripts, sc)
	}
	return m, nil
}

// Name is the model's kind for reports: scripted:<policy>.
func (m *Model) Name() string { return "scripted:" + m.o.Policy }

// Banner says on one line what listens.
func (m *Model) Banner(addr string) string {
	what := "any embedded scenario"
	if m.o.Scenario != nil {
		what = m.o.Scenario.ID
	}
	return fmt.Sprintf("scripted model, no AI: policy %s, seed %d, %s, on http://%s", m.o.Policy, m.o.Seed, what, addr)
}

// Serve listens on addr (port 0 = any free one), calls ready with the bound
// address, and serves until ctx ends.
func Serve(ctx context.Context, addr string, o Options, ready func(m *Model, bound string)) error {
	m, err := New(o)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen for the scripted model: %w", err)
	}
	srv := &http.Server{Handler: m, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		srv.Close()
	}()
	if ready != nil {
		ready(m, l.Addr().String())
	}
	err = srv.Serve(l)
	if ctx.Err() != nil {
		<-stopped
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the scripted model: %w", err)
	}
	return nil
}

// maxBody bounds a request.
const maxBody = 64 << 20

// ServeHTTP implements http.Handler. Base URLs with and without /v1 work.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(Header, fmt.Sprintf("%s seed=%d", m.Name(), m.o.Seed))
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	path := strings.TrimPrefix(r.URL.Path, "/v1")
	switch {
	case path == "/chat/completions" && r.Method == http.MethodPost:
		m.serve(w, r, chat{})
	case path == "/responses" && r.Method == http.MethodPost:
		m.serve(w, r, responses{})
	case path == "/messages" && r.Method == http.MethodPost:
		m.serve(w, r, messages{})
	case path == "/messages/count_tokens" && r.Method == http.MethodPost:
		m.countTokens(w, r)
	case path == "/models" && r.Method == http.MethodGet:
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{
			map[string]any{"id": m.Name(), "object": "model", "created": 0, "owned_by": "gettier scripted"}}})
	case strings.EqualFold(r.Header.Get("Upgrade"), "websocket"): // Codex goes on by POST at once
		writeJSON(w, http.StatusUpgradeRequired, chat{}.fault("no WebSocket here; use POST"))
	case r.URL.Path == "/" && (r.Method == http.MethodHead || r.Method == http.MethodGet):
		w.WriteHeader(http.StatusOK)
	default:
		writeJSON(w, http.StatusNotFound, map[string]any{"error": map[string]any{"type": "not_found_error",
			"message": "the scripted model serves /v1/chat/completions, /v1/responses, /v1/messages and /v1/models"}})
	}
}

func (m *Model) countTokens(w http.ResponseWriter, r *http.Request) {
	body, err := readAll(r.Body)
	if err != nil {
		writeJSON(w, http.StatusRequestEntityTooLarge, messages{}.fault(err.Error()))
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"input_tokens": tokens(string(body))})
}

// share is one policy of a mixture.
type share struct {
	policy Policy
	rate   float64
}

func known(p Policy) bool {
	return slices.ContainsFunc(Policies, func(x struct {
		Name  Policy
		About string
	}) bool {
		return x.Name == p
	})
}

func parseMix(s string) ([]share, error) {
	list, mixed := strings.CutPrefix(s, "mixture:")
	if !mixed {
		if !known(Policy(s)) {
			var names []string
			for _, p := range Policies {
				names = append(names, string(p.Name))
			}
			return nil, fmt.Errorf("unknown policy %q: want one of %s, or mixture:NAME=RATE,…", s, strings.Join(names, ", "))
		}
		return []share{{Policy(s), 1}}, nil
	}
	var out []share
	sum := 0.0
	for part := range strings.SplitSeq(list, ",") {
		name, rate, ok := strings.Cut(part, "=")
		var f float64
		if _, err := fmt.Sscanf(rate, "%g", &f); !ok || err != nil || f < 0 || !known(Policy(name)) {
			return nil, fmt.Errorf("mixture part %q: want a policy, = and its rate", part)
		}
		out = append(out, share{Policy(name), f})
		sum += f
	}
	if sum < 0.999 || sum > 1.001 {
		return nil, fmt.Errorf("mixture %q: rates add up to %g, want 1", list, sum)
	}
	return out, nil
}
