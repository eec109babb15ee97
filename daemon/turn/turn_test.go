package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors"
)

const ticket = "Uploads of big PDFs fail. Raise the upload limit to 25 MB in the config of the server."

func chatRequest(stream bool, tools bool, items ...string) string {
	t := ""
	if tools {
		t = `,"tools":[{"type":"function","function":{"name":"shell","parameters":{"type":"object"}}}]`
	}
	return fmt.Sprintf(`{"model":"m","stream":%v,"messages":[%s]%s}`, stream, strings.Join(items, ","), t)
}

func msgRequest(stream bool, tools bool, items ...string) string {
	t := ""
	if tools {
		t = `,"tools":[{"name":"shell","input_schema":{"type":"object"}}]`
	}
	return fmt.Sprintf(`{"model":"m","max_tokens":1000,"stream":%v,"messages":[%s]%s}`, stream, strings.Join(items, ","), t)
}

func respRequest(stream bool, tools bool, items ...string) string {
	t := ""
	if tools {
		t = `,"tools":[{"type":"function","name":"shell","parameters":{"type":"object"}}]`
	}
	return fmt.Sprintf(`{"model":"m","stream":%v,"store":false,"input":[%s]%s}`, stream, strings.Join(items, ","), t)
}

func user(s string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, s) }

// TestCaughtAtThePrompt: a chat without tools declares at the prompt; the answer
// is made with the correction, in all formats, streaming and not.
func TestCaughtAtThePrompt(t *testing.T) {
	for _, f := range formats {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream=%v", f, stream), func(t *testing.T) {
				r := newRig(t)
				r.answer = func(_ int, body []byte) (int, string, string) {
					switch {
					case isDeclare(body):
						return declareAnswer(f, body, declared25)
					case !bytes.Contains(body, []byte("→ contradicted")):
						t.Errorf("the answer was made without the correction: %s", body)
					}
					return speak(f, stream, "The edge takes 1m, so raise it there.", "", "", "")
				}
				out, err := r.request(f, ask(f, stream, false, user(ticket)))
				if err != nil {
					t.Fatal(err)
				}
				if out.status != 200 || out.aborted || !strings.Contains(out.buf.String(), "raise it there") {
					t.Fatalf("client saw %d %s", out.status, out.buf.String())
				}
				h := out.headers
				if h.Decision != lemma.DecCaught || h.Counts.Contradicted != 1 || h.Rung != 1 || !h.Gated {
					t.Errorf("headers %+v", h)
				}
				want := []string{"turn.opened", "turn.declared", "lemma.matched", "sensor.invoked", "fact.written", "claim.judged", "gate.decided", "turn.injected", "turn.grounded", "turn.closed"}
				if d := cmp.Diff(want, r.kinds(h.Turn)); d != "" {
					t.Error(d)
				}
				r.verifyLedger()
			})
		}
	}
}

// TestCaughtAtTheAction: a withheld call is replaced by an answer made anew, and
// the client sees one well-formed answer.
func TestCaughtAtTheAction(t *testing.T) {
	for _, f := range formats {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream=%v", f, stream), func(t *testing.T) {
				r := newRig(t)
				wrong, right := `{"command":"sed -i s/1mb/25mb/ app.json"}`, `{"command":"sed -i s/1m/25m/ nginx.conf"}`
				r.answer = func(_ int, body []byte) (int, string, string) {
					args := wrong
					if bytes.Contains(body, []byte("→ contradicted")) {
						args = right
					}
					if isDeclare(body) {
						return declareAnswer(f, body, declared25)
					}
					return speak(f, stream, "I will do it.", "call1", "shell", args)
				}
				out, err := r.request(f, ask(f, stream, true, user(ticket)))
				if err != nil {
					t.Fatal(err)
				}
				seen := readClient(t, f, stream, out.buf.Bytes())
				if len(seen.Calls) != 1 || string(seen.Calls[0].Args) != right {
					t.Fatalf("client got calls %+v\n%s", seen.Calls, out.buf.String())
				}
				turn := out.headers.Turn
				d, ok := entry[lemma.GateDecided](r, turn)
				if !ok || d.Decision != lemma.DecCaught {
					t.Errorf("decided %+v", d)
				}
				kinds := r.kinds(turn)
				if slices.Contains(kinds, "turn.closed") {
					t.Error("the turn ended although a call is open")
				}
				if n := count(kinds, "action.decided"); n != 2 {
					t.Errorf("%d actions decided, want the withheld and the released one: %v", n, kinds)
				}
				r.verifyLedger()
			})
		}
	}
}

