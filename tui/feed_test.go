package tui

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

// However much happens, the model gets a message per frame.
func TestOneMessagePerFrame(t *testing.T) {
	onRig(t, 80, 24, Options{}, func(r *rig) {
		r.key("8")
		n := 0
		for range 1000 { // one a millisecond
			r.d.Append("", lemma.RedactionApplied{Contract: lemma.Contract, Where: "output", Rule: "x", Count: 1})
			time.Sleep(time.Millisecond)
			synctest.Wait()
			for len(r.msgs) > 0 {
				msg := <-r.msgs
				if b, ok := msg.(*batch); ok {
					n++
					if len(b.entries) == 0 {
						t.Error("an empty batch")
					}
				}
				r.take(msg)
				synctest.Wait()
			}
		}
		r.wait(50 * time.Millisecond)
		if n > 45 || n < 15 {
			t.Errorf("%d messages for 1,000 entries in a second", n)
		}
		if got := r.m.audit.list.Len(); got != 1013 || r.m.head != 1013 {
			t.Errorf("%d rows, head %d", got, r.m.head)
		}
		r.shows("1,012", "following")
	})
}

func TestDaemonAway(t *testing.T) {
	onRigOf(t, 80, 24, Options{}, func(d *fake) { d.down = &ipc.Unreachable{Path: "/run/x", Err: errors.New("refused")} }, func(r *rig) {
		r.wait(time.Second)
		r.shows("○ cannot reach gettierd at /run/x", "looking for it", "gettier up")
		r.d.start()
		r.wait(time.Second)
		r.shows("● 127.0.0.1:11435", "?2 holds")

		// Away for a while: what was there stays, and what landed meanwhile arrives.
		r.key("8")
		before := r.m.head
		r.d.stop(&ipc.Unreachable{Path: "/run/x", Err: errors.New("refused")})
		r.wait(100 * time.Millisecond)
		r.shows("○ away since 03:05:02", "turn.opened")
		for range 5 {
			r.d.Append(turnOpen, lemma.RedactionApplied{Contract: lemma.Contract, Where: "output", Rule: "token", Count: 1})
		}
		r.wait(10 * time.Second)
		r.d.start()
		r.wait(1100 * time.Millisecond)
		r.shows("● 127.0.0.1:11435", "gettierd is back, nothing was missed", fmt.Sprint(before+4))
		if got := r.m.audit.list.Len(); uint64(got) != before+5 {
			t.Errorf("%d entries, want %d", got, before+5)
		}
	})
}

// Another log in the place of ours is said, and nothing of ours stays.
func TestAnotherLog(t *testing.T) {
	onRig(t, 80, 24, Options{}, func(r *rig) {
		r.key("3")
		r.shows("raise the upload…")
		r.d.stop(errors.New("gone"))
		r.wait(100 * time.Millisecond)
		other := newFake()
		other.St = r.d.St
		other.St.Chain.Origin = "gettier.dev/log/ffff"
		r.d.Backend = other.Backend
		r.d.start()
		r.wait(1100 * time.Millisecond)
		r.shows("another log", "no holds", "no turns yet")
	})
	// The same name, but entries that do not follow ours.
	onRig(t, 80, 24, Options{}, func(r *rig) {
		r.d.Append("", lemma.StateLost{Contract: lemma.Contract, Reason: "first"})
		r.wait(50 * time.Millisecond)
		r.d.stop(errors.New("gone"))
		r.wait(100 * time.Millisecond)
		other := newFake()
		other.St = r.d.St
		for i := range 30 {
			other.Append("", lemma.StateLost{Contract: lemma.Contract, Reason: fmt.Sprint(i)})
		}
		r.d.Backend = other.Backend
		r.d.start()
		r.wait(3 * time.Second)
		if !r.m.up || r.m.head != 31 || len(r.m.holds.list) != 0 {
			t.Errorf("up %v, head %d, %d holds", r.m.up, r.m.head, len(r.m.holds.list))
		}
	})
}

// Nothing happens: no message, no call, no alarm.
func TestIdle(t *testing.T) {
	for _, k := range []string{"1", "2", "3", "4", "8"} {
		onRigOf(t, 80, 24, Options{}, func(d *fake) { d.HoldRows, d.FactRows = nil, nil }, func(r *rig) {
			r.key(k)
			r.wait(2 * time.Second)
			calls := 0
			for _, n := range r.d.calls {
				calls += n
			}
			before := r.m.View()
			time.Sleep(time.Hour)
			synctest.Wait()
			if len(r.msgs) > 0 {
				t.Errorf("screen %s: %d messages in an idle hour: %T", k, len(r.msgs), <-r.msgs)
			}
			r.settle()
			for _, n := range r.d.calls {
				calls -= n
			}
			if calls != 0 || r.m.View() != before {
				t.Errorf("screen %s: %d calls in an idle hour", k, -calls)
			}
		})
	}
}

// With a hold open, one message a second moves the time that is left.
func TestClock(t *testing.T) {
	onRig(t, 80, 24, Options{}, func(r *rig) {
		r.calm()
		n := 0
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			synctest.Wait()
			for len(r.msgs) > 0 {
				n++
				r.take(<-r.msgs)
				synctest.Wait()
			}
		}
		if n > 11 || n < 9 {
			t.Errorf("%d messages in 10 s", n)
		}
		r.shows("1:01 left")
	})
}

// The status follows the chain, at most once a second, and then rests.
func TestStatusFollows(t *testing.T) {
	onRigOf(t, 80, 24, Options{}, func(d *fake) { d.HoldRows = nil }, func(r *rig) {
		r.wait(2 * time.Second)
		before := r.d.calls["status"]
		for range 30 {
			r.d.Append("", lemma.StateLost{Contract: lemma.Contract, Reason: "x"})
			r.wait(50 * time.Millisecond)
		}
		r.d.St.PolicyVersion = "77"
		r.wait(3 * time.Second)
		r.shows("policy 77", "chain 43")
		if n := r.d.calls["status"] - before; n < 2 || n > 3 {
			t.Errorf("asked %d times in 1.5 s of news", n)
		}
	})
}
