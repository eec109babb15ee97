package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
)

// holdFor is how long a person takes in the test of the SDKs: longer than two
// keep-alives.
const holdFor = 40 * time.Second

// terminal is a real one, with a person's shell in it.
type terminal struct {
	t    *testing.T
	name string
	dir  string
	env  []string
	n    int // commands typed
}

// newTerminal starts a tmux server of its own: another person at another window.
func (h *house) newTerminal() *terminal {
	h.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		h.t.Skip("tmux is not installed: a person's terminal cannot be had")
	}
	h.terminals++
	tm := &terminal{
		t: h.t, name: fmt.Sprintf("person%d", h.terminals), dir: h.dir,
		env: append(cleanEnv(h.dir), "TMUX_TMPDIR="+h.dir, "TERM=xterm-256color", "PATH="+filepath.Dir(binary(h.t, "gettier"))+":"+os.Getenv("PATH")),
	}
	tm.tmux("-u", "-f", "/dev/null", "new-session", "-d", "-x", "160", "-y", "50", "sh")
	h.t.Cleanup(func() { tm.tmux("kill-server") })
	return tm
}

func (tm *terminal) tmux(args ...string) string {
	tm.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-L", tm.name}, args...)...)
	cmd.Env, cmd.Dir = tm.env, tm.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		tm.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// typed types a command, waits for its end and returns the screen and its code.
func (tm *terminal) typed(command string) (screen, code string) {
	tm.t.Helper()
	tm.n++ // what stands there of the command before is not this one's end
	mark := fmt.Sprintf("-end%d-", tm.n)
	tm.tmux("send-keys", "clear; "+command+"; echo code-$?"+mark, "Enter")
	eventually(tm.t, command+" ends", func() bool {
		screen = tm.tmux("capture-pane", "-p", "-J")
		before, _, ok := strings.Cut(screen, mark)
		i := strings.LastIndex(before, "code-")
		if !ok || i < 0 {
			return false
		}
		if code = before[i+len("code-"):]; code == "$?" { // the command line as typed; its end may follow
			_, rest, _ := strings.Cut(screen, mark)
			before, _, ok = strings.Cut(rest, mark)
			if i = strings.LastIndex(before, "code-"); !ok || i < 0 {
				return false
			}
			code = before[i+len("code-"):]
		}
		return len(code) <= 3
	})
	return screen, code
}

// answer types `gettier answer` with further words.
func (h *house) answer(tm *terminal, id, words string) (screen, code string) {
	h.t.Helper()
	return tm.typed(fmt.Sprintf("gettier answer --socket %s %s %s", h.socket, id, words))
}

// untold is a provider whose belief nothing here can measure, until a person
// has said what is true.
func untold(w http.ResponseWriter, _ *http.Request, x *exchange) {
	tg := tongueOf(x.target)
	switch {
	case x.declares():
		declare(w, x, falseClaim)
	case strings.Contains(x.body, "a person says"):
		write(w, x.stream, tg.text(x.stream, corrected))
	case x.grounded():
		write(w, x.stream, tg.text(x.stream, "Confirmed, so I go on."))
	default:
		write(w, x.stream, tg.text(x.stream, believing))
	}
}

// unmeasurable is a house whose sensor cannot run and whose holds wait.
func unmeasurable(t *testing.T, wait string) (*house, *recorder) {
	t.Helper()
	up := newRecorder(t, untold)
	h := newHouse(t, plan{upstream: up.URL, config: "gate:\n  client_wait: " + wait + "\n  budget: {per_hour: 100, per_day: 100}\n"})
	if err := os.Remove(filepath.Join(h.project, "edge.conf")); err != nil {
		t.Fatal(err)
	}
	return h, up
}

// opened waits for an open hold that is not among known.
func (h *house) opened(known ...string) (open lemma.Hold) {
	h.t.Helper()
	eventually(h.t, "a hold is open", func() bool {
		for _, e := range find[lemma.HoldOpened](h.t, h.entries()) {
			if !strings.Contains(strings.Join(known, " "), e.Hold.ID) {
				open = e.Hold
				return true
			}
		}
		return false
	})
	return open
}

// TestE2EHold: a streaming client waits, a person answers in a terminal, and the
// answer that arrives carries what they said; a second answer is told who was
// first, when and where.
func TestE2EHold(t *testing.T) {
	t.Parallel()
	for _, tg := range tongues {
		t.Run(tg.name, func(t *testing.T) {
			t.Parallel()
			h, _ := unmeasurable(t, "5m")
			tm, a := h.newTerminal(), h.agent(h.project)
			body := tg.body(true, false, tg.user(ticket))
			got := make(chan reply, 1) // the one answer
			go func() { got <- a.post(t, tg.path, body) }()
			first := h.opened()
			screen, code := h.answer(tm, first.ID, "--correct 'the edge takes 1 MB'")
			if code != "0" {
				t.Fatalf("exit %s\n%s", code, screen)
			}
			if r := <-got; r.err != nil || tg.says(t, true, r.body) != corrected {
				t.Fatalf("%v %s", r.err, r.body)
			}
			if screen, code = h.answer(tm, first.ID, "--confirm"); code == "0" || !strings.Contains(screen, "was answered (correct)") || !strings.Contains(screen, "via cli on pts/") {
				t.Errorf("a second answer: exit %s\n%s", code, screen)
			}

		})
	}
}

// sees waits for words on the screen.
func (tm *terminal) sees(words ...string) {
	tm.t.Helper()
	eventually(tm.t, fmt.Sprintf("%s shows %q", tm.name, words), func() bool { return tm.shows(words...) })
}

func (tm *terminal) shows(words ...string) bool {
	tm.t.Helper()
	screen := tm.tmux("capture-pane", "-p", "-J")
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(screen, w) })
}

