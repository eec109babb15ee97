package e2e

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

// TestE2EAction: a call that destroys waits until a person in a terminal of
// their own says so; what they approve leaves byte for byte, what they deny
// does not, and the screen shows what it runs.
func TestE2EAction(t *testing.T) {
	t.Parallel()
	for n, word := range []string{"--approve --scope once", "--deny --note 'the only copy'"} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			tg := tongues[n]
			call := tg.call(true, "Cleaning up.", "call_rm", toolName(tg), shellArgs("sudo sh -c 'rm -rf ./data'"))
			up := newRecorder(t, func(w http.ResponseWriter, _ *http.Request, x *exchange) {
				if x.declares() {
					declare(w, x, trueClaim)
					return
				}
				write(w, x.stream, call)
			})
			h := layHouse(t, plan{upstream: up.URL, config: "gate:\n  client_wait: 5m\n"})
			h.write(filepath.Join(h.project, "edge.conf"), "limit = 1m\n")
			h.start()
			tm, a := h.newTerminal(), h.agent(h.project)
			got := make(chan reply, 1) // the one answer
			go func() { got <- a.post(t, tg.path, tg.body(true, true, tg.user("clean up the data directory"))) }()
			hold := h.opened()
			screen, code := tm.typed("gettier holds --socket " + h.socket)
			if code != "0" || !strings.Contains(screen, "runs rm -rf ./data  by sudo › sh -c") || !strings.Contains(screen, "destroy") {
				t.Errorf("exit %s\n%s", code, screen)
			}
			if screen, code = h.answer(tm, hold.ID, word); code != "0" {
				t.Fatalf("exit %s\n%s", code, screen)
			}
			r := <-got
			left := strings.Contains(r.body, "call_rm")
			if approve := n == 0; r.err != nil || left != approve || approve && r.body != call {
				t.Errorf("left %t: %v\n%s", left, r.err, r.body)
			} else if !approve && !strings.Contains(tg.says(t, true, r.body), "a person denied it: the only copy") {
				t.Errorf("nobody says why: %s", r.body)
			}
			b := find[lemma.ActionDecided](t, h.entries())
			if len(b) != 1 || b[0].Ruled != "REQUIRE_CONFIRM" || (b[0].Approval != "") != (n == 0) {
				t.Errorf("entries %+v", b)
			}
			d, err := h.api().Decide(t.Context(), ipc.Action{Tool: "Bash", Args: []byte(`{"command":"rm -rf ./data"}`), Cwd: h.project})
			if err != nil || d.State != "REQUIRE_CONFIRM" || d.Effect != "destroy" || !strings.Contains(string(d.Raw), `"nodes"`) {
				t.Errorf("asked on the socket: %+v %v", d, err)
			}
			if b := find[lemma.ActionDecided](t, h.entries()); b[len(b)-1].DecisionID != d.DecisionID {
				t.Errorf("entries %+v", b)
			}
			h.verified()
		})
	}
}

// TestE2EWrittenScript: what one call writes is judged when the next one runs it,
// before either has happened and after.
func TestE2EWrittenScript(t *testing.T) {
	t.Parallel()
	h := layHouse(t, plan{})
	h.start()
	ask := func(want, tool, args string) {
		t.Helper()
		d, err := h.api().Decide(t.Context(), ipc.Action{Tool: tool, Args: []byte(args), Cwd: h.project, Actor: "agent"})
		if err != nil || d.State != want {
			t.Errorf("%s %s: %s (%s) %v, want %s", tool, args, d.State, d.Reason, err, want)
		}
	}
	h.write(filepath.Join(h.project, "old.sh"), "rm -rf data\n")
	ask("ALLOW", "Bash", `{"command":"ls"}`)
	ask("ALLOW", "Bash", `{"command":"bash old.sh"}`)
	ask("ALLOW", "Write", `{"file_path":`+quoted(filepath.Join(h.project, "x.sh"))+`,"content":"rm -rf data\n"}`)
	ask("REQUIRE_CONFIRM", "Bash", `{"command":"chmod +x x.sh && ./x.sh"}`)
	h.write(filepath.Join(h.project, "x.sh"), "rm -rf data\n")
	ask("REQUIRE_CONFIRM", "Bash", `{"command":"bash x.sh"}`)
	h.write(filepath.Join(h.project, "x.sh"), "ls\n")
	ask("ALLOW", "Bash", `{"command":"bash x.sh"}`)
	h.write(filepath.Join(h.project, "package.json"), `{"scripts":{"clean":"rm -rf data","test":"vitest"}}`)
	ask("REQUIRE_CONFIRM", "Bash", `{"command":"npm run clean"}`)
	ask("ALLOW", "Bash", `{"command":"npm test"}`)
}
