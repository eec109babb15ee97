package classify

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
)

// line is the JSON shape of a request. Several spellings are read, since requests
// are kept in several: headers as an object or as a list of pairs, in wire order;
// the body as JSON, as a string of its exact bytes, or in base64.
type line struct {
	ID         json.RawMessage `json:"id"`
	Method     string          `json:"method"`
	Path       string          `json:"path"`
	URL        string          `json:"url"`
	Query      string          `json:"query"`
	Headers    json.RawMessage `json:"headers"`
	Body       json.RawMessage `json:"body"`
	BodyBase64 string          `json:"body_base64"`
	Request    string          `json:"request"` // the whole request as HTTP/1.1 text
	PID        int             `json:"pid"`
	Answer     *struct {
		Failed bool            `json:"failed"`
		Cut    json.RawMessage `json:"cut_after_events"`
		Raw    json.RawMessage `json:"raw"`
		Calls  []struct {
			ID   string          `json:"id"`
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"calls"`
	} `json:"answer"`
}

// ParseJSON reads one request from its JSON shape. Members that it does not know
// are ignored: recordings carry labels and notes of their own.
func ParseJSON(raw []byte) (Request, error) {
	var l line
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return Request{}, errors.New("an empty line")
	case raw[0] != '{':
		return Request{}, errors.New("not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(&l); err != nil {
		return Request{}, fmt.Errorf("not read as JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Request{}, errors.New("data after the JSON object")
	}
	var q Request
	if l.Request != "" {
		var err error
		if q, err = ParseHTTP([]byte(l.Request)); err != nil {
			return q, err
		}
	} else {
		q.Method, q.Path = strings.ToUpper(l.Method), l.Path
		if q.Path == "" && l.URL != "" {
			u, err := url.Parse(l.URL)
			if err != nil {
				return q, fmt.Errorf("read url: %w", err)
			}
			q.Path = u.RequestURI()
		}
		if q.Path == "" {
			return q, errors.New(`no "path" (or "url", or "request")`)
		}
		if l.Query != "" && !strings.Contains(q.Path, "?") {
			q.Path += "?" + strings.TrimPrefix(l.Query, "?")
		}
		var err error
		if q.Header, err = headers(l.Headers); err != nil {
			return q, err
		}
		if q.Body, err = bodyOf(l); err != nil {
			return q, err
		}
	}
	if id := bytes.TrimSpace(l.ID); len(id) > 0 && len(id) <= 1024 && string(id) != "null" {
		q.ID = json.RawMessage(id)
	}
	q.PID = l.PID
	if a := l.Answer; a != nil {
		q.Answer = &Answer{Failed: a.Failed || given(a.Cut) || given(a.Raw)}
		for _, c := range a.Calls {
			q.Answer.Calls = append(q.Answer.Calls, Call{c.ID, c.Name, c.Args})
		}
	}
	return q, nil
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func bodyOf(l line) ([]byte, error) {
	switch {
	case l.BodyBase64 != "":
		b, err := base64.StdEncoding.DecodeString(l.BodyBase64)
		if err != nil {
			return nil, fmt.Errorf("read body_base64: %w", err)
		}
		return b, nil
	case !given(l.Body):
		return nil, nil
	case l.Body[0] == '"':
		var s string
		if err := json.Unmarshal(l.Body, &s); err != nil {
			return nil, fmt.Errorf("read body: %w", err)
		}
		return []byte(s), nil
	case l.Body[0] == '{':
		return l.Body, nil
	}
	return nil, errors.New(`"body" is neither an object nor a string`)
}

// headers reads {"Name": "value" or ["value", …]}, [["Name", "value"], …],
// [{"name": …, "value": …}, …] and ["Name: value", …].
func headers(raw json.RawMessage) (http.Header, error) {
	h := http.Header{}
	if !given(raw) {
		return h, nil
	}
	add := func(k, v string) error {
		k = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(k))
		if k == "" {
			return errors.New("a header without a name")
		}
		h[k] = append(h[k], v)
		return nil
	}
	bad := errors.New(`"headers" is neither an object of strings nor a list of pairs`)
	switch raw[0] {
	case '{':
		var m map[string]json.RawMessage
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, bad
		}
		for _, k := range slices.Sorted(maps.Keys(m)) {
			v := m[k]
			var one string
			var many []string
			switch {
			case json.Unmarshal(v, &one) == nil:
				many = []string{one}
			case json.Unmarshal(v, &many) != nil:
				return nil, bad
			}
			for _, s := range many {
				if err := add(k, s); err != nil {
					return nil, err
				}
			}
		}
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, bad
		}
		for _, e := range list {
			var pair []string
			var named struct{ Name, Value string }
			var text string
			switch {
			case json.Unmarshal(e, &pair) == nil && len(pair) == 2:
			case json.Unmarshal(e, &text) == nil:
				k, v, ok := strings.Cut(text, ":")
				if !ok {
					return nil, bad
				}
				pair = []string{k, strings.TrimSpace(v)}
			case json.Unmarshal(e, &named) == nil && named.Name != "":
				pair = []string{named.Name, named.Value}
			default:
				return nil, bad
			}
			if err := add(pair[0], pair[1]); err != nil {
				return nil, err
			}
		}
	default:
		return nil, bad
	}
	return h, nil
}

// ParseHTTP reads a request as it came over a socket: request line, headers, a
// blank line, the body. The body is what follows, whatever Content-Length says.
func ParseHTTP(raw []byte) (Request, error) {
	var q Request
	head, body, ok := bytes.Cut(raw, []byte("\r\n\r\n"))
	if !ok {
		if head, body, ok = bytes.Cut(raw, []byte("\n\n")); !ok {
			return q, errors.New("an HTTP request without a blank line after its headers")
		}
	}
	lines := strings.Split(strings.ReplaceAll(string(head), "\r\n", "\n"), "\n")
	f := strings.Fields(lines[0])
	if len(f) != 3 || !strings.HasPrefix(f[2], "HTTP/") {
		return q, fmt.Errorf("the request line is %.80q", lines[0])
	}
	q.Method, q.Path, q.Header, q.Body = f[0], f[1], http.Header{}, body
	for _, l := range lines[1:] {
		k, v, ok := strings.Cut(l, ":")
		if !ok || k == "" {
			return q, fmt.Errorf("a header line is %.80q", l)
		}
		k = textproto.CanonicalMIMEHeaderKey(k)
		q.Header[k] = append(q.Header[k], strings.TrimSpace(v))
	}
	if strings.Contains(q.Path, "://") {
		u, err := url.Parse(q.Path)
		if err != nil {
			return q, fmt.Errorf("read request target: %w", err)
		}
		q.Path = u.RequestURI()
	}
	return q, nil
}
