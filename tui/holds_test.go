package tui

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

func TestAnswers(t *testing.T) {
	task := lemma.ScopeTask
	for _, c := range []struct {
		name string
		do   func(r *rig)
		want []ipc.ItemAnswer
	}{
		{"each claim for itself, sent with the last", func(r *rig) {
			r.calm()
			r.key("c")
			r.calm()
			r.key("r")
			r.typed("through two")
			r.shows("correct “through two” · to this claim · scope this task, this conversation · shop")
			r.key("enter")
		}, []ipc.ItemAnswer{{Item: "1", Answer: "confirm", Scope: task}, {Item: "2", Answer: "correct", Text: "through two", Scope: task}}},
		{"all at once, after one more key", func(r *rig) {
			r.calm()
			r.key("A")
			r.calm()
			r.shows("to each of these claims", "· the edge proxy accepts", "· uploads go through")
			r.key("w")
			r.typed("only a test")
			r.shows("waive “only a test” to each")
			r.key("enter")
		}, []ipc.ItemAnswer{{Item: "1", Answer: "waive", Text: "only a test", Scope: task}, {Item: "2", Answer: "waive", Text: "only a test", Scope: task}}},
		{"the rest of them", func(r *rig) {
			r.calm()
			r.key("tab")
			r.calm()
			r.key("s", "c")
			r.calm()
			r.key("s", "s") // the scope stays for the hold: project, once, task
			r.key("c")
		}, []ipc.ItemAnswer{{Item: "1", Answer: "confirm", Scope: task}, {Item: "2", Answer: "confirm", Scope: lemma.ScopeProject}}},
		{"another scope is said before the key", func(r *rig) {
			r.calm()
			r.key("s")
			r.shows("scope shop for 24 h; confirmed or corrected also as a told fact")
			r.key("c")
			r.calm()
			r.key("s")
			r.shows("scope this turn only")
			r.key("c")
		}, []ipc.ItemAnswer{{Item: "1", Answer: "confirm", Scope: lemma.ScopeProject}, {Item: "2", Answer: "confirm", Scope: lemma.ScopeOnce}}},
		{"a kept answer can be another", func(r *rig) {
			r.calm()
			r.key("c")
			r.key("shift+tab")
			r.calm()
			r.key("w")
			r.typed("no")
			r.key("enter")
			r.calm()
			r.key("c")
		}, []ipc.ItemAnswer{{Item: "1", Answer: "waive", Text: "no", Scope: task}, {Item: "2", Answer: "confirm", Scope: task}}},
		{"enter, space and esc answer nothing", func(r *rig) {
			r.calm()
			r.key("enter", "esc", " ", "esc", "enter")
			r.calm()
			r.key("esc", " ", " ")
		}, nil},
		{"an empty correction is none", func(r *rig) {
			r.calm()
			r.key("r", "enter")
			r.shows("a correction needs what is true")
			r.typed("   ")
			r.key("enter", "esc")
			r.calm()
			r.key("w", "enter", "esc")
		}, nil},
		{"keys too early are not taken", func(r *rig) {
			r.key("c")
			r.shows("not taken")
			r.wait(300 * time.Millisecond)
			r.key("c") // and begin the wait anew
			r.wait(300 * time.Millisecond)
			r.key("c")
			r.wait(424 * time.Millisecond)
			r.key("j")
			r.key("w")
		}, nil},
		{"nor what was typed ahead or pasted", func(r *rig) {
			r.calm()
			r.key("cc")
			r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("c"), Paste: true})
			r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("c"), Alt: true})
		}, nil},
		{"nor after the terminal came to the front", func(r *rig) {
			r.calm()
			r.send(tea.BlurMsg{})
			r.wait(time.Minute)
			r.send(tea.FocusMsg{})
			r.key("c")
		}, nil},
		{"nor on another screen", func(r *rig) {
			r.key("3")
			r.calm()
			r.key("c", "w")
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			onRig(t, 120, 30, Options{}, func(r *rig) {
				c.do(r)
				r.settle()
				if c.want == nil {
					if len(r.d.answers) > 0 {
						t.Errorf("answered: %v", r.d.answers)
					}
					if len(r.m.holds.list) != 2 {
						t.Error("a hold is gone")
					}
					for _, h := range r.m.holds.list {
						if len(h.draft) > 0 {
							t.Errorf("kept: %v", h.draft)
						}
					}
					return
				}
				if d := cmp.Diff([]ipc.HoldAnswer{{Items: c.want}}, r.d.answers); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
				r.wait(200 * time.Millisecond)
				r.hides("z7f3  ")
				r.shows("✓ z7f3 answered", "?1 hold ")
			})
		})
	}
}

