package sensors

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestThousandEdits: while eight turns look and measure, a file is edited a
// thousand times; no turn ever misses what was approved or sees what was not, and
// the last edit is loaded. Then single edits, each of which has to be loaded,
// checked and compared with what was approved within half a second.
func TestThousandEdits(t *testing.T) {
	h := newHouse(t)
	h.write(h.project(), "sensors:\n"+sensor("a", "true"))
	r := h.open()
	h.approve("a")
	h.drain()
	runner := NewRunner(RunnerOptions{Permit: r.Permit})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Watch(ctx); err != nil {
			t.Error(err)
		}
	})
	turns := make(chan struct{}, 8)
	for range 8 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				v := r.View(h.root)
				s, ok := v.Lookup("a")
				if !ok || s.Argv[0].Text != "true" || len(v.Sensors) != 1 {
					t.Errorf("a turn sees %v of %d sensors", ok, len(v.Sensors))
					return
				}
				if n%50 != 0 {
					continue
				}
				if rd := runner.Run(ctx, []Request{{Sensor: s, Root: h.root}})[0]; ctx.Err() == nil && rd.Reason != "" {
					t.Errorf("%s %s", rd.Reason, rd.Detail)
					return
				}
				select {
				case turns <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 8 {
		<-turns // they measure
	}
	const edits = 1000
	for i := range edits {
		text := "sensors:\n" + sensor("a", "true") + sensor(fmt.Sprint("b", i), "edit")
		if i%10 == 3 {
			text = "sensors:\n  - { id: a, command: 'ls | wc' }\n"
		}
		h.write(h.project(), text)
	}
	waitFor(t, "the last edit is loaded", func() bool {
		got := h.drain()
		return len(got) > 0 && strings.HasSuffix(got[len(got)-1], fmt.Sprintf("loaded .gettier n=2 pending=[b%d] changed=[]", edits-1))
	})
	var took []time.Duration
	for i := range 10 {
		name := fmt.Sprint("c", i)
		began := time.Now()
		h.write(h.project(), "sensors:\n"+sensor("a", "true")+sensor(name, "edit"))
		waitFor(t, name, func() bool { s, ok := waiting(r, h.root); return ok && s == name })
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("an edit takes %v to %v", took[0], took[9])
	if m := took[5]; m > 500*time.Millisecond { // the median: other programs run beside tests
		t.Errorf("an edit takes %v: %v", m, took)
	}
	cancel()
	wg.Wait()
}

// BenchmarkEdit is the time from an edit to its being loaded, checked and
// compared with what was approved.
func BenchmarkEdit(b *testing.B) {
	h := newHouse(b)
	h.write(h.project(), "sensors:\n"+sensor("a", "true"))
	r := h.open()
	h.approve("a")
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Watch(ctx); err != nil {
			b.Error(err)
		}
	})
	var worst time.Duration
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		h.write(h.project(), "sensors:\n"+sensor("a", "true")+sensor(fmt.Sprint("b", i), "edit"))
		for {
			if s, ok := waiting(r, h.root); ok && s == fmt.Sprint("b", i) {
				break
			}
			<-tick.C
		}
		worst = max(worst, time.Since(began))
	}
	b.ReportMetric(float64(worst.Milliseconds()), "ms-worst")
	cancel()
	wg.Wait()
}

// waiting is the sensor that waits for approval.
func waiting(r *Registry, root string) (string, bool) {
	w := r.View(root).Waiting
	if len(w) != 1 {
		return "", false
	}
	return w[0].ID, true
}
