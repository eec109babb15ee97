// Package dialect reads a request's path: which project and upstream its
// prefixes name, which wire format it speaks, and whether the answer of a path
// may be a model's. It holds no HTTP and no state, so that what says offline what
// a request is reads paths as the proxy does.
package dialect

import (
	"net/http"
	"strings"

	anthropicapi "gettier.dev/gettierd/daemon/proxy/anthropic"
	openaiapi "gettier.dev/gettierd/daemon/proxy/openai"
	responsesapi "gettier.dev/gettierd/daemon/proxy/responses"
	"gettier.dev/gettierd/daemon/wire"
)

// Target is where a request goes.
type Target struct {
	Path     string // without our prefixes
	Project  string // named by path or header
	Upstream string // named by path
}

// Split takes /p/<project> and /<upstream> prefixes off a path. project is what
// a header names; the path wins over it.
func Split(path, project string, upstream func(name string) bool) Target {
	t := Target{Path: path, Project: project}
	for {
		rest, ok := strings.CutPrefix(t.Path, "/")
		if !ok {
			return t
		}
		first, tail, more := strings.Cut(rest, "/")
		if first == "p" && more {
			name, after, _ := strings.Cut(tail, "/")
			t.Project, t.Path = name, "/"+after
			continue
		}
		if more && t.Upstream == "" && first != "v1" && upstream(first) {
			t.Upstream, t.Path = first, "/"+tail
			continue
		}
		return t
	}
}

// maxSegments is how many parts from a path's end decide: no path of an API that
// is known here needs more.
const maxSegments = 4

// tail are the last parts of a path as the most lenient server sees it: slashes
// merged, dots resolved, matrix parameters and case gone. n counts all parts.
type tail struct {
	last [maxSegments]string // the last part first
	n    int
}

func tailOf(path string) tail {
	var t tail
	skip := 0 // parts that dots take away
	for end := len(path); end > 0; {
		start := strings.LastIndexAny(path[:end], `/\`) + 1
		s, _, _ := strings.Cut(path[start:end], ";")
		switch s = strings.TrimSpace(s); {
		case s == "" || s == ".":
		case s == "..":
			skip++
		case skip > 0:
			skip--
		default:
			if t.n < maxSegments {
				t.last[t.n] = s
			}
			t.n++
		}
		end = start - 1
	}
	return t
}

// is reports whether part i from the end is name.
func (t *tail) is(i int, name string) bool {
	return i < t.n && i < maxSegments && strings.EqualFold(t.last[i], name)
}

// Gated says which adapter reads a path, nil for all others. An upstream may
// merge slashes, resolve dots, ignore case, or keep its API below a path of its
// own, so the path is read as generously as any of them would, while it goes on
// as it is.
func Gated(method, path string) wire.Adapter {
	if method != http.MethodPost {
		return nil
	}
	t := tailOf(path)
	switch {
	case t.is(0, "completions") && t.is(1, "chat"):
		return openaiapi.Adapter{}
	case t.is(0, "messages") && (t.is(1, "v1") || t.n == 1):
		return anthropicapi.Adapter{}
	case t.is(0, "responses"):
		return responsesapi.Adapter{}
	}
	return nil
}

// Errand says which adapter reads the body of a client's errand whose answer is
// no answer of a model: counting tokens, compaction by a path of its own.
func Errand(method, path string) wire.Adapter {
	if method != http.MethodPost {
		return nil
	}
	t := tailOf(path)
	switch {
	case t.is(0, "count_tokens") && t.is(1, "messages"):
		return anthropicapi.Adapter{}
	case t.is(0, "compact") && t.is(1, "responses"):
		return responsesapi.Adapter{}
	}
	return nil
}

// Stored reports a path whose answer can hold what a model said earlier: kept
// responses and chat completions, their items, the items of a conversation. What
// is read there has passed no gate. It is asked of requests that are not Gated.
func Stored(path string) bool {
	t := tailOf(path)
	for i := range min(t.n, maxSegments) {
		if t.is(i, "responses") || t.is(i, "conversations") || t.is(i, "completions") && t.is(i+1, "chat") {
			return true
		}
	}
	return false
}

// Format guesses whose API a path that is not gated belongs to.
func Format(path string) wire.Format {
	if strings.Contains(path, "/messages") {
		return wire.Messages
	}
	if strings.Contains(path, "/responses") {
		return wire.Responses
	}
	return wire.Chat
}
