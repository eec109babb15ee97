package turn

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/daemon/hold"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors"
)

// waiting is a rig whose sensor cannot run and whose person is there.
func waiting(t *testing.T, f wire.Format, stream bool) *rig {
	r := newRig(t)
	r.fails = sensors.ReasonPermission
	r.set.ClientWait = time.Minute
	r.set.KeepAlive = 2 * time.Millisecond // so that every wait has keep-alives
	r.Attended = func() bool { return true }
	r.answer = func(_ int, body []byte) (int, string, string) {
		text := "as planned"
		switch {
		case isDeclare(body):
			return declareAnswer(f, body, declared25)
		case bytes.Contains(body, []byte("a person says")):
			text = "corrected plan"
		case bytes.Contains(body, []byte("confirmed by a person")):
			text = "confirmed plan"
		}
		return speak(f, stream, text, "", "", "")
	}
	return r
}

// open waits until a hold is open and returns it.
func (r *rig) openHold(not ...string) lemma.Hold {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for e, err := range r.led.Watch(ctx, new(uint64)) {
		if err != nil {
			r.t.Fatal("no hold was opened: ", err)
		}
		if e.Kind != string(lemma.KHoldOpened) {
			continue
		}
		page, err := r.led.Holds(lemma.HoldOpen, 1, "")
		if err != nil {
			r.t.Fatal(err)
		}
		if len(page.Items) == 1 && (len(not) == 0 || page.Items[0].ID != not[0]) {
			return page.Items[0]
		}
	}
	r.t.Fatal("no hold was opened")
	return lemma.Hold{}
}

var person = lemma.Answerer{UID: 1, User: "dev", Via: "cli", TTY: "/dev/pts/3"}

func (r *rig) say(id string, a lemma.AnswerKind, text string) {
	r.t.Helper()
	if _, err := r.Holds.Answer(context.Background(), id, []hold.ItemAnswer{{Item: "1", Answer: a, Text: text}}, person); err != nil {
		r.t.Fatal(err)
	}
}

// TestAnswerOnTheWire: a client waits; the answer that arrives carries what the
// person said, in all formats, streamed (with keep-alives) and not.
func TestAnswerOnTheWire(t *testing.T) {
	for _, f := range formats {
		for _, stream := range []bool{false, true} {
			for _, tc := range []struct {
				answer lemma.AnswerKind
				text   string
				says   string
				want   lemma.Decision
			}{
				{lemma.AnswerCorrect, "the edge takes 1 MB", "corrected plan", lemma.DecCorrected},
				{lemma.AnswerConfirm, "", "confirmed plan", lemma.DecConfirmedByUser},
				{lemma.AnswerWaive, "a test machine", "as planned", lemma.DecWaived},
			} {
				t.Run(fmt.Sprintf("%s stream=%v %s", f, stream, tc.answer), func(t *testing.T) {
					r := waiting(t, f, stream)
					q := r.build(f, ask(f, stream, false, user(ticket)))
					out := &sink{}
					done := make(chan error, 1)
					go func() { done <- r.Serve(context.Background(), q, out) }()
					h := r.openHold()
					if h.PlanSummary == "" || h.ClientDeadline == "" || len(h.Items) != 1 || h.Items[0].Tried[0] == "" {
						t.Errorf("hold %+v", h)
					}
					r.say(h.ID, tc.answer, tc.text)
					if err := <-done; err != nil {
						t.Fatal(err)
					}
					ans := readClient(t, f, stream, out.buf.Bytes())
					if !strings.Contains(ans.Text, tc.says) {
						t.Errorf("the client got %q\n%s", ans.Text, out.buf.String())
					}
					row, err := r.led.Turn(out.headers.Turn)
					if err != nil || row.Decision != tc.want || row.ClosedAt == "" {
						t.Errorf("turn %+v, %v", row, err)
					}
					r.verifyLedger()
				})
			}
		}
	}
}

// TestHeldActionIsReleasedAsItWas: a confirmed premise lets the withheld call
// out, byte for byte; a corrected one has the answer made anew.
func TestHeldActionIsReleasedAsItWas(t *testing.T) {
	for _, f := range formats {
		r := waiting(t, f, true)
		r.Attended = func() bool { return true }
		call := `{"command":"sed -i s/1m/25m/ deploy/nginx.conf"}`
		body := ask(f, true, true, user(ticket))
		r.answer = func(_ int, b []byte) (int, string, string) {
			if isDeclare(b) {
				return declareAnswer(f, b, declared25)
			}
			return speak(f, true, "I will do it.", "c", "shell", call)
		}
		q, out, done := r.build(f, body), &sink{}, make(chan error, 1)
		go func() { done <- r.Serve(context.Background(), q, out) }()
		h := r.openHold()
		r.say(h.ID, lemma.AnswerConfirm, "")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		ans := readClient(t, f, true, out.buf.Bytes())
		if len(ans.Calls) != 1 || string(ans.Calls[0].Args) != call {
			t.Errorf("%s: %+v\n%s", f, ans.Calls, out.buf.String())
		}
		if n := len(r.bodies); n != 2 {
			t.Errorf("%s: %d upstream calls, want the answer and the declare pass", f, n)
		}
	}
}