// What others did is on the screen within 100 ms, with who it was.
func TestAnsweredElsewhere(t *testing.T) {
	onRig(t, 80, 24, Options{}, func(r *rig) {
		r.calm()
		r.key("r")
		r.typed("it ta")
		h := r.d.HoldRows[1]
		for i := range h.Items {
			h.Items[i].Answer = &lemma.Answer{Answer: lemma.AnswerWaive, By: lemma.Answerer{User: "grace", Via: "cli"}}
		}
		r.d.answered(h)
		r.wait(50 * time.Millisecond) // the renderer's own pace is another 50
		r.shows("z7f3 answered: waive by grace via cli at 03:05:00", "the production database")
		r.hides("the edge proxy")
		// The person types on and answers nothing, however late.
		r.wait(5 * time.Second)
		r.typed("kes two c")
		r.shows("that hold is gone, esc", "it takes two c")
		r.key("enter")
		r.shows("esc leaves this text", "the production database")
		r.key("esc")
		r.hides("it takes")
		r.key("c")
		r.shows("not taken") // the next one came to the front only now
		if len(r.d.answers) > 0 {
			t.Error("answered")
		}
	})
}

func TestRefusedAnswers(t *testing.T) {
	onRig(t, 100, 24, Options{}, func(r *rig) {
		r.calm()
		r.d.refuse = &ipc.Problem{Status: 403, Title: "Refused", Detail: "an agent is among the callers", Hint: "answer from your own terminal"}
		r.key("A")
		r.calm()
		r.key("c")
		r.wait(100 * time.Millisecond)
		r.shows("z7f3 was not answered: an agent is among the callers · answer from your own terminal", "the edge proxy accepts")
		if h := r.m.holds.find(holdFirst); h == nil || h.left() != 2 || h.sending {
			t.Error("the hold is not open as before")
		}
	})
	onRig(t, 80, 24, Options{}, func(r *rig) {
		r.calm()
		r.d.stop(&ipc.Unreachable{Path: "/run/x", Err: errors.New("gone")})
		r.wait(100 * time.Millisecond)
		r.key("c")
		r.shows("confirm: gettierd is away")
		if len(r.m.holds.find(holdFirst).draft) > 0 {
			t.Error("kept")
		}
	})
}

func TestExpiredNeverStays(t *testing.T) {
	onRig(t, 80, 24, Options{}, func(r *rig) {
		r.shows("client waits, 1:12 left")
		r.wait(73 * time.Second)
		r.shows("asked in chat")
		r.wait(59*time.Minute - 15*time.Second)
		r.shows("?2 holds")
		r.wait(3 * time.Second)
		r.shows("?1 hold ")
		r.hides("z81a")
		r.d.Append(turnOpen, lemma.HoldExpiredBody{Contract: lemma.Contract, Hold: holdFirst})
		r.wait(50 * time.Millisecond)
		r.shows("no holds", "Nothing waits")
	})
}