func count(s []string, v string) (n int) {
	for _, x := range s {
		if x == v {
			n++
		}
	}
	return n
}

// readClient reads an answer as strictly as a client may.
func readClient(t *testing.T, f wire.Format, stream bool, b []byte) *wire.Answer {
	t.Helper()
	a := adapterOf(f)
	if !stream {
		ans, err := a.ReadAnswer(b)
		if err != nil {
			t.Fatalf("client cannot read %s: %v", b, err)
		}
		return ans
	}
	st := a.NewStream()
	if _, err := st.Feed(b); err != nil || !st.Done() {
		t.Fatalf("client cannot read the stream (done %v): %v\n%s", st.Done(), err, b)
	}
	return st.Answer()
}

// TestStickyThroughALoop: the correction stays, byte for byte, in each of ten
// requests of the loop; request n+1 is request n and a suffix; a restart of the
// daemon in the middle changes nothing.
func TestStickyThroughALoop(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			r := newRig(t)
			lap := 0
			r.answer = func(_ int, body []byte) (int, string, string) {
				if isDeclare(body) {
					return declareAnswer(f, body, declared25)
				}
				args := fmt.Sprintf(`{"command":"ls step%d"}`, lap)
				if lap == 3 {
					args = `{"command":"sed -i s/1m/25m/ nginx.conf"}`
				}
				return speak(f, false, "", fmt.Sprintf("call%d", lap), "shell", args)
			}
			items := []string{user(ticket)}
			var sent [][]byte
			for lap = range 12 {
				if lap == 7 {
					r.restart()
				}
				before := len(r.bodies)
				out, err := r.request(f, ask(f, false, true, items...))
				if err != nil {
					t.Fatal(err)
				}
				var last []byte
				for _, b := range r.bodies[before:] {
					if !isDeclare(b) {
						last = b
					}
				}
				sent = append(sent, last)
				ans := readClient(t, f, false, out.buf.Bytes())
				if len(ans.Calls) != 1 {
					t.Fatalf("lap %d: %s", lap, out.buf.String())
				}
				c := ans.Calls[0]
				switch f {
				case wire.Chat:
					items = append(items,
						fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}`, c.ID, c.Name, c.Args),
						fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"done %d"}`, c.ID, lap))
				case wire.Responses:
					items = append(items, respItemThought("rs_"+c.ID), respItemCall(c.ID, c.Name, string(c.Args)),
						fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"done %d"}`, c.ID, lap))
				default:
					items = append(items,
						fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":%q,"input":%s}]}`, c.ID, c.Name, c.Args),
						fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"done %d"}]}`, c.ID, lap))
				}
			}
			var block string
			for i, b := range sent {
				got := blockIn(b)
				if i < 3 {
					if got != "" {
						t.Errorf("request %d has a block before anything was checked", i)
					}
					continue
				}
				if block == "" {
					block = got
				}
				if got == "" || got != block {
					t.Errorf("request %d: block %q, want %q", i, got, block)
				}
				if i > 3 {
					checkSuffix(t, sent[i-1], b)
				}
			}
			r.verifyLedger()
		})
	}
}

// blockIn is the raw JSON text of the first block of ours in a body.
func blockIn(body []byte) string {
	i := bytes.Index(body, []byte(wire.BlockOpen))
	j := bytes.Index(body, []byte(wire.BlockClose))
	if i < 0 || j < i {
		return ""
	}
	return string(body[i : j+len(wire.BlockClose)])
}

// checkSuffix holds that the messages of b are those of a and more, and that
// everything else is equal.
func checkSuffix(t *testing.T, a, b []byte) {
	t.Helper()
	split := func(raw []byte) (map[string]json.RawMessage, []json.RawMessage) {
		var top map[string]json.RawMessage
		if err := json.Unmarshal(raw, &top); err != nil {
			t.Fatal(err)
		}
		var items []json.RawMessage
		name := "messages"
		if top["input"] != nil {
			name = "input"
		}
		if err := json.Unmarshal(top[name], &items); err != nil {
			t.Fatal(err)
		}
		delete(top, name)
		return top, items
	}
	ta, ia := split(a)
	tb, ib := split(b)
	if d := cmp.Diff(ta, tb); d != "" {
		t.Error(d)
	}
	if len(ib) <= len(ia) {
		t.Fatalf("%d items after %d", len(ib), len(ia))
	}
	for i := range ia {
		if !bytes.Equal(ia[i], ib[i]) {
			t.Errorf("item %d changed\n%s\n%s", i, ia[i], ib[i])
		}
	}
}

func TestNoScopeNoVerdict(t *testing.T) {
	r := newRig(t)
	r.answer = func(_ int, body []byte) (int, string, string) {
		if isDeclare(body) {
			return declareAnswer(wire.Chat, body, declared25)
		}
		return 200, "application/json", chatText("ok")
	}
	out, err := r.request(wire.Chat, chatRequest(false, false, user(ticket)), func(q *Request) {
		q.Scope = Scope{Evidence: "no registered project contains the cwd of pid 1"}
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.runs != 0 {
		t.Error("a sensor ran without a scope")
	}
	if out.headers.Decision == lemma.DecCaught || out.headers.Counts.Contradicted != 0 {
		t.Errorf("headers %+v", out.headers)
	}
	r.verifyLedger()
}

// TestCouldNotRun: failure is never verification and never a catch.
func TestCouldNotRun(t *testing.T) {
	for name, tc := range map[string]struct {
		attended bool
		want     lemma.Decision
	}{"attended": {true, lemma.DecHeld}, "unattended": {false, lemma.DecAnnotated}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.fails = sensors.ReasonPermission
			r.Attended = func() bool { return tc.attended }
			r.answer = func(_ int, body []byte) (int, string, string) {
				if isDeclare(body) {
					return declareAnswer(wire.Chat, body, declared25)
				}
				return 200, "application/json", chatCall("c", "shell", `{"command":"sed -i s/1m/25m/ deploy/nginx.conf"}`)
			}
			out, err := r.request(wire.Chat, chatRequest(false, true, user(ticket)))
			if err != nil {
				t.Fatal(err)
			}
			d, _ := entry[lemma.GateDecided](r, out.headers.Turn)
			if d.Decision != tc.want {
				t.Fatalf("decided %+v, client saw %s", d, out.buf.String())
			}
			ans := readClient(t, wire.Chat, false, out.buf.Bytes())
			if tc.attended {
				if len(ans.Calls) != 0 || !strings.Contains(ans.Text, "25 MB") || !strings.Contains(ans.Text, "permission") {
					t.Errorf("the question is %q", ans.Text)
				}
				page, err := r.led.Holds(lemma.HoldOpen, 0, "")
				if err != nil || len(page.Items) != 1 || page.Items[0].Turn != out.headers.Turn {
					t.Errorf("holds %+v %v", page.Items, err)
				}
			} else if len(ans.Calls) != 1 {
				t.Errorf("an unattended annotation withheld the call: %s", out.buf.String())
			}
			r.verifyLedger()
		})
	}
}

// TestDestructive: what destroys needs a person, or stays out.
func TestDestructive(t *testing.T) {
	destroy := chatCall("c", "shell", `{"command":"rm -rf /var/lib/data"}`)
	for name, tc := range map[string]struct {
		decl     string
		attended bool
		value    string
		want     lemma.Decision
		calls    int
	}{
		"undeclared, nobody there":   {"I cannot do that.", false, "1m", lemma.DecBlocked, 0},
		"undeclared, attended":       {"no", true, "1m", lemma.DecHeld, 0},
		"empty declaration":          {`{"plan_summary":"x","lemmas":[]}`, false, "1m", lemma.DecBlocked, 0},
		"premise stands":             {declared25, false, "30m", lemma.DecBlocked, 0}, // it never lowers the action gate's verdict
		"premise stands, attended":   {declared25, true, "30m", lemma.DecHeld, 0},
		"contradicted over and over": {declared25, false, "1m", lemma.DecBlocked, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.value = tc.value
			r.Attended = func() bool { return tc.attended }
			r.answer = func(_ int, body []byte) (int, string, string) {
				if isDeclare(body) {
					return declareAnswer(wire.Chat, body, tc.decl)
				}
				return 200, "application/json", destroy
			}
			out, err := r.request(wire.Chat, chatRequest(false, true, user("clean up the data")))
			if err != nil {
				t.Fatal(err)
			}
			ans := readClient(t, wire.Chat, false, out.buf.Bytes())
			row, err := r.led.Turn(out.headers.Turn)
			if err != nil {
				t.Fatal(err)
			}
			if out.headers.Decision != tc.want || len(ans.Calls) != tc.calls {
				t.Errorf("decision %s with %d calls, want %s with %d; row %+v\n%s", out.headers.Decision, len(ans.Calls), tc.want, tc.calls, row.Decision, ans.Text)
			}
			r.verifyLedger()
		})
	}
}

// TestLeversDoNotReachDestroy: no mode, budget or switch lets a destructive call out.
func TestLeversDoNotReachDestroy(t *testing.T) {
	levers := map[string]func(*rig, *Request){
		"modes off": func(r *rig, _ *Request) {
			for c := range r.set.Modes {
				r.set.Modes[c] = lemma.Off
			}
		},
		"watch":             func(r *rig, _ *Request) { r.set.Watch = true },
		"no declare passes": func(r *rig, _ *Request) { r.set.DeclareMaxPerTurn = 0 },
		"declare at prompt": func(r *rig, _ *Request) { r.set.DeclareAtAction, r.set.DeclareAtPrompt = false, true },
		"no budget":         func(r *rig, _ *Request) { r.set.HoldsPerHour, r.set.HoldsPerDay = 0, 0 },
		"no sensors":        func(r *rig, _ *Request) { r.view = &sensors.View{} },
		"no scope":          func(_ *rig, q *Request) { q.Scope = Scope{Evidence: "none"} },
		"observed":          func(_ *rig, q *Request) { q.Observe = true },
		"breaker open": func(r *rig, q *Request) {
			for range breakerLimit {
				r.breaker.failed("declare", q.Route.Conversation, r.now)
			}
		},
	}
	for name, pull := range levers {
		for _, attended := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s attended=%v", name, attended), func(t *testing.T) {
				r := newRig(t)
				r.Attended = func() bool { return attended }
				r.answer = func(_ int, body []byte) (int, string, string) {
					if isDeclare(body) {
						return declareAnswer(wire.Chat, body, "nothing to declare")
					}
					return 200, "application/json", chatCall("c", "shell", `{"command":"dropdb production"}`)
				}
				out, err := r.request(wire.Chat, chatRequest(false, true, user("clean up")), func(q *Request) { pull(r, q) })
				if err != nil {
					t.Fatal(err)
				}
				if ans := readClient(t, wire.Chat, false, out.buf.Bytes()); len(ans.Calls) != 0 {
					t.Errorf("the call left: decision %s", out.headers.Decision)
				}
			})
		}
	}
}

func TestUpstreamRefusalPassesUnchanged(t *testing.T) {
	r := newRig(t)
	r.answer = func(int, []byte) (int, string, string) {
		return 429, "application/json", `{"error":{"message":"slow down"}}`
	}
	out, err := r.request(wire.Chat, chatRequest(true, true, user("hello")))
	if err != nil {
		t.Fatal(err)
	}
	if out.status != 429 || out.buf.String() != `{"error":{"message":"slow down"}}` {
		t.Errorf("client saw %d %s", out.status, out.buf.String())
	}
	if row, _ := r.led.Turn(out.headers.Turn); row.Status != 429 {
		t.Errorf("row %+v", row)
	}
}

// TestRedirectIsRefused: a client that followed one would talk to its model
// around the gate.
func TestRedirectIsRefused(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		r := newRig(t)
		r.answer = func(int, []byte) (int, string, string) { return status, "text/html", "moved" }
		out, err := r.request(wire.Chat, chatRequest(false, true, user("hello")))
		if s := out.buf.String(); err == nil || out.status != http.StatusBadGateway || strings.Contains(s, "moved") || !strings.Contains(s, "redirect") {
			t.Errorf("%d: %v %d %s", status, err, out.status, s)
		}
	}
}

func TestCutStreamShows(t *testing.T) {
	for _, f := range formats {
		_, _, whole := speak(f, true, "some text that is cut", "", "", "")
		for _, at := range []int{len(whole) / 2, len(whole) - 20} {
			r := newRig(t)
			r.answer = func(int, []byte) (int, string, string) { return 200, "text/event-stream", whole[:at] }
			out, err := r.request(f, ask(f, true, true, user("hello")))
			if err == nil {
				t.Errorf("%s cut at %d: no error", f, at)
			}
			if !out.aborted || !strings.Contains(out.buf.String(), "error") {
				t.Errorf("%s cut at %d: aborted %v, client saw %s", f, at, out.aborted, out.buf.String())
			}
			row, _ := r.led.Turn(out.headers.Turn)
			if row.Decision != lemma.DecError || row.Error == "" {
				t.Errorf("%s cut at %d: row %+v", f, at, row)
			}
		}
	}
}

// TestReadOnlyCallsPass: an agent that only looks pays nothing.
func TestReadOnlyCallsPass(t *testing.T) {
	r := newRig(t)
	r.answer = func(_ int, body []byte) (int, string, string) {
		if isDeclare(body) {
			t.Error("a read was declared")
		}
		return 200, "text/event-stream", chatStream("Looking.", "c", "shell", `{"command":"cat nginx.conf"}`)
	}
	out, err := r.request(wire.Chat, chatRequest(true, true, user(ticket)))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := out.buf.String(), chatStream("Looking.", "c", "shell", `{"command":"cat nginx.conf"}`); got != want {
		t.Errorf("bytes changed\n%s\n%s", got, want)
	}
}

// TestResendJoins: an equal body after a lost connection is the same turn.
func TestResendJoins(t *testing.T) {
	r := newRig(t)
	whole := chatStream("an answer that is cut", "", "", "")
	cut := true
	r.answer = func(int, []byte) (int, string, string) {
		if cut {
			return 200, "text/event-stream", whole[:len(whole)/2]
		}
		return 200, "text/event-stream", whole
	}
	body := chatRequest(true, true, user("hello"))
	first, _ := r.request(wire.Chat, body)
	cut = false
	r.pass(5 * time.Second)
	second, err := r.request(wire.Chat, body)
	if err != nil {
		t.Fatal(err)
	}
	if first.headers.Turn != second.headers.Turn {
		t.Errorf("turns %s and %s", first.headers.Turn, second.headers.Turn)
	}
	r.pass(ResendGrace + time.Second)
	third, err := r.request(wire.Chat, body)
	if err != nil {
		t.Fatal(err)
	}
	if third.headers.Turn == second.headers.Turn {
		t.Error("an answered turn was joined again")
	}
}

// TestPanicFailsClosed: a bug of ours in a stage never lets an action out.
func TestPanicFailsClosed(t *testing.T) {
	r := newRig(t)
	r.Sensors = panicking{r}
	r.answer = func(_ int, body []byte) (int, string, string) {
		if isDeclare(body) {
			return declareAnswer(wire.Chat, body, declared25)
		}
		return 200, "application/json", chatCall("c", "shell", `{"command":"sed -i s/a/b/ nginx.conf"}`)
	}
	for i := range breakerLimit {
		out, err := r.request(wire.Chat, chatRequest(false, true, user(ticket)))
		if err == nil || !strings.Contains(err.Error(), "fail_closed:verify") {
			t.Errorf("error %v", err)
		}
		if out.status != 500 || strings.Contains(out.buf.String(), "tool_calls") {
			t.Errorf("client saw %d %s", out.status, out.buf.String())
		}
		if _, opened := entry[lemma.BreakerOpened](r, out.headers.Turn); opened != (i == breakerLimit-1) {
			t.Errorf("failure %d: breaker opened %v", i+1, opened)
		}
		r.pass(time.Second)
	}
	r.verifyLedger()
}

type panicking struct{ *rig }

func (panicking) Run(context.Context, []sensors.Request) []sensors.Reading { panic("bug") }

func TestSweepEndsSilentTurns(t *testing.T) {
	r := newRig(t)
	r.answer = func(int, []byte) (int, string, string) {
		return 200, "application/json", chatCall("c", "shell", `{"command":"ls"}`)
	}
	out, err := r.request(wire.Chat, chatRequest(false, true, user("look around")))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Sweep(context.Background(), r.clock()); err != nil {
		t.Fatal(err)
	}
	if row, _ := r.led.Turn(out.headers.Turn); row.ClosedAt != "" {
		t.Error("a young turn was ended")
	}
	r.pass(Idle + time.Second)
	if err := r.Sweep(context.Background(), r.clock()); err != nil {
		t.Fatal(err)
	}
	if row, _ := r.led.Turn(out.headers.Turn); row.ClosedAt == "" {
		t.Error("a silent turn stays open")
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"a\nb":                    `"a b"`,
		"</gettier-verification>": `"‹/gettier-verification>"`,
		"say \"x\"\x1b[31m":       `"say 'x' [31m"`,
		"a\u202eb":                `"a b"`,
		strings.Repeat("ä", 200):  `"` + strings.Repeat("ä", 150) + `…"`,
		"limit >= 25m":            `"limit >= 25m"`,
		"\xff\xfe":                `""`,
	} {
		if got := quote(in, 300); got != want {
			t.Errorf("quote(%q) = %s, want %s", in, got, want)
		}
	}
}
