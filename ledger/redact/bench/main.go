// Command bench measures package redact beside gitleaks as a library: what each catches
// of labelled texts, what each takes out of harmless ones, and how fast. Run in
// ledger/redact/bench, or as `just cases DIR`:
//
//	go run . DIR
//
// DIR holds *.jsonl.gz files with {"text", "expect_secret", "secrets"} a line.
// A text counts as caught when none of its secrets is left; where it names none,
// when anything was found.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rs/zerolog"
	"github.com/zricethezav/gitleaks/v8/detect"

	"gettier.dev/gettierd/ledger/redact"
)

// engine gives a text back without what it found.
type engine struct {
	name string
	hide func(text string) (out string, hits int)
}

type labelled struct {
	Text    string
	Expect  *bool `json:"expect_secret"`
	Secrets []string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name the directory of labelled texts")
	}
	zerolog.SetGlobalLevel(zerolog.Disabled)
	theirs, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		return fmt.Errorf("start gitleaks: %w", err)
	}
	ours := redact.New()
	engines := []engine{
		{"gettierd", func(text string) (string, int) {
			out, hits := ours.String(text)
			n := 0
			for _, h := range hits {
				n += h.Count
			}
			return out, n
		}},
		{"gitleaks", func(text string) (string, int) {
			found := theirs.DetectString(text)
			for _, f := range found {
				text = strings.ReplaceAll(text, f.Secret, "")
			}
			return text, len(found)
		}},
	}
	files, err := filepath.Glob(filepath.Join(args[0], "*.jsonl.gz"))
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "texts\tengine\tcaught\t\tharmless changed\t")
	for _, file := range files {
		cases, err := read(file)
		if err != nil {
			return err
		}
		if len(cases) == 0 {
			continue
		}
		for _, e := range engines {
			caught, secrets, wrong, harmless := score(e, cases)
			fmt.Fprintf(w, "%s\t%s\t%d of %d\t%.1f %%\t%d of %d\t\n", filepath.Base(file), e.name, caught, secrets, share(caught, secrets), wrong, harmless)
		}
	}
	fmt.Fprintln(w, "\t\t\t\t\t")
	fmt.Fprintln(w, "mixed text\tengine\tMB/s\tp50 of 64 KiB\tp99 of 64 KiB\t")
	for _, e := range engines {
		size := 32 << 20
		if e.name == "gitleaks" {
			size = 4 << 20
		}
		rate, p50, p99 := speed(e, size)
		fmt.Fprintf(w, "\t%s\t%.1f\t%v\t%v\t\n", e.name, rate, p50, p99)
	}
	return w.Flush()
}

func share(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

// read takes the lines of a file that carry a label.
func read(file string) ([]labelled, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	var out []labelled
	s := bufio.NewScanner(z)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var c labelled
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if c.Expect != nil {
			out = append(out, c)
		}
	}
	return out, s.Err()
}

func score(e engine, cases []labelled) (caught, secrets, wrong, harmless int) {
	for _, c := range cases {
		out, hits := e.hide(c.Text)
		if !*c.Expect {
			harmless++
			if hits > 0 {
				wrong++
			}
			continue
		}
		secrets++
		if hits > 0 && !slices.ContainsFunc(c.Secrets, func(s string) bool { return strings.Contains(out, s) }) {
			caught++
		}
	}
	return
}

// speed reads size bytes in parts of 64 KiB, one after the other.
func speed(e engine, size int) (rate float64, p50, p99 time.Duration) {
	const part = 64 << 10
	text := mixed(size)
	e.hide(string(text[:part])) // tables are built on first use
	var took []time.Duration
	began := time.Now()
	for at := 0; at+part <= len(text); at += part {
		start := time.Now()
		e.hide(string(text[at : at+part]))
		took = append(took, time.Since(start))
	}
	rate = float64(len(text)) / 1e6 / time.Since(began).Seconds()
	slices.Sort(took)
	return rate, took[len(took)/2].Round(time.Microsecond), took[len(took)*99/100].Round(time.Microsecond)
}

// mixed is text as sensors and agents see it: logs, code, configuration, lock
// files and prose, with a password every few kilobytes.
func mixed(size int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(from string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = from[r.IntN(len(from))]
		}
		return string(b)
	}
	const hex, b64 = "0123456789abcdef", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	lines := []func() string{
		func() string {
			return fmt.Sprintf("2026-01-%02dT10:%02d:00Z INFO request finished path=/api/v1/items/%d status=200 request_id=%s", r.IntN(28)+1, r.IntN(60), r.IntN(9999), draw(hex, 32))
		},
		func() string { return "commit " + draw(hex, 40) },
		func() string { return `      "integrity": "sha512-` + draw(b64, 86) + `==",` },
		func() string { return "github.com/spf13/viper v1.21.0 h1:" + draw(b64, 43) + "=" },
		func() string { return "    if err := store.Put(ctx, key, value); err != nil {" },
		func() string {
			return "The proxy forwards each request to one of the workers, and the limiter counts them."
		},
		func() string {
			return fmt.Sprintf("    location /upload/%d { client_max_body_size %dm; }", r.IntN(99), r.IntN(64))
		},
		func() string { return "NODE_ENV=production PATH=/usr/local/bin:/usr/bin max_tokens=4096 key_count=3" },
	}
	var b bytes.Buffer
	for b.Len() < size {
		if r.IntN(120) == 0 {
			fmt.Fprintf(&b, "DB_%s=%s\n", "PASSWORD", draw(b64, 20))
			continue
		}
		b.WriteString(lines[r.IntN(len(lines))]() + "\n")
	}
	return b.Bytes()[:size]
}