func TestNewHolds(t *testing.T) {
	onRig(t, 80, 24, Options{}, func(r *rig) {
		r.key("3")
		r.send(tea.BlurMsg{})
		for i := range 3 {
			r.d.opens(question(i))
		}
		r.wait(50 * time.Millisecond)
		r.shows("?5 holds", "[3 Turns]") // nothing comes to the front by itself
		if n := strings.Count(r.out.String(), "\a"); n != 2 {
			t.Errorf("%d bells in %q: one, and the end of one notification", n, r.out.String())
		}
		if !strings.Contains(r.out.String(), "\x1b]9;gettier: a question waits") {
			t.Errorf("no notification: %q", r.out.String())
		}
		r.out.Reset()
		r.send(tea.FocusMsg{})
		r.d.opens(question(9))
		r.wait(100 * time.Millisecond)
		if r.out.String() != "\a" {
			t.Errorf("a person who looks needs no notification: %q", r.out.String())
		}
		r.key("1")
		front := r.m.holds.front
		r.d.opens(question(10))
		r.wait(100 * time.Millisecond)
		if r.m.holds.front != front {
			t.Error("a new hold took the place of the one in front")
		}
	})
	// The very first one may come to the front of an empty queue: keys wait for calm.
	onRigOf(t, 80, 24, Options{}, func(d *fake) { d.HoldRows = nil }, func(r *rig) {
		r.shows("Nothing waits")
		r.d.opens(question(1))
		r.wait(40 * time.Millisecond)
		r.shows("claim 1")
		r.key("c")
		r.shows("not taken")
	})
}

// wanted is a hold of an action.
func wanted(n int, state string) lemma.Hold {
	h := question(n)
	h.Kind = "action"
	h.Items = h.Items[:1]
	h.Items[0].Claim, h.Items[0].Reason, h.Items[0].Tried = "sudo rm -rf data", "removes data and all below it", []string{}
	h.Items[0].Action = &lemma.HeldAction{
		Hash: "h", Tool: "Bash", Text: "sudo rm -rf data\x1b[31m", Runs: []lemma.HeldCommand{{Argv: []string{"rm", "-rf", "data"}, Wrappers: []string{"sudo"}}},
		Cwd: "/srv/shop", Effect: "destroy", State: state, Findings: []string{"destroy rm.recursive: removes data"}, DecisionID: "d1",
	}
	return h
}

func TestActionHolds(t *testing.T) {
	onRigOf(t, 80, 24, Options{}, func(d *fake) { d.HoldRows = []lemma.Hold{wanted(5, "REQUIRE_CONFIRM")} }, func(r *rig) {
		r.calm()
		r.shows("The agent wants", "sudo rm -rf data", "▸ rm -rf data  by sudo", "/srv/shop", "destroy: removes data", "exactly this, for this task", "a approve   d deny   s scope: task")
		r.hides("c confirm", "r correct", "A all", "inconclusive")
		r.key("c", "w", "A")
		r.calm()
		if len(r.d.answers) > 0 {
			t.Error("an action was answered like a claim")
		}
		r.key("s")
		r.shows("scope: once", "exactly this, once")
		r.key("s")
		r.shows("scope: task")
		r.key("s", "enter")
		r.shows("finding", "rm.recursive", "decision")
		r.key("esc")
		r.calm()
		r.key("a")
		r.wait(100 * time.Millisecond)
		if len(r.d.answers) != 1 || r.d.answers[0].Items[0].Answer != lemma.AnswerApprove || r.d.answers[0].Items[0].Scope != lemma.ScopeOnce {
			t.Errorf("got %v", r.d.answers)
		}
	})
	// What cannot be read to its end is approved with a note, and denied without.
	onRigOf(t, 80, 24, Options{}, func(d *fake) { d.HoldRows = []lemma.Hold{wanted(5, "ESCALATE"), wanted(6, "ESCALATE")} }, func(r *rig) {
		r.calm()
		r.key("a")
		r.shows("why it may run")
		r.key("enter")
		r.shows("is approved with a note")
		r.key("m", "i", "n", "e", "enter")
		r.wait(100 * time.Millisecond)
		if len(r.d.answers) != 1 || r.d.answers[0].Items[0].Answer != lemma.AnswerApprove || r.d.answers[0].Items[0].Text != "mine" {
			t.Errorf("got %v", r.d.answers)
		}
		r.calm()
		r.key("d")
		r.wait(100 * time.Millisecond)
		if len(r.d.answers) != 2 || r.d.answers[1].Items[0].Answer != lemma.AnswerDeny {
			t.Errorf("got %v", r.d.answers)
		}
	})
}

