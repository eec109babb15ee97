package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
)

// sdkScript talks through both SDKs as programs do and prints what they parsed.
const sdkScript = `
const OpenAI = require('openai').default ?? require('openai');
const Anthropic = require('@anthropic-ai/sdk').default ?? require('@anthropic-ai/sdk');
const [base, ticket, task] = process.argv.slice(2);
const openai = new OpenAI({ baseURL: base + '/v1', apiKey: 'dummy', maxRetries: 0, timeout: 20000 });
const anthropic = new Anthropic({ baseURL: base, apiKey: 'dummy', maxRetries: 0, timeout: 20000 });
const user = (content) => [{ role: 'user', content }];
const shell = { type: 'function', function: { name: 'shell', description: 'run', parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] } } };
const bash = { name: 'Bash', description: 'run', input_schema: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] } };
const texts = (m) => m.content.filter((b) => b.type === 'text').map((b) => b.text).join('');
const uses = (m) => m.content.filter((b) => b.type === 'tool_use').map((b) => b.input.command);
const error = async (f) => { try { await f(); return { none: true }; } catch (e) { return { kind: e.constructor.name, status: e.status ?? null, message: String(e.message) }; } };
const cases = {
  async 'openai whole'() {
    const { data, response } = await openai.chat.completions.create({ model: 'm', messages: user(ticket + ' 1') }).withResponse();
    return { text: data.choices[0].message.content, decision: response.headers.get('x-gettier-decision'), turn: response.headers.get('x-gettier-turn'), usage: data.usage?.total_tokens };
  },
  async 'openai stream'() {
    const { data, response } = await openai.chat.completions.create({ model: 'm', messages: user(ticket + ' 2'), stream: true }).withResponse();
    let text = '', finish = null;
    for await (const c of data) { text += c.choices[0]?.delta?.content ?? ''; finish = c.choices[0]?.finish_reason ?? finish; }
    return { text, finish, decision: response.headers.get('x-gettier-decision'), turn: response.headers.get('x-gettier-turn') };
  },
  async 'openai stream helper with tools'() {
    const s = openai.chat.completions.stream({ model: 'm', messages: user(task + ' 3'), tools: [shell], stream_options: { include_usage: true } });
    const c = await s.finalChatCompletion();
    const m = c.choices[0].message;
    return { text: m.content, calls: m.tool_calls.map((t) => JSON.parse(t.function.arguments).command), finish: c.choices[0].finish_reason };
  },
  async 'openai whole with tools'() {
    const c = await openai.chat.completions.create({ model: 'm', messages: user(task + ' 4'), tools: [shell] });
    const m = c.choices[0].message;
    return { text: m.content, calls: m.tool_calls.map((t) => JSON.parse(t.function.arguments).command), finish: c.choices[0].finish_reason };
  },
  async 'openai cut stream'() {
    return error(async () => { for await (const _ of await openai.chat.completions.create({ model: 'm', messages: user('cut me'), stream: true })); });
  },
  async 'openai too large'() {
    return error(() => openai.chat.completions.create({ model: 'm', messages: user('x'.repeat(70000)) }));
  },
  async 'openai refused upstream'() {
    return error(() => openai.chat.completions.create({ model: 'm', messages: user('refuse me') }));
  },
  async 'openai models'() {
    const ids = []; for await (const m of openai.models.list()) ids.push(m.id); return { ids };
  },
  async 'anthropic whole'() {
    const { data, response } = await anthropic.messages.create({ model: 'm', max_tokens: 100, messages: user(ticket + ' 5') }).withResponse();
    return { text: texts(data), finish: data.stop_reason, decision: response.headers.get('x-gettier-decision'), turn: response.headers.get('x-gettier-turn') };
  },
  async 'anthropic stream'() {
    const s = anthropic.messages.stream({ model: 'm', max_tokens: 100, messages: user(ticket + ' 6') });
    let seen = ''; s.on('text', (t) => { seen += t; });
    const m = await s.finalMessage();
    return { text: texts(m), seen, finish: m.stop_reason, decision: s.response?.headers.get('x-gettier-decision') };
  },
  async 'anthropic stream with tools'() {
    const s = anthropic.messages.stream({ model: 'm', max_tokens: 100, messages: user(task + ' 7'), tools: [bash] });
    const m = await s.finalMessage();
    return { text: texts(m), calls: uses(m), finish: m.stop_reason, input: m.usage.input_tokens };
  },
  async 'anthropic raw stream with tools'() {
    const kinds = [];
    for await (const e of await anthropic.messages.create({ model: 'm', max_tokens: 100, messages: user(task + ' 8'), tools: [bash], stream: true })) kinds.push(e.type);
    return { first: kinds[0], last: kinds.at(-1), starts: kinds.filter((k) => k === 'message_start').length };
  },
  async 'anthropic whole with tools'() {
    const m = await anthropic.messages.create({ model: 'm', max_tokens: 100, messages: user(task + ' 9'), tools: [bash] });
    return { text: texts(m), calls: uses(m), finish: m.stop_reason };
  },
  async 'anthropic cut stream'() {
    return error(() => anthropic.messages.stream({ model: 'm', max_tokens: 100, messages: user('cut me') }).finalMessage());
  },
  async 'anthropic too large'() {
    return error(() => anthropic.messages.create({ model: 'm', max_tokens: 100, messages: user('x'.repeat(70000)) }));
  },
  async 'anthropic refused upstream'() {
    return error(() => anthropic.messages.create({ model: 'm', max_tokens: 100, messages: user('refuse me') }));
  },
  async 'anthropic count'() {
    return anthropic.messages.countTokens({ model: 'm', messages: user('hi') });
  },
  async 'anthropic loop'() {
    const messages = user(task + ' 10');
    const laps = [];
    for (let i = 0; i < 12; i++) {
      const m = await anthropic.messages.stream({ model: 'm', max_tokens: 100, messages, tools: [bash] }).finalMessage();
      laps.push(uses(m)[0] ?? 'end');
      if (m.stop_reason !== 'tool_use') break;
      messages.push({ role: 'assistant', content: m.content });
      messages.push({ role: 'user', content: m.content.filter((b) => b.type === 'tool_use').map((b) => ({ type: 'tool_result', tool_use_id: b.id, content: 'limit = 1m' })) });
    }
    return { laps };
  },
  async 'openai loop'() {
    const messages = user(task + ' 11');
    const laps = [];
    for (let i = 0; i < 12; i++) {
      const c = await openai.chat.completions.stream({ model: 'm', messages, tools: [shell] }).finalChatCompletion();
      const m = c.choices[0].message;
      laps.push(m.tool_calls?.[0] ? JSON.parse(m.tool_calls[0].function.arguments).command : 'end');
      if (!m.tool_calls?.length) break;
      messages.push(m);
      for (const t of m.tool_calls) messages.push({ role: 'tool', tool_call_id: t.id, content: 'limit = 1m' });
    }
    return { laps };
  },
};
(async () => {
  for (const [name, f] of Object.entries(cases)) {
    let out;
    try { out = await f(); } catch (e) { out = { failed: String(e.stack) }; }
    console.log(JSON.stringify({ name, ...out }));
  }
})();
`

