package proxy

import (
	"fmt"
	"io"
	"net/http"

	"gettier.dev/gettierd/daemon/proxy/responses"
)

// passStored forwards a request for what a model said earlier (a kept response,
// the items of a conversation) and looks at the answer before it leaves: the gate
// has ruled on none of it, or has refused some of it, so a call that stands there
// does not go to the client (13.11).
func (s *Server) passStored(w http.ResponseWriter, r *http.Request, c *upstreamCall, body []byte, limit int64) {
	if v := r.URL.Query().Get("stream"); v != "" && v != "false" && v != "0" {
		s.deny(w, http.StatusForbidden, "ungated_answer", "gettierd does not hand on the stream of a kept response: its calls would pass the gate unruled. Ask for it without stream, or send the request again")
		return
	}
	c.identity = true // what is looked at is read without its codings
	resp, err := c.Call(r.Context(), body)
	if err != nil {
		if r.Context().Err() == nil {
			s.deny(w, http.StatusBadGateway, "upstream_unreachable", fmt.Sprintf("gettierd cannot reach the upstream %q: %v", c.up.Name, err))
		}
		return
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		panic(http.ErrAbortHandler) // a cut answer must not look whole
	}
	if why := unruled(resp, answer, limit); why != "" {
		s.deny(w, http.StatusForbidden, "ungated_answer", "gettierd holds back what the upstream keeps of an earlier answer: "+why)
		return
	}
	responseHeaders(w.Header(), resp.Header)
	s.policyHeaders(w.Header())
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(answer) // a lost client needs nothing more
}

// unruled says why a kept answer may not leave, "" when it may.
func unruled(resp *http.Response, answer []byte, limit int64) string {
	switch {
	case int64(len(answer)) > limit:
		return "it is larger than proxy.max_body"
	case resp.StatusCode < 200 || resp.StatusCode > 299 || len(answer) == 0:
		return "" // an error says nothing of a model
	}
	kind, err := responsesapi.Kept(answer)
	if err != nil {
		return err.Error()
	}
	if kind != "" {
		return fmt.Sprintf("a %s in it has passed no gate; send the request again without background, and its calls are ruled on", kind)
	}
	return ""
}
