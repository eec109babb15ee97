package turn

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gettier.dev/gettierd/daemon/gate"
	"gettier.dev/gettierd/daemon/hold"
	anthropicapi "gettier.dev/gettierd/daemon/proxy/anthropic"
	openaiapi "gettier.dev/gettierd/daemon/proxy/openai"
	responsesapi "gettier.dev/gettierd/daemon/proxy/responses"
	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
)

// rig is an engine on a real ledger with scripted upstream and sensors.
type rig struct {
	*Engine
	t      *testing.T
	led    *ledger.Ledger
	path   string
	key    ed25519.PrivateKey
	now    time.Time
	set    Settings
	view   *sensors.View
	value  string // what the sensor reads
	fails  string // reason, "" = it runs
	runs   int
	mu     sync.Mutex
	bodies [][]byte // what the upstream received
	answer func(n int, body []byte) (status int, ctype, answer string)
}

const registry = `version: 1
sensors:
  - id: edge.limit
    command: [edge-limit]
    effects: none
    extract: [{name: limit, kv: limit, type: bytes}]
    verifies: [request_path.size_limits]
    judge:
      - when: '(?i)\b(edge|proxy|nginx)\b.*\b(accepts?|allows?|takes?)\b.*?(?P<n>\d+\s*[kmg]b?)\b'
        key: limit
        operator: ">="
        value: "{{n}}"
        type: bytes
`

func newRig(t *testing.T) *rig {
	t.Helper()
	reg, problems := spec.Parse("sensors.yaml", "user", []byte(registry), verdict.CheckExamples)
	if len(problems) > 0 {
		t.Fatal(spec.Explain("sensors.yaml", []byte(registry), problems))
	}
	r := &rig{
		t: t, path: filepath.Join(t.TempDir(), "ledger.db"), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), value: "1m",
		key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)),
		set: Settings{
			Modes: gate.DefaultModes(), HoldsPerHour: 2, HoldsPerDay: 6, HoldTTL: 24 * time.Hour, DeclareAtAction: true, DeclareMaxTokens: 600,
			DeclareMaxPerTurn: 2, DeclareReuse: 30 * time.Minute, InjectMaxBytes: 8 << 10, FailOpenExplore: true, KeepAlive: time.Minute,
		},
		view: &sensors.View{Sensors: reg.Sensors, Version: "v"},
	}
	r.open()
	return r
}

func (r *rig) open() {
	r.t.Helper()
	led, err := ledger.Open(r.path, ledger.Options{Key: r.key, Now: r.clock, MmapSize: 1 << 20})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { led.Close() })
	r.led = led
	book := &hold.Book{Store: led, Now: r.clock, Entropy: rand.NewChaCha8([32]byte{2}), Redact: func(s string) string { return s }, ToldTTL: func(string) time.Duration { return time.Hour }}
	r.Engine = &Engine{
		Store: prompt{led}, Holds: book, Sensors: r, Settings: func() Settings { return r.set }, Now: r.clock, Entropy: rand.NewChaCha8([32]byte{1}),
		Key: []byte("key"), Redact: func(s string) string { return s }, Log: slog.New(slog.DiscardHandler),
	}
}

// prompt is a ledger whose Go has committed when it returns, so that a test can
// look at once.
type prompt struct{ *ledger.Ledger }

func (p prompt) Go(drafts ...ledger.Draft) <-chan error {
	done := make(chan error, 1) // its one result
	_, err := p.Append(context.Background(), drafts...)
	done <- err
	return done
}

