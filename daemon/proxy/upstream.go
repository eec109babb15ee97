package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

// upstreamCall is one client request's way to its upstream: the client's method,
// path, query and headers, with any body.
type upstreamCall struct {
	s        *Server
	up       Upstream
	path     string // decoded
	escaped  string // as the client spelled it
	query    string
	method   string
	header   http.Header
	identity bool // ask for an uncompressed answer: it will be read
}

// Name implements turn.Upstream.
func (c *upstreamCall) Name() string { return c.up.Name }

// hop lists headers that belong to one connection and are never forwarded.
var hop = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// Call implements turn.Upstream.
func (c *upstreamCall) Call(ctx context.Context, body []byte) (*http.Response, error) {
	resp, err := c.send(ctx, body)
	if err != nil || !c.identity {
		return resp, err
	}
	// Some servers compress whatever they are asked for.
	list, err := codings(resp.Header)
	if err != nil {
		_ = resp.Body.Close() // nothing of it can be read
		return nil, fmt.Errorf("it answered in another coding than identity: %w", err)
	}
	if len(list) > 0 {
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength, resp.Body = -1, &decoded{body: resp.Body, codings: list}
	}
	return resp, nil
}

// send makes the request.
func (c *upstreamCall) send(ctx context.Context, body []byte) (*http.Response, error) {
	u := *c.up.Base
	u.RawPath = join(u.EscapedPath(), c.escaped) // counts where it is a spelling of Path
	u.Path = join(u.Path, c.path)
	u.RawQuery = c.query
	req, err := http.NewRequestWithContext(ctx, c.method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("build upstream request: %w", err)
	}
	if len(body) == 0 {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	req.Header = forwardHeaders(c.header)
	if c.identity {
		req.Header.Set("Accept-Encoding", "identity")
	}
	for k, v := range c.up.Headers {
		req.Header.Set(k, v)
	}
	if c.up.Key != "" {
		if c.up.Format == "anthropic" {
			req.Header.Del("Authorization")
			req.Header.Set("X-Api-Key", c.up.Key)
		} else {
			req.Header.Set("Authorization", "Bearer "+c.up.Key)
		}
	}
	if _, ok := req.Header["User-Agent"]; !ok {
		req.Header.Set("User-Agent", "") // net/http would add its own
	}
	transport := c.up.Transport
	if transport == nil {
		transport = c.s.Transport
	}
	if c.up.Timeout <= 0 {
		return transport.RoundTrip(req)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	idle := time.AfterFunc(c.up.Timeout, func() {
		cancel(fmt.Errorf("the upstream %q was silent for %s", c.up.Name, c.up.Timeout))
	})
	resp, err := transport.RoundTrip(req.WithContext(ctx))
	if err != nil {
		idle.Stop()
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	resp.Body = &watched{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, idle: idle, limit: c.up.Timeout}
	return resp, nil
}

// Trusted implements turn.Upstream.
func (c *upstreamCall) Trusted() bool { return c.up.Trusted }

// watched is a body whose silence ends the call.
type watched struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   *time.Timer
	limit  time.Duration
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.ReadCloser.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		if cause := context.Cause(w.ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			err = cause
		}
	}
	w.idle.Reset(w.limit)
	return n, err
}

func (w *watched) Close() error {
	w.idle.Stop()
	err := w.ReadCloser.Close()
	w.cancel(nil)
	return err
}

// join puts a client's path behind a base path. Where the version stands in the
// base, or has none (a ChatGPT login's), it goes from paths that begin with it;
// else it comes to the known paths that lack it.
func join(base, path string) string {
	base = strings.TrimSuffix(base, "/")
	unversioned := strings.HasSuffix(base, "/backend-api/codex")
	switch {
	case (unversioned || strings.HasSuffix(base, "/v1")) && (path == "/v1" || strings.HasPrefix(path, "/v1/")):
		path = strings.TrimPrefix(path, "/v1")
	case !unversioned && !strings.HasSuffix(base, "/v1") && (path == "/chat/completions" || path == "/messages" || path == "/responses"):
		path = "/v1" + path
	}
	return base + path
}

// forwardHeaders copies what an upstream may see: not the connection's own
// headers, nothing of ours, no key of ours.
func forwardHeaders(in http.Header) http.Header {
	out := in.Clone()
	for _, tokens := range in["Connection"] {
		for f := range strings.SplitSeq(tokens, ",") {
			out.Del(strings.TrimSpace(f))
		}
	}
	for _, h := range hop {
		out.Del(h)
	}
	out.Del("Content-Length")
	out.Del("Host")
	for k, vs := range out {
		if strings.HasPrefix(k, "X-Gettier-") {
			delete(out, k)
			continue
		}
		for _, v := range vs {
			if strings.Contains(v, "gt_live_") {
				delete(out, k)
				break
			}
		}
	}
	return out
}

// responseHeaders copies what a client may see of an upstream's headers.
func responseHeaders(dst, src http.Header) {
	for k, vs := range src {
		if strings.HasPrefix(k, "X-Gettier-") {
			continue
		}
		dst[k] = append([]string(nil), vs...)
	}
	for _, tokens := range src["Connection"] {
		for f := range strings.SplitSeq(tokens, ",") {
			dst.Del(strings.TrimSpace(f))
		}
	}
	for _, h := range hop {
		dst.Del(h)
	}
	for k := range dst {
		if strings.HasPrefix(k, "Access-Control-") {
			delete(dst, k)
		}
	}
}

// passThrough forwards a request that is not gated and copies the answer.
func (s *Server) passThrough(w http.ResponseWriter, r *http.Request, c *upstreamCall, body []byte) {
	resp, err := c.Call(r.Context(), body)
	if err != nil {
		if r.Context().Err() != nil {
			return
		}
		s.deny(w, http.StatusBadGateway, "upstream_unreachable", fmt.Sprintf("gettierd cannot reach the upstream %q: %v", c.up.Name, err))
		return
	}
	defer resp.Body.Close()
	responseHeaders(w.Header(), resp.Header)
	s.policyHeaders(w.Header())
	w.WriteHeader(resp.StatusCode)
	rc := http.NewResponseController(w)
	buf := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return
			}
			_ = rc.Flush() // a lost client shows on the next write
		}
		if err == io.EOF {
			for k, vs := range resp.Trailer {
				w.Header()[http.TrailerPrefix+k] = vs
			}
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // a cut answer must not look whole
		}
	}
}

// budget bounds the bytes of bodies in memory; requests over it wait.
type budget struct {
	mu      sync.Mutex
	used    int64
	waiting []chan struct{}
}

func (b *budget) acquire(ctx context.Context, n, limit int64) error {
	for {
		b.mu.Lock()
		if b.used == 0 || b.used+n <= limit {
			b.used += n
			b.mu.Unlock()
			return nil
		}
		ch := make(chan struct{})
		b.waiting = append(b.waiting, ch)
		b.mu.Unlock()
		select {
		case <-ch:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (b *budget) release(n int64) {
	b.mu.Lock()
	b.used -= n
	for _, ch := range b.waiting {
		close(ch)
	}
	b.waiting = nil
	b.mu.Unlock()
}
