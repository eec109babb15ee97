package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// benchEnv makes the test binary one of the servers of a benchmark: a provider
// that answers after the delay of the X-Delay header, or the standard library's
// reverse proxy before the URL in benchTarget. It prints its address.
const (
	benchEnv    = "GETTIER_E2E_BENCH"
	benchTarget = "GETTIER_E2E_BENCH_TARGET"
)

func benchRole(role string) int {
	var h http.Handler
	switch role {
	case "upstream":
		h = http.HandlerFunc(benchUpstream)
	case "reverseproxy":
		target, err := url.Parse(os.Getenv(benchTarget))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		rp := httputil.NewSingleHostReverseProxy(target)
		rp.FlushInterval = -1
		rp.Transport = &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 64, DisableCompression: true}
		h = rp
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(ln.Addr())
	go func() { // ends with whoever started it
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Fprintln(os.Stderr, http.Serve(ln, h))
	return 1
}

const (
	benchAnswer = `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`
	benchChunk  = `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hello "},"finish_reason":null}]}` + "\n\n"
	benchEnd    = `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
)

func benchUpstream(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if d, err := time.ParseDuration(r.Header.Get("X-Delay")); err == nil {
		t := time.NewTimer(d)
		defer t.Stop()
		<-t.C
	}
	if !bytes.Contains(body, []byte(`"stream":true`)) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, benchAnswer)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	for range 20 {
		_, _ = io.WriteString(w, benchChunk)
		_ = rc.Flush()
	}
	_, _ = io.WriteString(w, benchEnd)
}

// served is one server of a benchmark.
type served struct {
	name string
	addr string
	cmd  *exec.Cmd
}

func (s *served) url() string { return "http://" + s.addr + "/v1/chat/completions" }

// cpu is the processor time that the server has used, with its children's.
func (s *served) cpu(b *testing.B) time.Duration {
	b.Helper()
	var sum time.Duration
	pids := []string{strconv.Itoa(s.cmd.Process.Pid)}
	if kids, err := os.ReadFile("/proc/" + pids[0] + "/task/" + pids[0] + "/children"); err == nil {
		pids = append(pids, strings.Fields(string(kids))...) // nginx's worker
	}
	for _, pid := range pids {
		tasks, err := filepath.Glob("/proc/" + pid + "/task/*/schedstat")
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range tasks {
			data, err := os.ReadFile(f)
			if err != nil {
				continue // a thread that has ended
			}
			ns, err := strconv.ParseInt(strings.Fields(string(data))[0], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			sum += time.Duration(ns)
		}
	}
	return sum
}

// launch starts a server whose first line holds its address.
func launch(b *testing.B, name string, cmd *exec.Cmd, addr func(line string) string) *served {
	b.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	r := bufio.NewReader(out)
	line, err := r.ReadString('\n')
	if err != nil {
		b.Fatalf("%s: %v", name, err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return &served{name: name, addr: addr(strings.TrimSpace(line)), cmd: cmd}
}

// benchServers are the same provider: direct, behind the standard library's
// reverse proxy, behind nginx where it is installed, and behind gettierd.
func benchServers(b *testing.B) (direct *served, all []*served) {
	b.Helper()
	same := func(s string) string { return s }
	role := func(name, target string) *served {
		cmd := exec.Command(binary(b, "relay"))
		cmd.Env = []string{benchEnv + "=" + name, benchTarget + "=" + target}
		return launch(b, name, cmd, same)
	}
	direct = role("upstream", "")
	dir := b.TempDir()
	conf := filepath.Join(dir, "gettierd.yaml")
	if err := os.WriteFile(conf, []byte("version: 1\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	run, err := os.MkdirTemp("", "gt-b") // short: a socket's path has 108 bytes
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(run) })
	ours := exec.Command(binary(b, "gettierd"), "--config", conf, "--state", filepath.Join(dir, "state"), "--socket", filepath.Join(run, "s"),
		"--proxy-port", "0", "--upstream", "http://"+direct.addr, "--log-level", "error")
	ours.Env = cleanEnv(dir)
	all = []*served{direct, role("reverseproxy", "http://"+direct.addr)}
	if path, err := exec.LookPath("nginx"); err == nil {
		all = append(all, benchNginx(b, path, direct.addr))
	}
	all = append(all, launch(b, "gettierd", ours, func(line string) string {
		var ready struct{ Proxy string }
		if err := json.Unmarshal([]byte(line), &ready); err != nil {
			b.Fatalf("gettierd said %q", line)
		}
		return ready.Proxy
	}))
	return direct, all
}

func benchNginx(b *testing.B, path, target string) *served {
	b.Helper()
	dir := b.TempDir()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	conf := fmt.Sprintf("worker_processes 2;\ndaemon off;\npid %[1]s/pid;\nerror_log stderr crit;\nevents {}\nhttp {\n  access_log off;\n  client_body_temp_path %[1]s;\n  proxy_temp_path %[1]s;\n"+
		"  fastcgi_temp_path %[1]s;\n  uwsgi_temp_path %[1]s;\n  scgi_temp_path %[1]s;\n  client_body_buffer_size 256k;\n  upstream u { server %[2]s; keepalive 64; }\n"+
		"  server { listen %[3]s; location / { proxy_pass http://u; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_buffering off; } }\n}\n", dir, target, addr)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(path, "-p", dir, "-c", file)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	within(b, 5*time.Second, "nginx serves", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return &served{name: "nginx", addr: addr, cmd: cmd}
}

// load is what a benchmark asks for.
type load struct {
	name    string
	clients int
	each    int // requests a round
	size    int // bytes of a body, about
	stream  bool
	delay   string
	first   bool // time to the first byte of the body, not to the last
}

// figures are what one server did.
type figures struct {
	wall, cpu time.Duration
	times     []time.Duration
}

func (f *figures) at(q float64) time.Duration {
	slices.Sort(f.times)
	return f.times[min(int(q*float64(len(f.times))), len(f.times)-1)]
}

// round sends l.each requests from l.clients clients.
func (l load) round(b *testing.B, c *http.Client, s *served, f *figures, serial *atomic.Int64) {
	b.Helper()
	before, began := s.cpu(b), time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(l.each))
	for range l.clients {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				body := fmt.Appendf(nil, `{"model":"m","stream":%t,"messages":[{"role":"system","content":"You are helpful."},{"role":"user","content":"What does question %d mean? %s"}]}`,
					l.stream, serial.Add(1), strings.Repeat("word ", l.size/5))
				took, err := l.ask(c, s.url(), body)
				if err != nil {
					b.Errorf("%s: %v", s.name, err)
					return
				}
				mu.Lock()
				f.times = append(f.times, took)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	f.wall += time.Since(began)
	f.cpu += s.cpu(b) - before
}

func (l load) ask(c *http.Client, url string, body []byte) (time.Duration, error) {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if l.delay != "" {
		req.Header.Set("X-Delay", l.delay)
	}
	began := time.Now()
	resp, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var took time.Duration
	if l.first {
		if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
			return 0, err
		}
		took = time.Since(began)
	}
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || l.stream && !bytes.HasSuffix(got, []byte("[DONE]\n\n")) {
		return 0, fmt.Errorf("%s %w: %.200s", resp.Status, cmp.Or(err, io.ErrUnexpectedEOF), got)
	}
	if !l.first {
		took = time.Since(began)
	}
	return took, nil
}

// BenchmarkProxy measures the built daemon beside the same provider direct, the
// standard library's reverse proxy and nginx, in turns within one run. It reports
// ratios with design 10's goals in their names; a round is one iteration.
func BenchmarkProxy(b *testing.B) {
	_, all := benchServers(b)
	client := &http.Client{Transport: &http.Transport{MaxIdleConns: 512, MaxIdleConnsPerHost: 128, DisableCompression: true}}
	var serial atomic.Int64
	for _, l := range []load{
		{name: "64clients", clients: 64, each: 1000, size: 2 << 10},
		{name: "1client", clients: 1, each: 200, size: 2 << 10},
		{name: "97KB", clients: 8, each: 200, size: 97 << 10},
		{name: "20ms", clients: 32, each: 500, size: 2 << 10, delay: "20ms"},
		{name: "firstbyte", clients: 32, each: 500, size: 2 << 10, stream: true, first: true},
	} {
		b.Run(l.name, func(b *testing.B) {
			got := map[string]*figures{}
			for _, s := range all {
				got[s.name] = &figures{}
				l.round(b, client, s, &figures{}, &serial) // warm
			}
			for b.Loop() {
				for _, s := range all {
					l.round(b, client, s, got[s.name], &serial)
				}
			}
			direct, rp, ours := got["upstream"], got["reverseproxy"], got["gettierd"]
			ratio := func(x, y time.Duration) float64 { return float64(x) / float64(max(y, 1)) }
			n := len(ours.times)
			b.ReportMetric(0, "ns/op") // a round's time says nothing
			switch l.name {
			case "64clients":
				b.ReportMetric(ratio(ours.cpu, rp.cpu), "cpu÷rp(≤1.0)")
				b.ReportMetric(ratio(direct.wall, ours.wall), "rate÷direct(≥0.40)")
			case "1client":
				b.ReportMetric(float64((ours.at(.5) - direct.at(.5)).Microseconds()), "added-µs(≤150+commit)")
				b.ReportMetric(float64((rp.at(.5) - direct.at(.5)).Microseconds()), "rp-added-µs")
			case "97KB":
				b.ReportMetric(ratio(ours.cpu, rp.cpu), "cpu÷rp(≤2.0)")
			case "20ms":
				b.ReportMetric(ratio(ours.at(.5), direct.at(.5)), "p50÷direct(≤1.02)")
				b.ReportMetric(ratio(ours.at(.99), direct.at(.99)), "p99÷direct(≤1.10)")
			case "firstbyte":
				b.ReportMetric(ratio(ours.at(.5), direct.at(.5)), "p50÷direct(≤1.8)")
			}
			for _, s := range all {
				f := got[s.name]
				b.Logf("%-9s %-12s %6d requests  %5d µs cpu  %6.0f/s  p50 %v  p99 %v", l.name, s.name, n, f.cpu.Microseconds()/int64(len(f.times)), float64(len(f.times))/f.wall.Seconds(), f.at(.5).Round(time.Microsecond), f.at(.99).Round(time.Microsecond))
			}
		})
	}
}