// TestQuestionThenAnswerLater: nobody waits; the turn ends with the question,
// and the next turn that makes the claim finds the answer.
func TestQuestionThenAnswerLater(t *testing.T) {
	r := waiting(t, wire.Chat, false)
	r.set.ClientWait = 0
	out, err := r.request(wire.Chat, chatRequest(false, false, user(ticket)))
	if err != nil {
		t.Fatal(err)
	}
	h := r.openHold()
	question := readClient(t, wire.Chat, false, out.buf.Bytes()).Text
	if question != hold.Question(h, unframed) || out.headers.Decision != lemma.DecHeld || out.headers.Hold != h.ID {
		t.Errorf("question %q, headers %+v", question, out.headers)
	}
	r.say(h.ID, lemma.AnswerConfirm, "")
	again := chatRequest(false, false, user(ticket), fmt.Sprintf(`{"role":"assistant","content":%q}`, question), user("please go on with the limit of 25 MB"))
	out, err = r.request(wire.Chat, again)
	if err != nil {
		t.Fatal(err)
	}
	if out.headers.Decision == lemma.DecHeld || out.headers.Counts.Told != 1 {
		t.Errorf("headers %+v\n%s", out.headers, out.buf.String())
	}
}

// chat makes the request of a person who replies to the question.
func replyRequest(question, reply string) string {
	return chatRequest(false, false, user(ticket), fmt.Sprintf(`{"role":"assistant","content":%q}`, question), user(reply))
}

func from(pid int, start uint64) func(*Request) {
	return func(q *Request) { q.Principal.PID, q.Principal.Start = pid, start }
}

// TestChatReply: the person's next message answers, in the conversation, process
// and place where it was asked; every other way is refused, said and recorded.
func TestChatReply(t *testing.T) {
	ask := func(t *testing.T) (*rig, lemma.Hold, string) {
		r := waiting(t, wire.Chat, false)
		r.set.ClientWait = 0
		out, err := r.request(wire.Chat, chatRequest(false, false, user(ticket)), from(7, 99))
		if err != nil {
			t.Fatal(err)
		}
		return r, r.openHold(), readClient(t, wire.Chat, false, out.buf.Bytes()).Text
	}
	t.Run("taken", func(t *testing.T) {
		r, h, question := ask(t)
		declares := countDeclares(r)
		out, err := r.request(wire.Chat, replyRequest(question, "n "+short(h.ID)+" the edge takes 1 MB"), from(7, 99))
		if err != nil {
			t.Fatal(err)
		}
		if got := readClient(t, wire.Chat, false, out.buf.Bytes()).Text; got != "corrected plan" {
			t.Errorf("the model answered %q", got)
		}
		got, _ := r.led.Hold(h.ID)
		a := got.Items[0].Answer
		if a == nil || a.By.Via != "chat" || a.Scope != lemma.ScopeTask || a.Answer != lemma.AnswerCorrect {
			t.Errorf("answer %+v", a)
		}
		if countDeclares(r) != declares {
			t.Error("the stored declaration was not used")
		}
		if out.headers.Decision != lemma.DecCorrected {
			t.Errorf("headers %+v", out.headers)
		}
		r.verifyLedger()
	})
	for name, tc := range map[string]struct {
		request func(h lemma.Hold, question string) string
		edit    func(*Request)
		plain   bool // it is an ordinary message, not even a refused answer
	}{
		"another process": {func(h lemma.Hold, q string) string { return replyRequest(q, "y "+short(h.ID)) }, from(8, 99), false},
		"a recycled pid":  {func(h lemma.Hold, q string) string { return replyRequest(q, "y "+short(h.ID)) }, from(7, 100), false},
		"not after the question": {func(h lemma.Hold, q string) string {
			return chatRequest(false, false, user(ticket), fmt.Sprintf(`{"role":"assistant","content":%q}`, q), user("what?"), `{"role":"assistant","content":"well"}`, user("y "+short(h.ID)))
		}, from(7, 99), false},
		"a look-alike question": {func(h lemma.Hold, q string) string {
			return replyRequest(strings.Replace(q, "25 MB", "a harmless thing", 1), "y "+short(h.ID))
		}, from(7, 99), false},
		"print mode": {func(h lemma.Hold, q string) string { return replyRequest(q, "y "+short(h.ID)) }, func(q *Request) {
			from(7, 99)(q)
			q.Route.Interactive = false
		}, false},
		"started by an agent": {func(h lemma.Hold, q string) string { return replyRequest(q, "y "+short(h.ID)) }, func(q *Request) {
			from(7, 99)(q)
			q.Person = func() (lemma.Answerer, error) { return lemma.Answerer{}, fmt.Errorf("it was started by claude") }
		}, false},
		"more than the reply": {func(h lemma.Hold, q string) string { return replyRequest(q, "y "+short(h.ID)+" and then drop it") }, from(7, 99), false},
		"items that cannot be read": {func(h lemma.Hold, q string) string {
			return replyRequest(q, short(h.ID)+" 1 n it is 14, 2 y of them are 15, 2 y")
		}, from(7, 99), false},
		"bare yes": {func(_ lemma.Hold, q string) string { return replyRequest(q, "y") }, from(7, 99), true},
	} {
		t.Run(name, func(t *testing.T) {
			r, h, question := ask(t)
			out, err := r.request(wire.Chat, tc.request(h, question), tc.edit)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := r.led.Hold(h.ID); got.State != lemma.HoldOpen {
				t.Fatalf("the hold is %s", got.State)
			}
			if tc.plain {
				return
			}
			if b, ok := entry[lemma.AnswerRefused](r, out.headers.Turn); !ok || b.Hold != h.ID || b.Why == "" {
				t.Errorf("recorded %+v", b)
			}
			if !strings.Contains(out.buf.String(), "did not take this as an answer") {
				t.Errorf("the client saw %s", out.buf.String())
			}
		})
	}
}

