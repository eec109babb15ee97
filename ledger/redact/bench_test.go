package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// mixed is text as sensors and agents see it: logs, code, configuration, lock
// files, prose, with a secret every few kilobytes.
func mixedText(size int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	hex := func(n int) string {
		const d = "0123456789abcdef"
		b := make([]byte, n)
		for i := range b {
			b[i] = d[r.IntN(16)]
		}
		return string(b)
	}
	b64 := func(n int) string {
		const d = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
		b := make([]byte, n)
		for i := range b {
			b[i] = d[r.IntN(64)]
		}
		return string(b)
	}
	lines := []func() string{
		func() string {
			return fmt.Sprintf("2026-01-%02dT10:%02d:00Z INFO  request finished method=GET path=/api/v1/items/%d status=200 duration_ms=%d request_id=%s", r.IntN(28)+1, r.IntN(60), r.IntN(9999), r.IntN(900), hex(32))
		},
		func() string { return "commit " + hex(40) },
		func() string { return fmt.Sprintf(`      "integrity": "sha512-%s==",`, b64(86)) },
		func() string { return "github.com/spf13/viper v1.21.0 h1:" + b64(43) + "=" },
		func() string { return "    if err := store.Put(ctx, key, value); err != nil {" },
		func() string { return "\treturn fmt.Errorf(\"open store %q: %w\", path, err)" },
		func() string {
			return "The proxy forwards each request to one of the workers, and the limiter counts them per process."
		},
		func() string {
			return fmt.Sprintf("    location /upload/%d { client_max_body_size %dm; proxy_pass http://10.0.0.%d:8080; }", r.IntN(99), r.IntN(64), r.IntN(255))
		},
		func() string {
			return fmt.Sprintf("root %7d  0.0  0.1 %6d %6d ?  Ss  10:01  0:00 /usr/bin/node server.js --port %d", r.IntN(99999), r.IntN(99999), r.IntN(9999), r.IntN(9999))
		},
		func() string { return "NODE_ENV=production PATH=/usr/local/bin:/usr/bin max_tokens=4096 key_count=3" },
	}
	var b bytes.Buffer
	for b.Len() < size {
		if r.IntN(120) == 0 {
			fmt.Fprintf(&b, "DB_%s=%s\n", "PASSWORD", b64(20))
			continue
		}
		b.WriteString(lines[r.IntN(len(lines))]())
		b.WriteByte('\n')
	}
	return b.Bytes()[:size]
}

func BenchmarkBytes(b *testing.B) {
	e := New()
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		text := mixedText(size)
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				e.Bytes(text)
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkRequest is what it costs to redact a request that is kept: a chat
// body whose tool results are such text.
func BenchmarkRequest(b *testing.B) {
	e := New()
	for _, size := range []int{76 << 10, 1 << 20} {
		var body []byte
		for _, part := range slices.Collect(slices.Chunk(mixedText(size), 4<<10)) {
			text, err := json.Marshal(string(part))
			if err != nil {
				b.Fatal(err)
			}
			body = fmt.Appendf(body, `,{"role":"tool","content":%s}`, text)
		}
		body = append(append([]byte(`{"model":"m","messages":[`), body[1:]...), "]}"...)
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if out, _ := e.JSON(body); !json.Valid(out) {
					b.Fatal("no JSON any more")
				}
			}
		})
	}
}