// sdkDir is where openai and @anthropic-ai/sdk are, installed at the first use.
func sdkDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("GETTIER_E2E_NODE")
	if dir == "" {
		t.Skip("GETTIER_E2E_NODE names no directory for openai and @anthropic-ai/sdk (see .ci/clients)")
	}
	for _, p := range []string{"node", "npm"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip(p + " is not here")
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []string{"openai", "@anthropic-ai/sdk"} {
		if _, err := os.Stat(filepath.Join(dir, "node_modules", m, "package.json")); err == nil {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{"package.json", "package-lock.json"} {
			b, err := os.ReadFile(filepath.Join("..", "..", ".ci", "clients", f))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, f), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("the SDKs cannot be installed: %v\n%s", err, out)
		}
		break
	}
	return dir
}

// TestE2ESDKs: programs that use the vendors' SDKs see whole, well-formed answers
// of a caught turn, and errors where there are errors.
func TestE2ESDKs(t *testing.T) {
	t.Parallel()
	dir := sdkDir(t)
	loop := worker(0)
	up := newRecorder(t, func(w http.ResponseWriter, r *http.Request, x *exchange) {
		tg := tongueOf(x.target)
		switch {
		case r.URL.Path == "/v1/models":
			write(w, false, `{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"x"}]}`)
		case strings.HasSuffix(r.URL.Path, "/count_tokens"):
			write(w, false, `{"input_tokens":7}`)
		case strings.Contains(x.body, "refuse me"):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`)
		case strings.Contains(x.body, "cut me"):
			w.Header().Set("Content-Type", "text/event-stream")
			all := tg.text(true, strings.Repeat("half of this ", 20))
			io.WriteString(w, all[:len(all)*2/3])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case strings.Contains(x.body, `"tools"`) && !x.declares() || x.declares() && strings.Contains(x.body, task):
			loop(w, r, x)
		default:
			believer(w, r, x)
		}
	})
	h := newHouse(t, plan{upstream: up.URL, config: "proxy:\n  max_body: 64KiB\ninject:\n  max_bytes: 0\n"})
	script := filepath.Join(h.dir, "sdk.cjs")
	h.write(script, sdkScript)
	cmd := exec.Command("node", script, "http://"+h.proxy, ticket, task)
	cmd.Dir = h.project
	cmd.Env = append(cleanEnv(h.dir), "NODE_PATH="+filepath.Join(dir, "node_modules"))
	p := startProcess(t, cmd)
	if code := p.wait(); code != 0 {
		t.Fatalf("node ended with %d: %s", code, p.errors())
	}
	type result struct {
		Name, Failed, Text, Seen, Finish, Decision, Turn, Message string
		First, Last                                               string
		Starts, Status                                            int
		InputTokens                                               int `json:"input_tokens"`
		Calls, Laps, IDs                                          []string
		None                                                      bool
	}
	got := map[string]result{}
	for _, l := range p.lines() {
		var r result
		if err := json.Unmarshal([]byte(l), &r); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		if r.Failed != "" {
			t.Errorf("%s: %s", r.Name, r.Failed)
		}
		got[r.Name] = r
	}
	for _, sdk := range []string{"openai", "anthropic"} {
		for _, how := range []string{" whole", " stream"} {
			r := got[sdk+how]
			if r.Text != corrected || r.Decision != string(lemma.DecCaught) || r.Seen != "" && r.Seen != corrected {
				t.Errorf("%s%s: %+v", sdk, how, r)
			}
		}
		for _, how := range []string{" whole with tools", map[string]string{"openai": " stream helper with tools", "anthropic": " stream with tools"}[sdk]} {
			r := got[sdk+how]
			if len(r.Calls) != 1 || !strings.HasPrefix(r.Calls[0], "cat edge.conf") || !strings.HasSuffix(r.Text, "Correction: the edge takes 1m.") || !strings.HasPrefix(r.Finish, "tool_") {
				t.Errorf("%s%s: %+v", sdk, how, r)
			}
		}
		if r := got[sdk+" cut stream"]; r.None || r.Message == "" {
			t.Errorf("%s: a cut stream was no error: %+v", sdk, r)
		}
		if r := got[sdk+" too large"]; r.Status != http.StatusRequestEntityTooLarge || !strings.Contains(r.Message, "max_body") {
			t.Errorf("%s: too large: %+v", sdk, r)
		}
		if r := got[sdk+" refused upstream"]; r.Status != http.StatusTooManyRequests || !strings.Contains(r.Message, "slow down") {
			t.Errorf("%s: refused: %+v", sdk, r)
		}
		r := got[sdk+" loop"]
		if len(r.Laps) != loopLaps || r.Laps[loopLaps-1] != "end" {
			t.Errorf("%s: the loop made %d laps: %v", sdk, len(r.Laps), r.Laps)
		}
		for _, l := range r.Laps[:max(len(r.Laps)-1, 0)] {
			if !strings.HasPrefix(l, "cat edge.conf") {
				t.Errorf("%s: the loop ran %q", sdk, l)
			}
		}
	}
	if r := got["anthropic raw stream with tools"]; r.First != "message_start" || r.Last != "message_stop" || r.Starts != 1 {
		t.Errorf("raw stream: %+v", r)
	}
	if r := got["anthropic count"]; r.InputTokens != 7 {
		t.Errorf("count_tokens: %+v", r)
	}
	if r := got["openai models"]; len(r.IDs) != 1 {
		t.Errorf("models: %+v", r)
	}
	h.verified()
}