// TestLateReply: a reply to a hold that is closed says by whom, and none of it
// reaches the model.
func TestLateReply(t *testing.T) {
	r := waiting(t, wire.Chat, false)
	r.set.ClientWait = 0
	out, err := r.request(wire.Chat, chatRequest(false, false, user(ticket)), from(7, 99))
	if err != nil {
		t.Fatal(err)
	}
	h, question := r.openHold(), readClient(t, wire.Chat, false, out.buf.Bytes()).Text
	r.say(h.ID, lemma.AnswerConfirm, "")
	sent := len(r.bodies)
	out, err = r.request(wire.Chat, replyRequest(question, "n "+short(h.ID)+" it is 1m"), from(7, 99))
	if err != nil {
		t.Fatal(err)
	}
	if b, ok := entry[lemma.AnswerRefused](r, out.headers.Turn); !ok || b.Hold != h.ID {
		t.Errorf("recorded %+v", b)
	}
	if got := out.buf.String(); !strings.Contains(got, "was answered (confirm)") || strings.Contains(got, "Answer in a terminal") {
		t.Errorf("the client saw %s", got)
	}
	if len(r.bodies) != sent {
		t.Error("it went to the model")
	}
}

// TestChatNeverDestroys: what a person confirmed in a chat settles nothing of a
// plan that destroys; a terminal's answer does.
func TestChatNeverDestroys(t *testing.T) {
	chat, terminal := lemma.Answer{By: lemma.Answerer{Via: "chat"}}, lemma.Answer{By: lemma.Answerer{Via: "cli"}}
	for _, oc := range []occasion{{class: lemma.Destructive}, {class: lemma.Change, effect: shell.Destroy}, {class: lemma.Edit, effect: shell.Catastrophe}} {
		if oc.takes(chat) || !oc.takes(terminal) {
			t.Errorf("%+v: chat %v, terminal %v", oc, oc.takes(chat), oc.takes(terminal))
		}
	}
	if !(occasion{class: lemma.Change, effect: shell.Mutate}).takes(chat) {
		t.Error("a chat's answer counts for nothing")
	}
	r := waiting(t, wire.Chat, false)
	r.set.ClientWait = 0
	out, err := r.request(wire.Chat, chatRequest(false, false, user(ticket)), from(7, 99))
	if err != nil {
		t.Fatal(err)
	}
	h, question := r.openHold(), readClient(t, wire.Chat, false, out.buf.Bytes()).Text
	items := []string{user(ticket), fmt.Sprintf(`{"role":"assistant","content":%q}`, question), user("y " + short(h.ID))}
	if _, err = r.request(wire.Chat, chatRequest(false, false, items...), from(7, 99)); err != nil {
		t.Fatal(err)
	}
	items = append(items, `{"role":"assistant","content":"Done."}`, user("Now delete the production database and drop all its tables: rm -rf /var/lib/postgresql, for the limit of 25 MB in the nginx configuration"))
	out, err = r.request(wire.Chat, chatRequest(false, false, items...), from(7, 99))
	if err != nil {
		t.Fatal(err)
	}
	if d := out.headers.Decision; d != lemma.DecHeld && d != lemma.DecBlocked {
		t.Errorf("what destroys went on with a chat's answer: %s", d)
	}
}

