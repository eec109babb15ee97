package turn

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/daemon/wire"
)

// talker is a client that keeps its own history, as clients do: it never holds a
// block of ours, writes old prompts in another shape than new ones, moves its
// cache marks, and replaces its history by a summary.
type talker struct {
	f       wire.Format
	session string
	items   []item
	calls   int
}

// item is one entry of a history. A prompt has no raw form of its own: its shape
// depends on where it stands.
type item struct{ prompt, raw string }

// history is the entries as they are sent now.
func (c *talker) history() []string {
	out := make([]string, len(c.items))
	last := len(c.items) - 1
	for i, it := range c.items {
		switch {
		case it.prompt == "":
			out[i] = it.raw
		case c.f == wire.Messages && i == last:
			out[i] = fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%q,"cache_control":{"type":"ephemeral"}}]}`, it.prompt)
		case c.f == wire.Messages && i%2 == 0:
			out[i] = fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%q}]}`, it.prompt)
		default:
			out[i] = user(it.prompt)
		}
	}
	return out
}

func (c *talker) body() string { return ask(c.f, false, true, c.history()...) }

// hears takes an answer into the history and gives each call a result.
func (c *talker) hears(answer []byte) (calls int, err error) {
	a, err := adapterOf(c.f).ReadAnswer(answer)
	if err != nil {
		return 0, err
	}
	switch c.f {
	case wire.Messages:
		c.items = append(c.items, item{raw: `{"role":"assistant","content":` + gjson.GetBytes(answer, "content").Raw + `}`})
		for i, call := range a.Calls {
			mark := ""
			if i == len(a.Calls)-1 {
				mark = `,"cache_control":{"type":"ephemeral"}`
			}
			c.items = append(c.items, item{raw: fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"ok"%s}]}`, call.ID, mark)})
		}
	case wire.Responses:
		for _, it := range gjson.GetBytes(answer, "output").Array() {
			c.items = append(c.items, item{raw: it.Raw})
		}
		for _, call := range a.Calls {
			c.items = append(c.items, item{raw: fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"ok"}`, call.ID)})
		}
	default:
		c.items = append(c.items, item{raw: gjson.GetBytes(answer, "choices.0.message").Raw})
		for _, call := range a.Calls {
			c.items = append(c.items, item{raw: fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"ok"}`, call.ID)})
		}
	}
	return len(a.Calls), nil
}

// elements are the entries of a body in a form in which shapes that mean the same
// are the same: cache marks away, a plain string as a list of one text.
func elements(t interface{ Fatal(...any) }, body []byte) []string {
	list := gjson.GetBytes(body, "messages")
	if !list.Exists() {
		list = gjson.GetBytes(body, "input")
	}
	var out []string
	for _, e := range list.Array() {
		var v map[string]any
		if err := json.Unmarshal([]byte(e.Raw), &v); err != nil {
			t.Fatal(err)
		}
		if s, ok := v["content"].(string); ok && v["role"] == "user" {
			v["content"] = []any{map[string]any{"type": "text", "text": s}}
		}
		b, err := json.Marshal(unmarked(v))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	return out
}

func unmarked(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "cache_control")
		if v["type"] == "input_text" { // the parts of Responses say the same
			v["type"] = "text"
		}
		for k, x := range v {
			v[k] = unmarked(x)
		}
	case []any:
		for i, x := range v {
			v[i] = unmarked(x)
		}
	}
	return v
}

// unblocked takes our blocks out of elements; an element that was only a block is
// not there.
func unblocked(t interface{ Fatal(...any) }, elems []string) (out, blocks []string) {
	for _, e := range elems {
		var v map[string]any
		if err := json.Unmarshal([]byte(e), &v); err != nil {
			t.Fatal(err)
		}
		parts, ok := v["content"].([]any)
		if !ok {
			out = append(out, e)
			continue
		}
		var kept []any
		for _, p := range parts {
			m, _ := p.(map[string]any)
			if s, _ := m["text"].(string); wire.IsBlock(s) {
				blocks = append(blocks, s)
				continue
			}
			kept = append(kept, p)
		}
		if len(kept) == 0 && len(parts) > 0 {
			continue
		}
		if len(kept) != len(parts) {
			v["content"] = kept
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			e = string(b)
		}
		out = append(out, e)
	}
	return out, blocks
}

// cacheReads counts what a provider's prefix cache serves of the client's own
// words, in bytes of whole elements: of the bodies as they were, and of those
// that left. Blocks of ours that are read again count for nothing.
type cacheReads struct {
	direct, gated [][]string // of this conversation
	own, sent     int
}

func (c *cacheReads) add(t interface{ Fatal(...any) }, own, sent []string) {
	best := func(of [][]string, now []string) (most int) {
		for _, b := range of {
			n := 0
			for n < min(len(b), len(now)) && b[n] == now[n] {
				n++
			}
			clean, _ := unblocked(t, now[:n])
			size := 0
			for _, e := range clean {
				size += len(e)
			}
			most = max(most, size)
		}
		return most
	}
	c.own += best(c.direct, own)
	c.sent += best(c.gated, sent)
	c.direct, c.gated = append(c.direct, own), append(c.gated, sent)
}

// conversations is how many are tried; -rapid.checks asks for another number.
const conversations = "20"

// TestBlocksStick: over any conversation, compactions, restarts of the daemon and
// readings that change among them, a request that leaves is the client's own and
// whole blocks of ours; and wherever the client's next request begins with all of
// this one, so does the next that leaves, byte by byte. So the provider's prefix
// cache holds what it would hold without us.
func TestBlocksStick(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		if err := checks.Value.Set(conversations); err != nil {
			t.Fatal(err)
		}
		defer checks.Value.Set(checks.DefValue)
	}
	r := newRig(t)
	r.set.HoldsPerHour, r.set.HoldsPerDay = 1000, 1000
	var f wire.Format
	next, carried, corrections, n := "", 0, 0, 0
	r.answer = func(_ int, body []byte) (int, string, string) {
		if isDeclare(body) {
			return declareAnswer(f, body, declared25)
		}
		if next == "" {
			return speak(f, false, "done", "", "", "")
		}
		return speak(f, false, "", next, "shell", `{"command":"sed -i s/1/2/ app.json"}`)
	}
	var reads cacheReads
	rapid.Check(t, func(rt *rapid.T) {
		n++
		f = rapid.SampledFrom(formats).Draw(rt, "format")
		c := &talker{f: f, session: fmt.Sprintf("s%d", n)}
		h := http.Header{}
		h.Set("X-Session-Id", c.session)
		identify := func(q *Request) {
			q.Route = route.Classify(r.Key, q.Wire, h.Get, "/v1", r.Prior(1, "cred", q.Scope))
		}
		var own, sent []string // of the request before
		reads.direct, reads.gated = nil, nil
		for range rapid.IntRange(2, 6).Draw(rt, "prompts") {
			switch rapid.SampledFrom([]string{"go on", "go on", "go on", "compact", "restart", "reading", "time"}).Draw(rt, "before") {
			case "compact":
				c.items, own, sent = nil, nil, nil
			case "restart":
				r.restart()
			case "reading":
				r.value = rapid.SampledFrom([]string{"1m", "2m", "8m"}).Draw(rt, "value")
			case "time":
				r.pass(r.set.DeclareReuse + 1)
			}
			c.items = append(c.items, item{prompt: fmt.Sprintf("%s Raise the upload limit of nginx, part %d.", c.session, len(c.items))})
			for laps := rapid.IntRange(0, 3).Draw(rt, "laps"); ; laps-- {
				next = ""
				if laps > 0 {
					c.calls++
					next = fmt.Sprintf("call%d", c.calls)
				}
				before := len(r.bodies)
				body := c.body()
				out, err := r.request(f, body, identify)
				if err != nil {
					rt.Fatal(err)
				}
				nowOwn := elements(rt, []byte(body))
				var nowSent []string
				for _, b := range r.bodies[before:] {
					if isDeclare(b) {
						continue
					}
					nowSent = elements(rt, b)
					clean, blocks := unblocked(rt, nowSent)
					if !slices.Equal(clean, nowOwn) {
						rt.Fatalf("without our blocks\n%s\nis not the client's\n%s", strings.Join(clean, "\n"), strings.Join(nowOwn, "\n"))
					}
					carried += len(blocks)
					for _, bl := range blocks {
						if strings.Contains(bl, "→ contradicted") {
							corrections++
						}
					}
				}
				if nowSent == nil {
					rt.Fatal("nothing left")
				}
				if len(own) > 0 && len(nowOwn) >= len(own) && slices.Equal(nowOwn[:len(own)], own) && (len(nowSent) < len(sent) || !slices.Equal(nowSent[:len(sent)], sent)) {
					rt.Fatalf("a request that begins like the one before does so no more:\n%s\nafter\n%s", strings.Join(nowSent, "\n"), strings.Join(sent, "\n"))
				}
				reads.add(rt, nowOwn, nowSent)
				own, sent = nowOwn, nowSent
				calls, err := c.hears(out.buf.Bytes())
				if err != nil {
					rt.Fatalf("%v: %s", err, out.buf.Bytes())
				}
				if calls == 0 {
					break
				}
			}
		}
	})
	t.Logf("%d conversations, %d blocks carried, %d of them corrections; a prefix cache serves %.4f of what it would serve direct", n, carried, corrections, float64(reads.sent)/float64(max(reads.own, 1)))
	// Random conversations are short, so that where a block is new weighs more than
	// in real ones: some draws come to .989.
	if corrections == 0 || reads.own == 0 || reads.sent < reads.own*98/100 {
		t.Errorf("%d corrections; cache reads %d of %d bytes", corrections, reads.sent, reads.own)
	}
	r.verifyLedger()
}