// restart closes the ledger and starts a new engine on it.
func (r *rig) restart() {
	r.t.Helper()
	if err := r.led.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.open()
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func (r *rig) View(string) *sensors.View { return r.view }

func (r *rig) Run(_ context.Context, reqs []sensors.Request) []sensors.Reading {
	out := make([]sensors.Reading, len(reqs))
	for i, q := range reqs {
		r.runs++
		id, err := lemma.NewID(lemma.IDInvocation, r.clock(), r.Entropy)
		if err != nil {
			r.t.Fatal(err)
		}
		out[i] = sensors.Reading{Sensor: q.Sensor, Invocation: lemma.Invocation{ID: id, SensorID: q.Sensor.ID, Params: map[string]string{}, Argv: []string{"edge-limit"}, StartedAt: lemma.Time(r.clock()), Sandbox: "none"}}
		if r.fails != "" {
			out[i].Reason, out[i].Detail = r.fails, "scripted"
			continue
		}
		out[i].Evidence = spec.Evidence{Sensor: q.Sensor.ID, Invocation: id, Values: []spec.Value{{Key: "limit", Type: spec.Bytes, TypeSet: true, Text: r.value}}}
	}
	return out
}

// upstream is the scripted endpoint.
type upstream struct{ r *rig }

func (upstream) Name() string  { return "scripted" }
func (upstream) Trusted() bool { return true }

func (u upstream) Call(ctx context.Context, body []byte) (*http.Response, error) {
	u.r.mu.Lock()
	n := len(u.r.bodies)
	u.r.bodies = append(u.r.bodies, bytes.Clone(body))
	u.r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	status, ctype, answer := u.r.answer(n, body)
	if status == 0 {
		return nil, fmt.Errorf("connection refused")
	}
	h := http.Header{}
	h.Set("Content-Type", ctype)
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(answer))}, nil
}

// sink records what a client would see.
type sink struct {
	status  int
	headers Headers
	stream  bool
	started bool
	aborted bool
	buf     bytes.Buffer
	gone    bool
}

func (s *sink) Start(status int, _ http.Header, stream bool, h Headers) {
	if s.started {
		panic("started twice")
	}
	s.started, s.status, s.stream, s.headers = true, status, stream, h
}
func (s *sink) Started() bool { return s.started }
func (s *sink) Write(b []byte) error {
	if s.gone {
		return io.ErrClosedPipe
	}
	s.buf.Write(b)
	return nil
}
func (s *sink) Abort() { s.aborted = true }

func adapterOf(f wire.Format) wire.Adapter {
	switch f {
	case wire.Messages:
		return anthropicapi.Adapter{}
	case wire.Responses:
		return responsesapi.Adapter{}
	}
	return openaiapi.Adapter{}
}

// formats are those that every promise of a turn holds in.
var formats = []wire.Format{wire.Chat, wire.Messages, wire.Responses}

// ask is a client's request in a format.
func ask(f wire.Format, stream, tools bool, items ...string) string {
	switch f {
	case wire.Messages:
		return msgRequest(stream, tools, items...)
	case wire.Responses:
		return respRequest(stream, tools, items...)
	}
	return chatRequest(stream, tools, items...)
}

// speak is an upstream's answer in a format: a text, a call, or both where it is
// streamed.
func speak(f wire.Format, stream bool, text, callID, name, args string) (int, string, string) {
	if stream {
		of := map[wire.Format]func(text, id, name, args string) string{wire.Chat: chatStream, wire.Messages: msgStream, wire.Responses: respStream}
		return 200, "text/event-stream", of[f](text, callID, name, args)
	}
	if callID != "" {
		of := map[wire.Format]func(id, name, args string) string{wire.Chat: chatCall, wire.Messages: msgCall, wire.Responses: respCall}
		return 200, "application/json", of[f](callID, name, args)
	}
	of := map[wire.Format]func(text string) string{wire.Chat: chatText, wire.Messages: msgText, wire.Responses: respText}
	return 200, "application/json", of[f](text)
}

// request serves one body and returns what the client saw.
func (r *rig) request(f wire.Format, body string, edit ...func(*Request)) (*sink, error) {
	r.t.Helper()
	q := r.build(f, body, edit...)
	out := &sink{}
	err := r.Serve(context.Background(), q, out)
	return out, err
}

