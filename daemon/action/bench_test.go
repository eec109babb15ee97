package action

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkCorpus measures one decision after the other on labelled commands: the
// median and the 99th percentile in nanoseconds beside the allocations.
func BenchmarkCorpus(b *testing.B) {
	for _, name := range []string{"guards.dev", "tldr.dev", "nl2bash.dev"} {
		b.Run(name, func(b *testing.B) {
			measure(b, corpus(b, name))
		})
	}
}

// BenchmarkOwn is the same on own commands, which need no folder.
func BenchmarkOwn(b *testing.B) {
	measure(b, []string{"ls -la src", "git status --short", `cd app && grep -rn "total" src test | head -20 && npm test 2>&1 | tail -5`, "rm -rf data", `sudo env A=1 timeout 5 bash -c 'for f in *.log; do rm -rf "$f"; done'`, "kubectl get pods -A | grep -v Running", "psql -c 'SELECT count(*) FROM orders'"})
}

func measure(b *testing.B, cmds []string) {
	b.ReportAllocs()
	took := make([]time.Duration, 0, 1<<16)
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		Decide(Action{Command: cmds[i%len(cmds)]}, nil, Situation{})
		if len(took) < cap(took) {
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

// BenchmarkLarge is a command text of 64 KiB.
func BenchmarkLarge(b *testing.B) {
	for name, unit := range map[string]string{"statements": "grep -n x a.txt\n", "pipes": "cat a | ", "words": "aaaa ", "quotes": "echo 'a b' \"c $d\"; ", "substitutions": "echo $(date); "} {
		text := strings.Repeat(unit, (64<<10)/len(unit))
		if name == "pipes" {
			text = text[:len(text)-len(unit)] + "cat b"
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Decide(Action{Command: text}, nil, Situation{})
			}
		})
	}
}

// TestAllocations holds what a plain decision allocates: time differs from machine
// to machine, this does not.
func TestAllocations(t *testing.T) {
	for cmd, most := range map[string]float64{"ls -la src": 12, "git status --short": 13, "rm -rf data": 18, "kubectl get pods -A | grep -v Running": 20} {
		got := testing.AllocsPerRun(100, func() { Decide(Action{Command: cmd}, nil, Situation{}) })
		if got > most {
			t.Errorf("%q: %v allocations, at most %v", cmd, got, most)
		}
	}
}