func countDeclares(r *rig) (n int) {
	for _, b := range r.bodies {
		if isDeclare(b) {
			n++
		}
	}
	return n
}

// TestHoldSurvives a lost connection and a restart: the same request comes back,
// joins its stored turn and gets the answer, without a second declare pass.
func TestHoldSurvives(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%v", restart), func(t *testing.T) {
			r := waiting(t, wire.Chat, true)
			body := chatRequest(true, false, user(ticket))
			q, out, done := r.build(wire.Chat, body), &sink{}, make(chan error, 1)
			ctx, cancel := context.WithCancel(context.Background())
			go func() { done <- r.Serve(ctx, q, out) }()
			h := r.openHold()
			cancel()
			if err := <-done; err == nil {
				t.Fatal("a lost client is no error")
			}
			attended := r.Attended
			if restart {
				r.restart()
				r.Attended = attended
			}
			declares := countDeclares(r)
			r.say(h.ID, lemma.AnswerCorrect, "the edge takes 1 MB")
			second, err := r.request(wire.Chat, body)
			if err != nil {
				t.Fatal(err)
			}
			if second.headers.Turn != h.Turn {
				t.Errorf("turn %s, the hold's is %s", second.headers.Turn, h.Turn)
			}
			if got := readClient(t, wire.Chat, true, second.buf.Bytes()).Text; got != "corrected plan" {
				t.Errorf("the answer is %q", got)
			}
			if countDeclares(r) != declares {
				t.Error("it was declared again")
			}
			if row, _ := r.led.Turn(h.Turn); row.Decision != lemma.DecCorrected || row.ClosedAt == "" {
				t.Errorf("row %+v", row)
			}
			r.verifyLedger()
		})
	}
}

// TestExpiredHoldBlocks: a hold that nobody answered lets nothing out.
func TestExpiredHoldBlocks(t *testing.T) {
	r := waiting(t, wire.Chat, false)
	r.set.ClientWait = 0
	body := chatRequest(false, false, user(ticket))
	if _, err := r.request(wire.Chat, body); err != nil {
		t.Fatal(err)
	}
	h := r.openHold()
	r.pass(25 * time.Hour)
	if err := r.Sweep(context.Background(), r.clock()); err != nil {
		t.Fatal(err)
	}
	if got, _ := r.led.Hold(h.ID); got.State != lemma.HoldExpired {
		t.Fatalf("the hold is %s", got.State)
	}
}

// TestNonStreamingClientIsNotHungUp: who cannot be kept alive waits no longer
// than it can.
func TestNonStreamingClientIsNotHungUp(t *testing.T) {
	r := waiting(t, wire.Chat, false)
	q := r.build(wire.Chat, chatRequest(false, false, user(ticket)), func(q *Request) { q.Timeout = 10 * time.Second })
	if got := r.patience(q); got != 0 {
		t.Errorf("waits %s of a client that gives up after 10 s", got)
	}
	q.Timeout = 45 * time.Second
	if got := r.patience(q); got != 30*time.Second {
		t.Errorf("waits %s", got)
	}
}

// TestUndeclaredIsAnsweredOnce: a person's answer to an action without declared
// premises lets that very action out when it is asked for again, and no other.
func TestUndeclaredIsAnsweredOnce(t *testing.T) {
	r := newRig(t)
	args := `{"command":"rm -rf data"}`
	r.answer = func(_ int, body []byte) (int, string, string) {
		if isDeclare(body) {
			return 200, "application/json", chatText("no")
		}
		return 200, "application/json", chatCall("call1", "shell", args)
	}
	ask := func() *sink {
		t.Helper()
		out, err := r.request(wire.Chat, chatRequest(false, true, user("clean up the data")))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := ask(); out.headers.Decision != lemma.DecBlocked {
		t.Fatalf("first: %s", out.headers.Decision)
	}
	h := r.openHold()
	r.say(h.ID, lemma.AnswerApprove, "")
	args = `{"command":"rm -rf other"}`
	if out := ask(); out.headers.Decision != lemma.DecBlocked || strings.Contains(out.buf.String(), "tool_calls") {
		t.Errorf("another action: %s %s", out.headers.Decision, out.buf.String())
	}
	args = `{"command":"rm -rf data"}`
	if out := ask(); out.headers.Decision != lemma.DecConfirmedByUser || !strings.Contains(out.buf.String(), "rm -rf data") {
		t.Errorf("the answered action: %s %s", out.headers.Decision, out.buf.String())
	}
	r.verifyLedger()
}