func (r *rig) build(f wire.Format, body string, edit ...func(*Request)) *Request {
	r.t.Helper()
	a := adapterOf(f)
	view, err := a.Read([]byte(body))
	if err != nil {
		r.t.Fatal(err)
	}
	path := map[wire.Format]string{wire.Chat: "/v1/chat/completions", wire.Messages: "/v1/messages", wire.Responses: "/v1/responses"}[f]
	sc := Scope{Name: "project:shop", Root: "/shop", Cwd: "/shop", Evidence: "cwd of pid 1"}
	q := &Request{
		Wire: view, Adapter: a, Upstream: upstream{r}, CredHash: "cred",
		Route: route.Classify(r.Key, view, func(string) string { return "" }, path, r.Prior(1, "cred", sc)),
		Scope: sc, Principal: lemma.Principal{UID: 1, PID: 1},
	}
	for _, e := range edit {
		e(q)
	}
	return q
}

// kinds lists the kinds of a turn's entries in order.
func (r *rig) kinds(turn string) []string {
	r.t.Helper()
	es, err := r.led.TurnEntries(turn)
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, e := range es {
		out = append(out, e.Kind)
	}
	return out
}

// entry decodes the last entry of a kind in a turn.
func entry[T lemma.Body](r *rig, turn string) (body T, ok bool) {
	r.t.Helper()
	es, err := r.led.TurnEntries(turn)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range es {
		if e.Kind == string(body.Kind()) {
			if err := json.Unmarshal(e.Body, &body); err != nil {
				r.t.Fatal(err)
			}
			ok = true
		}
	}
	return body, ok
}

func (r *rig) verifyLedger() {
	r.t.Helper()
	rep, err := r.led.Verify(context.Background(), nil)
	if err != nil || !rep.OK() {
		r.t.Fatalf("ledger: %+v %v", rep.Problems, err)
	}
}

// Scripted answers.

const declared25 = `{"plan_summary":"raise the app's body limit","lemmas":[{"claim":"The edge proxy accepts request bodies of 25 MB","provenance":"believed","load_bearing":true}]}`

func chatText(text string) string {
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`, text)
}

func chatCall(id, name, args string) string {
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`, id, name, args)
}

func chatStream(text, callID, name, args string) string {
	var b strings.Builder
	ev := func(s string) { b.WriteString("data: " + s + "\n\n") }
	ev(`{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`)
	if text != "" {
		ev(fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`, text))
	}
	finish := "stop"
	if callID != "" {
		finish = "tool_calls"
		ev(fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]},"finish_reason":null}]}`, callID, name))
		half := len(args) / 2
		for _, part := range []string{args[:half], args[half:]} {
			ev(fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":%q}}]},"finish_reason":null}]}`, part))
		}
	}
	ev(fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, finish))
	b.WriteString("data: [DONE]\n\n")
	return b.String()
}

func msgText(text string) string {
	return fmt.Sprintf(`{"id":"m1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}`, text)
}

func msgCall(id, name, input string) string {
	return fmt.Sprintf(`{"id":"m1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":%q,"name":%q,"input":%s}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5}}`, id, name, input)
}

