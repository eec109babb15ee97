// Package classify says, without a daemon, what the daemon would make of a
// request: its kind, its class, whose conversation and which turn it belongs to.
// It is a small memory around the very packages that the turn uses (dialect,
// route, gate), so that an answer here is an answer there. It reads recorded
// requests in every shape that they are kept in, measures labelled sessions, and
// makes a fixture of a request without what is nobody's business. No network, no
// clock.
package classify

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"gettier.dev/gettierd/daemon/gate"
	"gettier.dev/gettierd/daemon/proxy/dialect"
	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// Local is a request that the proxy answers by itself: HEAD /, a refused upgrade.
const Local route.Kind = "local"

// key names conversations and turns here. It is no secret: names are equal in
// every run, and none of them is the daemon's, which has a key of its own.
var key = []byte("gettier classify: names of no daemon")

// Request is one recorded request.
type Request struct {
	Method string
	Path   string // with or without its query
	Header http.Header
	Body   []byte
	PID    int             // of the client, 0 when not known: clients are told apart by it
	Answer *Answer         // nil when not known
	ID     json.RawMessage // the caller's own name for the line, nil when there is none
}

// Answer is what is known of a request's answer. It settles what the request
// alone leaves open: whether an equal body is a resend, and whose call a
// sub-agent without a header works for.
type Answer struct {
	Failed bool // cut, refused or lost: the client may send the same again
	Calls  []Call
}

// Call is a tool call of an answer.
type Call struct {
	ID   string
	Name string
	Args []byte // raw JSON
}

// Result is what the daemon would make of a request.
type Result struct {
	ID            json.RawMessage `json:"id,omitempty"` // the caller's own
	Kind          route.Kind      `json:"kind"`
	Class         lemma.Class     `json:"class"`
	Consequential bool            `json:"consequential"` // premises are checked, as the modes are set by default
	Why           string          `json:"why"`           // the tell behind the kind
	Reasons       []string        `json:"reasons"`       // the rules behind the class
	Client        route.Client    `json:"client,omitempty"`
	Format        wire.Format     `json:"format,omitempty"`
	Model         string          `json:"model,omitempty"`
	Conversation  string          `json:"conversation,omitempty"`
	TurnKey       string          `json:"turn_key,omitempty"`
	Parent        string          `json:"parent,omitempty"`   // of a sub-agent: the conversation it works for
	Subagent      string          `json:"subagent,omitempty"` // its name
	Prompt        int             `json:"prompt,omitempty"`   // which prompt of the conversation, from 1
	Continues     bool            `json:"continues"`
	Interactive   bool            `json:"interactive"`
	Project       ProjectClaims   `json:"project"`
}

// ProjectClaims is what a request says of its place. The daemon believes the
// process behind the connection first; these can only choose among registered roots.
type ProjectClaims struct {
	Path        string   `json:"path,omitempty"`   // by the prefix /p/NAME
	Header      string   `json:"header,omitempty"` // by X-Gettier-Project
	Directories []string `json:"directories"`      // SOURCE DIR, of the client's own frame
}

// known are the upstream names that a path may begin with where nothing else is
// configured.
var known = map[string]bool{"openai": true, "anthropic": true, "chatgpt": true}

// Classifier remembers what came before. The zero value is ready.
type Classifier struct {
	memory memory
}

