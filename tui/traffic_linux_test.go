package tui

import (
	"fmt"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
)

// BenchmarkTraffic is what the program costs while the chain grows: the share of
// a core and the bytes that the terminal gets, on the screen that shows every
// entry. Run it alone, with -benchtime 1x.
func BenchmarkTraffic(b *testing.B) {
	for _, rate := range []int{0, 100, 1000, 20_000} {
		b.Run(fmt.Sprint(rate, "/s"), func(b *testing.B) {
			for b.Loop() {
				f, socket := served(b)
				f.HoldRows = nil
				term := onPTY(b, socket, "\x1b[?62c")
				term.until("Nothing waits")
				if _, err := term.f.WriteString("8"); err != nil {
					b.Fatal(err)
				}
				term.until("following")
				used, before, began := term.cpu(), len(term.text()), time.Now()
				const seconds, beats = 5, 200
				tick := time.NewTicker(time.Second / beats)
				sent := 0
				for time.Since(began) < seconds*time.Second {
					<-tick.C
					for due := int(time.Since(began).Seconds() * float64(rate)); sent < due; sent++ {
						f.Append(turnOpen, lemma.ActionDecided{Contract: lemma.Contract, Tool: "Bash", Summary: fmt.Sprintf("go test ./pkg%d", sent), State: "ALLOW", Effect: "mutate"})
					}
				}
				tick.Stop()
				took := time.Since(began).Seconds()
				b.ReportMetric((term.cpu()-used).Seconds()/took*100, "%core")
				b.ReportMetric(float64(len(term.text())-before)/took, "B/s")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}