func msgStream(text, callID, name, input string) string {
	var b strings.Builder
	ev := func(name, s string) { fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, s) }
	ev("message_start", `{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`)
	i := 0
	if text != "" {
		ev("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}`, i))
		ev("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%q}}`, i, text))
		ev("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
		i++
	}
	stop := "end_turn"
	if callID != "" {
		stop = "tool_use"
		ev("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}}`, i, callID, name))
		half := len(input) / 2
		for _, part := range []string{input[:half], input[half:]} {
			ev("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%q}}`, i, part))
		}
		ev("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
	}
	ev("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":9}}`, stop))
	ev("message_stop", `{"type":"message_stop"}`)
	return b.String()
}

// isDeclare recognises a declare pass on any rung.
func isDeclare(body []byte) bool { return bytes.Contains(body, []byte("Stop before acting.")) }

// declareAnswer answers a declare pass in its format.
func declareAnswer(f wire.Format, body []byte, decl string) (int, string, string) {
	if bytes.Contains(body, []byte(wire.DeclareTool)) {
		return speak(f, false, "", "d1", wire.DeclareTool, decl)
	}
	return speak(f, false, decl, "", "", "")
}

const respUsage = `"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":0},"output_tokens":5,"total_tokens":15}`

func respItemCall(id, name, args string) string {
	return fmt.Sprintf(`{"type":"function_call","id":"fc_%s","call_id":%q,"name":%q,"arguments":%q,"status":"completed"}`, id, id, name, args)
}

func respItemText(id, text string) string {
	return fmt.Sprintf(`{"type":"message","id":%q,"status":"completed","role":"assistant","content":[{"type":"output_text","text":%q,"annotations":[]}]}`, id, text)
}

func respItemThought(id string) string {
	return fmt.Sprintf(`{"type":"reasoning","id":%q,"summary":[],"encrypted_content":"e"}`, id)
}

func respWhole(items ...string) string {
	return fmt.Sprintf(`{"id":"resp_1","object":"response","status":"completed","error":null,"model":"m","output":[%s],%s}`, strings.Join(items, ","), respUsage)
}

func respText(text string) string { return respWhole(respItemText("msg_1", text)) }

func respCall(id, name, args string) string {
	return respWhole(respItemThought("rs_"+id), respItemCall(id, name, args))
}

// respStream streams a text and a call, each with the reasoning that led to it.
func respStream(text, callID, name, args string) string {
	var b strings.Builder
	n := 0
	ev := func(kind, s string) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", kind, kind, n, s)
		n++
	}
	ev("response.created", `"response":{"id":"resp_1","object":"response","status":"in_progress","model":"m","output":[]}`)
	ev("response.in_progress", `"response":{"id":"resp_1","object":"response","status":"in_progress","model":"m","output":[]}`)
	var items []string
	item := func(added, done string, between func(i int)) {
		i := len(items)
		ev("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, i, added))
		between(i)
		ev("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, i, done))
		items = append(items, done)
	}
	think := func(id string) { item(respItemThought(id), respItemThought(id), func(int) {}) }
	if text != "" {
		think("rs_text")
		item(`{"type":"message","id":"msg_1","status":"in_progress","role":"assistant","content":[]}`, respItemText("msg_1", text), func(i int) {
			at := fmt.Sprintf(`"item_id":"msg_1","output_index":%d,"content_index":0`, i)
			ev("response.content_part.added", at+`,"part":{"type":"output_text","text":"","annotations":[]}`)
			ev("response.output_text.delta", at+fmt.Sprintf(`,"delta":%q`, text))
			ev("response.output_text.done", at+fmt.Sprintf(`,"text":%q`, text))
			ev("response.content_part.done", at+fmt.Sprintf(`,"part":{"type":"output_text","text":%q,"annotations":[]}`, text))
		})
	}
	if callID != "" {
		think("rs_" + callID)
		item(strings.Replace(respItemCall(callID, name, ""), "completed", "in_progress", 1), respItemCall(callID, name, args), func(i int) {
			half := len(args) / 2
			for _, part := range []string{args[:half], args[half:]} {
				ev("response.function_call_arguments.delta", fmt.Sprintf(`"item_id":"fc_%s","output_index":%d,"delta":%q`, callID, i, part))
			}
			ev("response.function_call_arguments.done", fmt.Sprintf(`"item_id":"fc_%s","output_index":%d,"arguments":%q`, callID, i, args))
		})
	}
	ev("response.completed", fmt.Sprintf(`"response":{"id":"resp_1","object":"response","status":"completed","model":"m","output":[%s],%s}`, strings.Join(items, ","), respUsage))
	return b.String()
}
