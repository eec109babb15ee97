package proxy

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/daemon/gate"
	"gettier.dev/gettierd/daemon/hold"
	"gettier.dev/gettierd/daemon/peer"
	"gettier.dev/gettierd/daemon/proxy/dialect"
	"gettier.dev/gettierd/daemon/turn"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/sensors"
)

// noSensors is a machine without any.
type noSensors struct{}

func (noSensors) View(string) *sensors.View                                { return &sensors.View{} }
func (noSensors) Run(context.Context, []sensors.Request) []sensors.Reading { return nil }

// serveAll is the whole pass-through pipeline on a real ledger before upstream.
func serveAll(tb testing.TB, upstream string) *httptest.Server {
	tb.Helper()
	led, err := ledger.Open(filepath.Join(tb.TempDir(), "l.db"), ledger.Options{Key: ed25519.NewKeyFromSeed(make([]byte, 32))})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { led.Close() })
	entropy := rand.NewChaCha8([32]byte{})
	log := slog.New(slog.DiscardHandler)
	same := func(s string) string { return s }
	engine := &turn.Engine{
		Store: led, Sensors: noSensors{}, Now: time.Now, Entropy: &locked{r: entropy}, Key: []byte("k"), Redact: same, Log: log,
		Holds: &hold.Book{Store: led, Now: time.Now, Entropy: entropy, Redact: same},
		Settings: func() turn.Settings {
			return turn.Settings{Modes: gate.DefaultModes(), DeclareAtAction: true, KeepAlive: time.Minute, FailOpenExplore: true}
		},
	}
	base, err := url.Parse(upstream)
	if err != nil {
		tb.Fatal(err)
	}
	transport, err := NewTransport(nil)
	if err != nil {
		tb.Fatal(err)
	}
	up := Upstream{Name: "up", Base: base, Format: "any", Trusted: true}
	self := peer.Process{PID: os.Getpid(), UID: os.Getuid(), Cwd: "/"}
	srv := &Server{
		Turns: engine, UID: os.Getuid(), HMACKey: []byte("k"), Transport: transport, Policy: "0", Log: log,
		Peers: func(_, _ netip.AddrPort) (peer.Process, error) { return self, nil },
		Settings: func() Settings {
			return Settings{MaxBody: 64 << 20, MaxInflight: 256 << 20, Upstreams: map[string]Upstream{"up": up}, Default: map[wire.Format]string{wire.Chat: "up", wire.Messages: "up", wire.Responses: "up"}}
		},
		Head: func() (uint64, string) { h := led.Head(); return h.Size, fmt.Sprintf("%x", h.Root) },
	}
	ts := httptest.NewServer(srv)
	tb.Cleanup(ts.Close)
	srv.Listen(ts.Listener.Addr().String())
	return ts
}

// chat is a tool-less question of about size bytes; n makes each one's first words its own.
func chat(n, size int) []byte {
	return fmt.Appendf(nil, `{"model":"m","messages":[{"role":"system","content":"You are helpful."},{"role":"user","content":"What does question %d mean? %s"}]}`, n, strings.Repeat("word ", size/5))
}

// BenchmarkPassThrough runs the same requests direct, through the standard
// library's reverse proxy and through the whole pipeline (parse, route, durable
// record), interleaved in one run, and reports ratios: times and not absolute
// figures, since machines differ.
func BenchmarkPassThrough(b *testing.B) {
	for _, size := range []int{2 << 10, 96 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // the client's error shows
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
			}))
			defer up.Close()
			target, err := url.Parse(up.URL)
			if err != nil {
				b.Fatal(err)
			}
			rp := httptest.NewServer(httputil.NewSingleHostReverseProxy(target))
			defer rp.Close()
			urls := []string{up.URL, rp.URL, serveAll(b, up.URL).URL}
			spent := make([]time.Duration, len(urls))
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
			n := 0
			for b.Loop() {
				n++
				body := chat(n, size)
				for i, u := range urls {
					began := time.Now()
					resp, err := client.Post(u+"/v1/chat/completions", "application/json", bytes.NewReader(body))
					if err != nil {
						b.Fatal(err)
					}
					_, err = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					if err != nil || resp.StatusCode != 200 {
						b.Fatal(resp.Status, err)
					}
					spent[i] += time.Since(began)
				}
			}
			b.ReportMetric(float64(spent[2])/float64(spent[0]), "×direct")
			b.ReportMetric(float64(spent[2])/float64(spent[1]), "×reverseproxy")
			b.ReportMetric(float64(spent[2].Microseconds()-spent[0].Microseconds())/float64(n), "added-µs")
		})
	}
}

// TestPassThroughAllocations guards the worst regression by a count, never by time.
func TestPassThroughAllocations(t *testing.T) {
	a := dialect.Gated(http.MethodPost, "/v1/chat/completions")
	body := chat(1, 96<<10)
	got := testing.AllocsPerRun(100, func() {
		stripped, err := a.Strip(body)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Read(stripped); err != nil {
			t.Fatal(err)
		}
	})
	if got > 60 {
		t.Errorf("reading a 96 KiB chat request makes %.0f allocations", got)
	}
}
