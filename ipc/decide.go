package ipc

import (
	"context"
	"encoding/json"
	"net/http"
)

// Action is one thing that an agent wants to do: a command line, a program with
// its arguments, or a call of a tool. Exactly one of the three is given.
type Action struct {
	Actor   string          `json:"actor,omitempty"` // told, recorded, never weighed
	Cwd     string          `json:"cwd,omitempty"`
	Command string          `json:"command,omitempty"`
	Argv    []string        `json:"argv,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
	Raw     string          `json:"raw_input,omitempty"` // the text that it came from
	Mode    string          `json:"mode,omitempty"`      // a hint: ask or operate
}

// Decision is what the action gate says of an action. Raw is all of it, as
// `gettier decide --json` prints it; the named members are its summary.
type Decision struct {
	State       string `json:"state"` // ALLOW | REQUIRE_CONFIRM | ESCALATE | DENY
	Allowed     bool   `json:"allowed"`
	Effect      string `json:"effect"`
	Risk        int    `json:"risk_score"`
	Reason      string `json:"reason"`
	DecisionID  string `json:"decision_id"`
	ContextHash string `json:"context_hash"`
	Policy      string `json:"policy"`

	Raw json.RawMessage `json:"-"`
}

// Decide asks the action gate about an action. The decision is on the chain when
// it returns; nothing runs, and nobody is asked.
func (c *Client) Decide(ctx context.Context, a Action) (Decision, error) {
	raw, err := call[json.RawMessage](ctx, c, http.MethodPost, "/v1/decide", nil, a)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Raw: raw}
	return d, json.Unmarshal(raw, &d)
}

// Warmup is what loading the model of meaning came to.
type Warmup struct {
	Model      string `json:"model"`
	Principles int    `json:"principles"` // of the constitution, that it has measured
}

// Warmup loads the model that measures meaning, which may take a minute.
func (c *Client) Warmup(ctx context.Context) (Warmup, error) {
	return call[Warmup](ctx, c, http.MethodPost, "/v1/warmup", nil, nil)
}