// TestE2EThreeHands: two screens and a command look at one hold. Whoever is
// first wins; the others say so at once, and by which hand.
func TestE2EThreeHands(t *testing.T) {
	t.Parallel()
	h, _ := unmeasurable(t, "5m")
	one, two, command, a := h.newTerminal(), h.newTerminal(), h.newTerminal(), h.agent(h.project)
	for _, tm := range []*terminal{one, two} {
		tm.tmux("send-keys", "gettier --socket "+h.socket, "Enter")
		tm.sees("[1 Holds]", "Nothing waits")
	}
	ask := func(n int, known ...string) lemma.Hold {
		body := chatTongue.body(true, false, chatTongue.user(fmt.Sprint(ticket, " Case ", n)))
		go func() { _, _ = a.do(http.MethodPost, chatTongue.path, body) }()
		hold := h.opened(known...)
		one.sees("The model assumes")
		two.sees("The model assumes")
		return hold
	}
	// told waits until each screen has the answer and no longer the question.
	told := func(hold lemma.Hold, words string, screens ...*terminal) {
		t.Helper()
		left := screens
		eventually(t, "the screens show that "+hold.ID+" is answered", func() bool {
			left = slices.DeleteFunc(slices.Clone(left), func(tm *terminal) bool {
				return tm.shows(words, "Nothing waits")
			})
			return len(left) == 0
		})
		seen := time.Now()
		for _, e := range h.entries() {
			if e.Kind != string(lemma.KHoldAnswered) || body[lemma.HoldAnsweredBody](t, e).Hold != hold.ID {
				continue
			}
			at, err := time.Parse(time.RFC3339Nano, e.TS)
			if err != nil {
				t.Fatal(err)
			}
			// The bound is 100 ms; the rest is tmux, and a machine that others use, too.
			if d := seen.Sub(at); d > 5*time.Second {
				t.Errorf("the other screens took %v", d)
			} else {
				t.Logf("on every screen %v after it was answered", d)
			}
		}
	}

	first := ask(1)
	if screen, code := h.answer(command, first.ID, "--correct 'the edge takes 1 MB'"); code != "0" {
		t.Fatalf("exit %s\n%s", code, screen)
	}
	told(first, "answered: correct by", one, two)

	second := ask(2, first.ID)
	var pressed time.Time
	eventually(t, "a screen answers", func() bool {
		if one.shows("✓", "answered: confirm") {
			return true
		}
		if time.Since(pressed) > 2*time.Second { // a key that comes too early is not taken
			one.tmux("send-keys", "c")
			pressed = time.Now()
		}
		return false
	})
	told(second, "answered: confirm", one, two)
	if !two.shows("answered: confirm by", "via tui") {
		t.Errorf("the other screen does not say by whom:\n%s", two.tmux("capture-pane", "-p", "-J"))
	}
	if screen, code := h.answer(command, second.ID, "--waive 'too late'"); code == "0" || !strings.Contains(screen, "was answered (confirm)") || !strings.Contains(screen, "via tui on pts/") {
		t.Errorf("the command, too late: exit %s\n%s", code, screen)
	}
}