// What does not fit into the window cannot be answered before it was read.
func TestMustFit(t *testing.T) {
	onRigOf(t, 40, 12, Options{}, func(d *fake) {
		h := question(5)
		h.Items[0].Claim = strings.Repeat("the edge accepts a great many things ", 20)
		d.HoldRows = []lemma.Hold{h}
	}, func(r *rig) {
		r.calm()
		r.key("c")
		r.shows("confirm: not all of it fits here")
		r.key("enter", "G", "esc")
		r.calm()
		r.key("c")
		r.settle()
		if len(r.d.answers) != 1 {
			t.Error("it was read and is still refused")
		}
	})
}

func TestDetails(t *testing.T) {
	onRig(t, 80, 40, Options{}, func(r *rig) {
		r.key("enter")
		// The blob is found through the invocation's entry.
		r.shows("hold z7f3", "claim 2 of 2", "uploads go through one proxy", "evidence  client_max_body_size is set per location")
		r.key("esc", "t")
		r.shows("turn 7abc", "new, class change")
		r.key("esc")
		r.shows("The model assumes")
	})
}

func TestFocus(t *testing.T) {
	onRig(t, 80, 24, Options{Focus: Focus{Hold: holdLater}}, func(r *rig) {
		r.shows("the production database")
	})
	onRig(t, 80, 24, Options{Focus: Focus{Turn: turnCaught}}, func(r *rig) {
		r.shows("turn k3vq", "claude-code → anthropic m")
		r.key("esc")
		r.shows("[3 Turns]")
	})
	onRigOf(t, 80, 24, Options{Focus: Focus{Hold: Next, Turn: Next}}, func(d *fake) { d.HoldRows = nil }, func(r *rig) {
		r.shows("[3 Turns]", "migrate the table")
		r.d.TurnRows = append([]ipc.Turn{{ID: "t_01kzzzzzzzzzzzzzzzzzzz9new", Agent: "demo", Prompt: "do it", OpenedAt: at(0)}}, r.d.TurnRows...)
		r.d.Append("t_01kzzzzzzzzzzzzzzzzzzz9new", lemma.TurnOpened{Contract: lemma.Contract, RequestKind: "new", Class: lemma.Change})
		r.wait(100 * time.Millisecond)
		r.shows("turn 9new", "do it")
		r.d.opens(question(3))
		r.wait(100 * time.Millisecond)
		r.shows("[1 Holds]", "claim 3")
		r.calm()
		r.key("c")
		r.wait(200 * time.Millisecond)
		r.shows("[3 Turns]", "turn 7abc", "✓ z003 answered") // what came of it
		r.d.opens(question(4))
		r.wait(100 * time.Millisecond)
		r.shows("[3 Turns]") // only once
	})
}

// Somebody else's try to answer is said while it happens.
func TestRefusedElsewhere(t *testing.T) {
	onRig(t, 120, 24, Options{}, func(r *rig) {
		r.key("3")
		r.d.Append("", lemma.AnswerRefused{Contract: lemma.Contract, Call: "POST /v1/holds/x/answer", PID: 77, Exe: "/usr/bin/curl" + evil, Why: "an agent is among its parents"})
		r.wait(50 * time.Millisecond)
		r.shows("⊘ refused: POST /v1/holds/x/answer of pid 77 /usr/bin/curl", "an agent is among its parents")
		check(t, r.m, "a refusal")
	})
}

// A hold that came and went while the daemon was away is no news.
func TestNoNewsOfTheAway(t *testing.T) {
	onRig(t, 80, 24, Options{}, func(r *rig) {
		r.d.stop(errors.New("gone"))
		r.wait(100 * time.Millisecond)
		h := question(1)
		r.d.Append(h.Turn, lemma.HoldOpened{Contract: lemma.Contract, Hold: h})
		h.Items[0].Answer = &lemma.Answer{Answer: lemma.AnswerConfirm, By: person}
		r.d.answered(h)
		r.d.start()
		r.wait(2 * time.Second)
		r.shows("● ", "?2 holds")
		if r.out.String() != "" {
			t.Errorf("rang for what is over: %q", r.out.String())
		}
	})
}
