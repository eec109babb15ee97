// Command bench measures the ledger beside other logs in one interleaved run, and the
// rate of a whole verification beside plain SHA-256. Ratios are what counts:
// machines differ and are noisy.
//
// What bounds the appends: with one producer bbolt's two syncs a commit, half of the
// raw log's rate. With many, the processors: the table of processor time says how
// much of a record's is waking its producer (the raw log does nothing else), and
// the rest is JSON, its canonical form, SHA-256 of the entry and of its share of the
// tree, and bbolt's pages. On two cores the goal at 512 producers would leave twice
// the time of the bare SHA-256 for all of that.
//
// A module of its own, so that nothing of the
// others reaches the daemon.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

func main() {
	var (
		dir     = flag.String("dir", "", "directory on the disk to measure (default: a temporary one)")
		slice   = flag.Duration("slice", 300*time.Millisecond, "how long each log runs at a time")
		rounds  = flag.Int("rounds", 5, "slices of each log for each number of producers")
		entries = flag.Int("entries", 1_000_000, "entries to verify and to open; 0 leaves both out")
		appends = flag.Bool("appends", true, "measure appends")
		profile = flag.String("profile", "", "write a CPU profile of the verification to this file")
	)
	flag.Parse()
	klog.LogToStderr(false) // tessera reports each file that it makes
	klog.SetOutput(io.Discard)
	if err := run(*dir, *slice, *rounds, *entries, *appends, *profile); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(dir string, slice time.Duration, rounds, entries int, appends bool, profile string) error {
	root, err := os.MkdirTemp(dir, "ledger-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		fmt.Printf("load before: %s", load)
	}
	if appends {
		if err := compare(root, slice, rounds); err != nil {
			return err
		}
	}
	if entries > 0 {
		return whole(root, entries, profile)
	}
	return nil
}

// goal of our ratio to the raw log, by number of producers.
var goal = map[int]float64{1: 0.40, 8: 0.40, 64: 0.55, 512: 0.55}

// compare runs every log in turn, round by round, so that a slow moment of the
// disk hits all of them.
func compare(root string, slice time.Duration, rounds int) error {
	producers := []int{1, 8, 64, 512}
	var names []string
	rate, cost := map[string][]float64{}, map[string][]float64{}
	for _, p := range producers {
		dir, err := os.MkdirTemp(root, "appends-")
		if err != nil {
			return err
		}
		stores, err := openAll(dir)
		if err != nil {
			return err
		}
		sums, costs := make([]float64, len(stores)), make([]float64, len(stores))
		for r := range rounds {
			for i := range stores {
				at := (i + r) % len(stores)
				got, cpu, err := produce(stores[at], p, slice)
				if err != nil {
					return fmt.Errorf("%s: %w", stores[at].name, err)
				}
				sums[at] += got / float64(rounds)
				costs[at] += cpu / float64(rounds)
			}
		}
		names = names[:0]
		for i, s := range stores {
			names = append(names, s.name)
			rate[s.name] = append(rate[s.name], sums[i])
			cost[s.name] = append(cost[s.name], costs[i])
			if err := s.close(); err != nil {
				return fmt.Errorf("close %s: %w", s.name, err)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	fmt.Printf("\nDurable appends of %d bytes, ratio to the raw log (its appends/s in the first row)\n", recordSize)
	fmt.Printf("%-32s", "producers")
	for _, p := range producers {
		fmt.Printf("%18d", p)
	}
	fmt.Println()
	for n, name := range names {
		fmt.Printf("%-32s", name)
		for i, p := range producers {
			raw := rate[names[0]][i]
			switch ratio := rate[name][i] / raw; {
			case n == 0:
				fmt.Printf("%18.0f", raw)
			case strings.HasPrefix(name, "ledger"):
				fmt.Printf("%18s", fmt.Sprintf("%.2f (goal %.2f%s)", ratio, goal[p], mark(ratio >= goal[p])))
			default:
				fmt.Printf("%18.2f", ratio)
			}
		}
		fmt.Println()
	}
	// With many producers the processors are what ends first, not the disk: then no
	// ratio can be better than that of these.
	fmt.Printf("\nProcessor time of a record in µs, its producer's and waking it included\n")
	for _, name := range names {
		fmt.Printf("%-32s", name)
		for i := range producers {
			fmt.Printf("%18.1f", cost[name][i])
		}
		fmt.Println()
	}
	return nil
}

// mark is a sign behind a goal that was missed.
func mark(met bool) string {
	if met {
		return ""
	}
	return "!"
}

func openAll(dir string) ([]store, error) {
	var out []store
	for _, open := range []func() (store, error){
		func() (store, error) { return openRaw(dir) },
		func() (store, error) { return openOurs(dir+"/plain", false) },
		func() (store, error) { return openOurs(dir+"/fold", true) },
		func() (store, error) { return openSQLite(dir) },
		func() (store, error) { return openBolt(dir, false) },
		func() (store, error) { return openBolt(dir, true) },
		func() (store, error) { return openTessera(dir) },
	} {
		s, err := open()
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// produce adds records from p producers for about d. It returns records per second
// and the processor time of one in µs.
func produce(s store, p int, d time.Duration) (rate, cpu float64, err error) {
	var (
		wg    sync.WaitGroup
		next  atomic.Uint64
		first atomic.Pointer[error]
	)
	start, used := time.Now(), processorTime()
	for range p {
		wg.Go(func() {
			for time.Since(start) < d {
				if err := s.add(next.Add(1)); err != nil {
					first.CompareAndSwap(nil, &err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := first.Load(); err != nil {
		return 0, 0, *err
	}
	n := float64(next.Load())
	return n / time.Since(start).Seconds(), float64((processorTime() - used).Microseconds()) / n, nil
}