// TestE2EHoldSurvivesRestart: the daemon is restarted while a hold is open; the
// answer is given to the new one, and the same request gets it.
func TestE2EHoldSurvivesRestart(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"stop", "kill"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			h, up := unmeasurable(t, "5m")
			tm, a := h.newTerminal(), h.agent(h.project)
			body := chatTongue.body(true, false, chatTongue.user(ticket))
			go func() { _, _ = a.do(http.MethodPost, chatTongue.path, body) }() // broken, or it asks again by itself
			held := h.opened()
			declares := up.declares()
			if end == "kill" {
				h.kill()
			} else {
				h.stop()
			}
			h.start()
			if screen, code := h.answer(tm, held.ID, "--correct 'the edge takes 1 MB'"); code != "0" {
				t.Fatalf("exit %s\n%s", code, screen)
			}
			r := a.post(t, chatTongue.path, body)
			if r.err != nil || r.status != http.StatusOK || chatTongue.says(t, true, r.body) != corrected {
				t.Fatalf("%d %v %s", r.status, r.err, r.body)
			}
			if r.turn() != held.Turn {
				t.Errorf("turn %s, the hold's is %s", r.turn(), held.Turn)
			}
			if up.declares() != declares {
				t.Error("it was declared again")
			}
			if v := h.verified(); !v.OK {
				t.Errorf("%+v", v)
			}
		})
	}
}

// TestE2EOnlyAPersonAnswers: whatever is no person's call is refused, said and
// recorded; the person's own call right after it works.
func TestE2EOnlyAPersonAnswers(t *testing.T) {
	t.Parallel()
	h, _ := unmeasurable(t, "0s")
	tm, a := h.newTerminal(), h.agent(h.project)
	if r := a.post(t, chatTongue.path, chatTongue.body(false, false, chatTongue.user(ticket))); r.err != nil || !strings.Contains(r.body, "gettier needs one answer") {
		t.Fatalf("%v %s", r.err, r.body)
	}
	held := h.opened()
	gettier, words := binary(t, "gettier"), []string{"answer", "--socket", h.socket, held.ID, "--confirm"}
	line := gettier + " " + strings.Join(words, " ")

	refused := func(name string, cmd *exec.Cmd) {
		t.Helper()
		before := len(find[lemma.AnswerRefused](t, h.entries()))
		cmd.Env, cmd.Dir = append(cleanEnv(h.dir), "TERM=dumb"), h.project
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "answered, scope") {
			t.Fatalf("%s: it answered\n%s", name, out)
		}
		eventually(t, name+" is recorded", func() bool { return len(find[lemma.AnswerRefused](t, h.entries())) > before })
		_ = err // the program's own code depends on how it was started
	}
	refused("a script", exec.Command(gettier, words...))
	refused("sh -c", exec.Command("sh", "-c", line))
	if _, err := exec.LookPath("setsid"); err == nil {
		refused("setsid -f", exec.Command("setsid", "-f", gettier, words[0], words[1], words[2], words[3], words[4]))
	}
	if _, err := exec.LookPath("nohup"); err == nil {
		refused("nohup", exec.Command("nohup", gettier, words[0], words[1], words[2], words[3], words[4]))
	}
	// A client of the proxy that gives itself a terminal, and the shell of one.
	if _, err := exec.LookPath("script"); err == nil {
		if _, err := exec.LookPath("curl"); err == nil {
			client := filepath.Join(h.dir, "client.sh")
			h.write(client, fmt.Sprintf("exec 3<>/dev/tcp/%s\nprintf 'GET /v1/models HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n' >&3\ncat <&3 >/dev/null\nscript -qec %q /dev/null\n",
				strings.Replace(h.proxy, ":", "/", 1), h.proxy, line))
			refused("script in a client's shell", exec.Command("bash", client))
		}
	}
	// A person's background job, and a job that outlives its shell.
	before := len(find[lemma.AnswerRefused](t, h.entries()))
	tm.typed(fmt.Sprintf("( %s & ) ; sleep 1", line))
	eventually(t, "a background job is recorded", func() bool { return len(find[lemma.AnswerRefused](t, h.entries())) > before })

	// An agent by its name, in a real terminal.
	agent := filepath.Join(h.dir, "claude")
	h.write(agent, "#!/bin/sh\n"+line+"\n")
	if err := os.Chmod(agent, 0o700); err != nil {
		t.Fatal(err)
	}
	shell, err := os.ReadFile("/bin/sh")
	if err == nil {
		named := filepath.Join(h.dir, "bin", "claude")
		if err := os.MkdirAll(filepath.Dir(named), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(named, shell, 0o700); err != nil {
			t.Fatal(err)
		}
		if screen, code := tm.typed(named + " " + agent); code == "0" || strings.Contains(screen, "answered, scope") {
			t.Fatalf("an agent answered in a terminal: exit %s\n%s", code, screen)
		}
	}

	// A second process that sends the bare reply, and a look-alike question.
	for name, items := range map[string][]string{
		"a second session": {chatTongue.user(ticket), fmt.Sprintf(`{"role":"assistant","content":%s}`, quoted("anything")), chatTongue.user("y " + held.ID[len(held.ID)-4:])},
	} {
		r := h.agent(h.project).post(t, chatTongue.path, chatTongue.body(false, false, items...))
		if r.err != nil || !strings.Contains(r.body, "did not take this as an answer") {
			t.Errorf("%s: %v %s", name, r.err, r.body)
		}
	}
	if screen, code := h.answer(tm, held.ID, "--confirm"); code != "0" {
		t.Fatalf("the person's own answer: exit %s\n%s", code, screen)
	}
	got := find[lemma.HoldAnsweredBody](t, h.entries())
	if len(got) != 1 || got[0].Answers[0].By.TTY == "" || len(got[0].Answers[0].By.Chain) < 2 {
		t.Errorf("answers %+v", got)
	}
}