// Classify routes and classes one request. Requests are given in the order in
// which they came.
func (c *Classifier) Classify(q Request) (Result, error) {
	path, query, _ := strings.Cut(q.Path, "?")
	if path == "" {
		return Result{}, errors.New("no path")
	}
	if !strings.HasPrefix(path, "/") {
		return Result{}, fmt.Errorf("the path %.80q does not begin with /", path)
	}
	if q.Method == "" {
		q.Method = http.MethodPost
		if len(q.Body) == 0 {
			q.Method = http.MethodGet
		}
	}
	if q.Header == nil {
		q.Header = http.Header{}
	}
	res := Result{ID: q.ID, Class: lemma.Explore, Reasons: []string{}, Project: ProjectClaims{Directories: []string{}}}
	t := dialect.Split(path, "", func(n string) bool { return known[n] })
	res.Project.Path, res.Project.Header = t.Project, q.Header.Get("X-Gettier-Project")
	if why := local(q, path); why != "" {
		res.Kind, res.Why, res.Client = Local, why, route.ClientOf(q.Header.Get)
		return res, nil
	}
	a := dialect.Gated(q.Method, t.Path)
	if a == nil {
		a = dialect.Errand(q.Method, t.Path)
	}
	if a == nil {
		res.Kind, res.Why = route.Unknown, "no gated path: it passes through unread"
		return res, nil
	}
	if enc := q.Header.Get("Content-Encoding"); enc != "" && (len(q.Body) == 0 || q.Body[0] != '{') {
		return Result{}, fmt.Errorf("the body is encoded (%.40q): give it decoded", enc)
	}
	body := q.Body
	if stripped, err := a.Strip(body); err == nil {
		body = stripped
	}
	view, err := a.Read(body)
	if err != nil {
		return Result{}, fmt.Errorf("read body as %s: %w", a.Format(), err)
	}
	cred := route.Credential(q.Header.Get)
	p := place{q.PID, cred}
	full := t.Path
	if query != "" {
		full += "?" + query
	}
	rt := route.Classify(key, view, q.Header.Get, full, c.memory.prior(p))
	res.Kind, res.Why, res.Client, res.Format, res.Model = rt.Kind, rt.Why, rt.Client, a.Format(), clip(view.Model)
	res.Conversation, res.Parent, res.Subagent, res.Prompt = rt.Conversation, rt.Parent, clip(rt.SubagentRoot), rt.Ordinal
	res.Continues, res.Interactive = rt.Continues, rt.Interactive
	res.TurnKey = route.KeyOf(key, cred, upstreamOf(t, a.Format(), q.Header), rt)
	res.Class, res.Reasons = gate.RequestClass(rt, len(view.Tools) > 0)
	res.Consequential = res.Class != lemma.Explore && gate.DefaultModes()[res.Class] != lemma.Off
	for _, pl := range route.Places(view, q.Header.Get, rt.Client) {
		res.Project.Directories = append(res.Project.Directories, pl.Source+" "+pl.Dir)
	}
	c.memory.saw(p, view, rt, q.Answer)
	return res, nil
}

// view routes a request without remembering it; ok is false where there is
// nothing to route.
func view(q Request) (*wire.Request, route.Route, place, bool) {
	path, _, _ := strings.Cut(q.Path, "?")
	t := dialect.Split(path, "", func(n string) bool { return known[n] })
	a := dialect.Gated(cmp.Or(q.Method, http.MethodPost), t.Path)
	if a == nil {
		return nil, route.Route{}, place{}, false
	}
	body := q.Body
	if stripped, err := a.Strip(body); err == nil {
		body = stripped
	}
	view, err := a.Read(body)
	if err != nil {
		return nil, route.Route{}, place{}, false
	}
	p := place{q.PID, route.Credential(q.Header.Get)}
	return view, route.Classify(key, view, q.Header.Get, t.Path, nil), p, true
}

// local says why the proxy answers by itself, "" when it does not.
func local(q Request, path string) string {
	switch {
	case strings.EqualFold(q.Header.Get("Upgrade"), "websocket"):
		return "WebSocket upgrade, refused with 426"
	case path == "/healthz", path == "/" && (q.Method == http.MethodHead || q.Method == http.MethodGet):
		return "answered by the proxy"
	case path == "/gettier" || strings.HasPrefix(path, "/gettier/"):
		return "the daemon's own calls"
	}
	return ""
}

// upstreamOf names the upstream as a configuration without any would.
func upstreamOf(t dialect.Target, f wire.Format, h http.Header) string {
	switch {
	case t.Upstream != "":
		return t.Upstream
	case h.Get("Chatgpt-Account-Id") != "":
		return "chatgpt"
	case f == wire.Messages:
		return "anthropic"
	}
	return "openai"
}

// clip bounds what a client names itself, in bytes.
func clip(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "")
	}
	return s
}
