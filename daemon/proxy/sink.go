package proxy

import (
	"fmt"
	"net/http"
	"strconv"

	"gettier.dev/gettierd/daemon/turn"
)

// sink is the client's side of one gated request.
type sink struct {
	s       *Server
	w       http.ResponseWriter
	rc      *http.ResponseController
	agent   string
	source  string
	started bool
	aborted bool
}

var _ turn.Sink = (*sink)(nil)

// Start implements turn.Sink.
func (k *sink) Start(status int, upstream http.Header, stream bool, h turn.Headers) {
	if k.started {
		return
	}
	k.started = true
	dst := k.w.Header()
	responseHeaders(dst, upstream)
	dst.Del("Content-Length") // the body may be longer or shorter than the upstream's
	k.s.policyHeaders(dst)
	set := func(name, v string) {
		if v != "" {
			dst.Set("X-Gettier-"+name, v)
		}
	}
	set("Turn", h.Turn)
	set("Decision", string(h.Decision))
	set("Hold", h.Hold)
	set("Agent", k.agent)
	set("Agent-Source", k.source)
	if h.Gated {
		c := h.Counts
		set("Contradicted", strconv.Itoa(c.Contradicted))
		set("Unverifiable", strconv.Itoa(c.Unverifiable))
		set("Unjudged", strconv.Itoa(c.Unjudged))
		set("Inconclusive", strconv.Itoa(c.Inconclusive))
	}
	if h.Counts.Allowed+h.Counts.Denied+h.Counts.Held > 0 {
		set("Actions", fmt.Sprintf("allow=%d,deny=%d,held=%d", h.Counts.Allowed, h.Counts.Denied, h.Counts.Held))
	}
	if h.Rung >= 0 {
		set("Rung", strconv.Itoa(h.Rung))
	}
	k.w.WriteHeader(status)
}

// Started implements turn.Sink.
func (k *sink) Started() bool { return k.started }

// Write implements turn.Sink.
func (k *sink) Write(b []byte) error {
	if _, err := k.w.Write(b); err != nil {
		return err
	}
	return k.rc.Flush()
}

// Abort implements turn.Sink.
func (k *sink) Abort() { k.aborted = true }
