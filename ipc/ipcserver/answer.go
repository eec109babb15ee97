package ipcserver

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"gettier.dev/gettierd/ipc"
)

// answer writes v, or the problem that err is.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, v any, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	b, err := ipc.Marshal(v)
	if err != nil {
		s.fail(w, r, fmt.Errorf("write answer: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(b, '\n')) // the client is gone: nobody to tell
}

// fail turns an error into its problem document.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the caller is gone
	}
	problem(w, s.asProblem(r, err))
}

func (s *Server) asProblem(r *http.Request, err error) *ipc.Problem {
	var p *ipc.Problem
	if errors.As(err, &p) {
		return p
	}
	for _, k := range []struct {
		err    error
		status int
		title  string
	}{
		{ErrNotFound, 404, "Not found"},
		{ErrInvalid, 422, "Not valid"},
		{ErrConflict, 409, "Conflict"},
		{ErrRefused, 403, "Refused"},
		{ErrUnavailable, 503, "Not available"},
	} {
		if errors.Is(err, k.err) {
			// The title says which it is; %w would have the detail say it again.
			detail := strings.TrimPrefix(strings.TrimSuffix(err.Error(), ": "+k.err.Error()), k.err.Error()+": ")
			return &ipc.Problem{Title: k.title, Status: k.status, Detail: detail}
		}
	}
	s.log.Error("call failed", "method", r.Method, "path", r.URL.Path, "err", err)
	return &ipc.Problem{Title: "Internal error", Status: 500, Detail: err.Error()}
}

func problem(w http.ResponseWriter, p *ipc.Problem) {
	out := *p
	if out.Type == "" {
		out.Type = "about:blank"
	}
	if out.Status < 400 || out.Status > 599 {
		out.Status = 500
	}
	b, err := ipc.Marshal(&out)
	if err != nil {
		b = fmt.Appendf(nil, `{"status":%d}`, out.Status)
	}
	w.Header().Set("Content-Type", ipc.ProblemType)
	w.WriteHeader(out.Status)
	_, _ = w.Write(append(b, '\n')) // the client is gone: nobody to tell
}

func bad(format string, a ...any) error {
	return &ipc.Problem{Title: "Bad request", Status: 400, Detail: fmt.Sprintf(format, a...)}
}

// read takes a JSON body strictly: the right type, no unknown or repeated
// member, nothing after it. An empty body is the zero value where empty is true.
func read[T any](w http.ResponseWriter, r *http.Request, empty bool) (T, error) {
	var v T
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, ipc.MaxBody))
	if err != nil {
		var big *http.MaxBytesError
		if errors.As(err, &big) {
			return v, &ipc.Problem{Title: "Too large", Status: 413, Detail: fmt.Sprintf("the body may have %d bytes", ipc.MaxBody)}
		}
		return v, bad("read body: %v", err)
	}
	if len(b) == 0 && empty {
		return v, nil
	}
	// A form post cannot be JSON by accident, and needs no preflight in a browser.
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return v, &ipc.Problem{Title: "Unsupported media type", Status: 415, Detail: "the body must be application/json",
			Hint: "curl: add -H 'Content-Type: application/json'"}
	}
	if err := json.Unmarshal(b, &v, json.RejectUnknownMembers(true)); err != nil {
		return v, bad("read body: %v", err)
	}
	return v, nil
}

// query reads parameters; a name that the call does not know is refused, so a
// mistyped filter cannot look like an empty one.
type query struct {
	v   url.Values
	err error
}

func readQuery(r *http.Request, known ...string) *query {
	v, err := url.ParseQuery(r.URL.RawQuery)
	q := &query{v: v}
	if err != nil {
		q.err = bad("read query: %v", err)
		return q
	}
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for k := range v {
			if !yield(k) {
				return
			}
		}
	}) {
		if !slices.Contains(known, name) {
			hint := "this call takes no parameters"
			if len(known) > 0 {
				hint = "known here: " + strings.Join(known, ", ")
			}
			q.err = &ipc.Problem{Title: "Bad request", Status: 400, Detail: "unknown parameter " + strconv.Quote(name), Hint: hint}
			return q
		}
		if len(v[name]) > 1 {
			q.err = bad("parameter %q stands there twice", name)
			return q
		}
	}
	return q
}

func (q *query) str(name string) string { return q.v.Get(name) }

// word is a parameter of a closed set; empty is allowed.
func (q *query) word(name string, set ...string) string {
	s := q.v.Get(name)
	if s != "" && !slices.Contains(set, s) && q.err == nil {
		q.err = &ipc.Problem{Title: "Bad request", Status: 400, Detail: fmt.Sprintf("%s cannot be %q", name, s),
			Hint: "one of " + strings.Join(set, ", ")}
	}
	return s
}

// seq is an optional sequence number.
func (q *query) seq(name string) *uint64 {
	s := q.v.Get(name)
	if s == "" {
		return nil
	}
	n, err := parseSeq(s)
	if err != nil {
		if q.err == nil {
			q.err = bad("%s must be a sequence number", name)
		}
		return nil
	}
	return &n
}

func parseSeq(s string) (uint64, error) { return strconv.ParseUint(s, 10, 53) }

func (q *query) page() ipc.Page {
	p := ipc.Page{Limit: ipc.DefaultLimit, Cursor: q.str("cursor")}
	if s := q.str("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if (err != nil || n < 1) && q.err == nil {
			q.err = bad("limit must be a number from 1 to %d", ipc.MaxLimit)
		}
		p.Limit = min(n, ipc.MaxLimit)
	}
	return p
}

// filled gives an empty page an empty array instead of null.
func filled[T any](l ipc.List[T], err error) (ipc.List[T], error) {
	if l.Items == nil {
		l.Items = []T{}
	}
	return l, err
}