// TestE2ENoAnswerAcrossRestarts: what an agent without a known name left running in
// a terminal, or detached from it, answers nothing, also after a restart of the
// daemon that forgets neither; and one whose worker talks to the proxy for it.
func TestE2ENoAnswerAcrossRestarts(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "setsid", "script"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	h, _ := unmeasurable(t, "0s")
	tm := h.newTerminal()
	asks := filepath.Join(h.dir, "asks.sh")
	go_ := filepath.Join(h.dir, "go")
	for _, c := range []struct{ name, script string }{
		{"itself", "cd %[1]s; . %[2]s; %[3]s; %[4]s"},
		{"detached", "cd %[1]s; . %[2]s; setsid -f script -qec '%[3]s; %[4]s' /dev/null; %[3]s; sleep 1"},
		{"its worker", "cd %[1]s; bash %[2]s; %[3]s; %[4]s"},
	} {
		_ = os.Remove(go_)
		// The client asks and leaves; the port is another one after each restart.
		ask := chatTongue.body(false, false, chatTongue.user(ticket+" Case "+c.name))
		h.write(asks+".http", fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", chatTongue.path, h.proxy, len(ask), ask))
		h.write(asks, fmt.Sprintf("exec 3<>/dev/tcp/%s\ncat %s >&3\ncat <&3 >/dev/null\n", strings.Replace(h.proxy, ":", "/", 1), asks+".http"))
		holds, known := len(find[lemma.HoldOpened](t, h.entries())), len(find[lemma.AnswerRefused](t, h.entries()))
		agent := filepath.Join(h.dir, "agent.sh")
		h.write(agent, fmt.Sprintf(c.script+"\n", h.project, asks, "while [ ! -e "+go_+" ]; do sleep .05; done", "gettier answer --socket "+h.socket+" \"$(gettier holds --socket "+h.socket+" | head -1 | cut -d\" \" -f1)\" --waive mine"))
		tm.tmux("send-keys", "bash "+agent, "Enter")
		eventually(t, c.name+" was asked", func() bool { return len(find[lemma.HoldOpened](t, h.entries())) > holds })
		held := h.opened()
		h.kill()
		h.start()
		h.write(go_, "")
		eventually(t, c.name+" is refused and recorded", func() bool {
			if n := len(find[lemma.HoldAnsweredBody](t, h.entries())); n > 0 {
				t.Fatalf("%s answered hold %s", c.name, held.ID)
			}
			return len(find[lemma.AnswerRefused](t, h.entries())) > known
		})
	}
}

// TestE2EHoldSDKs: the vendors' SDKs and two of Go's live through a hold of 40 s.
func TestE2EHoldSDKs(t *testing.T) {
	t.Parallel()
	node, gosdk := os.Getenv("GETTIER_E2E_NODE"), os.Getenv("GETTIER_E2E_GOSDK")
	if node == "" || gosdk == "" {
		t.Skip("GETTIER_E2E_NODE and GETTIER_E2E_GOSDK do not name the SDKs; .ci/run sets them")
	}
	h, _ := unmeasurable(t, "5m")
	tm := h.newTerminal()
	script := filepath.Join(h.dir, "hold.cjs")
	h.write(script, `
const [kind, base, prompt] = process.argv.slice(2);
(async () => {
  let text = '';
  if (kind === 'openai') {
    const OpenAI = require('openai').default ?? require('openai');
    const c = new OpenAI({ baseURL: base + '/v1', apiKey: 'dummy', maxRetries: 0 });
    for await (const x of await c.chat.completions.create({ model: 'm', messages: [{ role: 'user', content: prompt }], stream: true })) text += x.choices[0]?.delta?.content ?? '';
  } else {
    const Anthropic = require('@anthropic-ai/sdk').default ?? require('@anthropic-ai/sdk');
    const c = new Anthropic({ baseURL: base, apiKey: 'dummy', maxRetries: 0 });
    const m = await c.messages.stream({ model: 'm', max_tokens: 1000, messages: [{ role: 'user', content: prompt }] }).finalMessage();
    text = m.content.map((b) => b.text ?? '').join('');
  }
  console.log(text);
})().catch((e) => { console.error(e); process.exit(1); });
`)
	type client struct {
		name string
		cmd  *exec.Cmd
		out  bytes.Buffer
	}
	var clients []*client
	for i, name := range []string{"openai", "anthropic", "go-openai", "anthropic-sdk-go"} {
		prompt := fmt.Sprintf("%s (%d)", ticket, i)
		cmd := exec.Command("node", script, name, "http://"+h.proxy, prompt)
		if strings.Contains(name, "go") {
			cmd = exec.Command(gosdk, name, "http://"+h.proxy, prompt)
		}
		cmd.Dir = h.project
		cmd.Env = append(cleanEnv(h.dir), "NODE_PATH="+filepath.Join(node, "node_modules"))
		c := &client{name: name, cmd: cmd}
		cmd.Stdout, cmd.Stderr = &c.out, &c.out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	// Each asks in a conversation of its own; an answer for the project settles all.
	held := h.opened()
	eventually(t, "all clients wait", func() bool {
		n := 0
		for _, tn := range h.turns() {
			if tn.Decision == lemma.DecHeld {
				n++
			}
		}
		return n == len(clients)
	})
	<-time.After(holdFor)
	if screen, code := h.answer(tm, held.ID, "--correct 'the edge takes 1 MB' --scope project"); code != "0" {
		t.Fatalf("exit %s\n%s", code, screen)
	}
	for _, c := range clients {
		if err := c.cmd.Wait(); err != nil || strings.TrimSpace(c.out.String()) != corrected {
			t.Errorf("%s: %v\n%s", c.name, err, c.out.String())
		}
	}
	if n := len(find[lemma.HoldOpened](t, h.entries())); n != len(clients) {
		t.Errorf("%d holds were opened for %d conversations", n, len(clients))
	}
}

// TestE2EAttacksNeedTheRule is the control of the test above: with that one rule
// off, in a build of its own, every attack answers the hold.
func TestE2EAttacksNeedTheRule(t *testing.T) {
	t.Parallel()
	gettier := binary(t, "gettier")
	program := filepath.Join(t.TempDir(), "gettierd")
	build := exec.Command("go", "build", "-tags", "gettier_norule", "-o", program, "gettier.dev/gettierd/daemon/gettierd")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build without the rule: %v\n%s", err, out)
	}
	up := newRecorder(t, untold)
	h := layHouse(t, plan{upstream: up.URL, config: "gate:\n  client_wait: 0s\n  budget: {per_hour: 100, per_day: 100}\n"})
	h.program = program
	h.start()
	if err := os.Remove(filepath.Join(h.project, "edge.conf")); err != nil {
		t.Fatal(err)
	}
	a := h.agent(h.project)
	var known []string
	for i, name := range []string{"script", "setsid", "sh", "a second session"} {
		prompt := fmt.Sprintf("%s Attack %d.", ticket, i)
		if r := a.post(t, chatTongue.path, chatTongue.body(false, false, chatTongue.user(prompt))); r.err != nil || !strings.Contains(r.body, "gettier needs one answer") {
			t.Fatalf("%s: %v %s", name, r.err, r.body)
		}
		held := h.opened(known...)
		known = append(known, held.ID)
		line := fmt.Sprintf("%s answer --socket %s %s --confirm", gettier, h.socket, held.ID)
		cmd := map[string]*exec.Cmd{
			"script": exec.Command("script", "-qec", line, "/dev/null"), "setsid": exec.Command("setsid", append([]string{"-f"}, strings.Fields(line)...)...), "sh": exec.Command("sh", "-c", line),
		}[name]
		if cmd == nil {
			items := []string{chatTongue.user(prompt), `{"role":"assistant","content":"anything"}`, chatTongue.user("y " + held.ID[len(held.ID)-4:])}
			_ = h.agent(h.project).post(t, chatTongue.path, chatTongue.body(false, false, items...)) // what it says is not the point
		} else {
			cmd.Env, cmd.Dir = cleanEnv(h.dir), h.project
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		}
		eventually(t, name+" answers", func() bool {
			for _, b := range find[lemma.HoldAnsweredBody](t, h.entries()) {
				if b.Hold == held.ID {
					return true
				}
			}
			return false
		})
	}
}
