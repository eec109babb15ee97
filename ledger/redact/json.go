package redact

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// nestedMost is how deep JSON inside JSON strings is read as JSON.
const nestedMost = 3

// JSON is Bytes for a JSON document: each string is looked at as its decoded
// text, with the member's name as context, so that no escape is cut in half and
// the result is JSON again. Bytes outside changed values stay as they were.
// What is no JSON goes through Bytes. Spans are places in b, of whole values
// when a value had escapes.
func (e *Engine) JSON(b []byte) ([]byte, []Hit) {
	out, fs, ok := e.document(b, 0)
	if !ok {
		return e.Bytes(b)
	}
	if len(fs) == 0 {
		return b, nil
	}
	return out, tally(fs)
}

func (e *Engine) document(b []byte, depth int) ([]byte, []found, bool) {
	if !json.Valid(b) {
		return nil, nil, false
	}
	var (
		out  []byte
		all  []found
		from int    // b[:from] is in out, once out is begun
		name string // of the member whose value comes next
	)
	put := func(start, end int, text []byte, fs []found) {
		out = append(append(out, b[from:start]...), text...)
		from = end
		all = append(all, fs...)
	}
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			end := stringEnd(b, i)
			if k := skipSpace(b, end); k < len(b) && b[k] == ':' {
				name = unquote(b[i:end])
				// A secret may stand in a name, too.
				if text, hits := e.Bytes([]byte(name)); len(hits) > 0 {
					put(i, end, quote(text), spread(hits, i, end))
				}
				i = k + 1
				continue
			}
			if text, fs := e.stringValue(b[i:end], name, depth); fs != nil {
				for j := range fs {
					fs[j].start += i
					fs[j].end += i
				}
				put(i, end, text, fs)
			}
			i, name = end, nameAfter(b, end, name)
		case c == '-' || isDigit(c):
			end := i
			for end < len(b) && (isAlnum(b[end]) || b[end] == '.' || b[end] == '-' || b[end] == '+') {
				end++
			}
			if name != "" && keyStrength([]byte(name)) == strong && end-i >= 4 {
				put(i, end, quote([]byte(Mark("password"))), []found{{i, end, "password"}})
			}
			i, name = end, nameAfter(b, end, name)
		case c == '{' || c == '}':
			name = ""
			i++
		default:
			i++
		}
	}
	if len(all) == 0 {
		return b, nil, true
	}
	return append(out, b[from:]...), all, true
}

// nameAfter keeps a name for the further elements of an array.
func nameAfter(b []byte, end int, name string) string {
	if k := skipSpace(b, end); k < len(b) && b[k] == ',' {
		if m := skipSpace(b, k+1); m < len(b) && b[m] == '"' {
			if n := skipSpace(b, stringEnd(b, m)); n < len(b) && b[n] == ':' {
				return ""
			}
		}
		return name
	}
	return ""
}

// stringValue redacts one quoted string; nil spans mean that nothing changed.
func (e *Engine) stringValue(quoted []byte, name string, depth int) ([]byte, []found) {
	// Bytes that are no UTF-8 are judged as they will be written.
	escaped := bytes.IndexByte(quoted, '\\') >= 0 || !utf8.Valid(quoted)
	text := quoted[1 : len(quoted)-1]
	if escaped {
		text = []byte(unquote(quoted))
	}
	whole := []found{{start: 0, end: len(quoted)}}
	if name != "" {
		if st := keyStrength([]byte(name)); st != none {
			secret := text
			if n, ok := afterScheme(text); ok {
				secret = text[len(text)-n:]
			}
			if literal([]byte(name), secret, st, opColon, true, ',', false) {
				rule := "secret"
				if st == strong {
					rule = "password"
				}
				kept := text[:len(text)-len(secret)]
				whole[0].rule = rule
				if !escaped {
					whole[0] = found{1 + len(kept), len(quoted) - 1, rule}
				}
				return quote(append(bytes.Clone(kept), Mark(rule)...)), whole
			}
		}
	}
	if depth < nestedMost && len(text) > 1 && (text[0] == '{' || text[0] == '[') {
		if inner, fs, ok := e.document(text, depth+1); ok {
			if len(fs) == 0 {
				return nil, nil
			}
			return quote(inner), spread(tally(fs), 0, len(quoted))
		}
	}
	red, hits := e.Bytes(text)
	if len(hits) == 0 {
		return nil, nil
	}
	if escaped {
		return quote(red), spread(hits, 0, len(quoted))
	}
	var fs []found
	for _, h := range hits {
		for _, sp := range h.Spans {
			fs = append(fs, found{sp.Start + 1, sp.End + 1, h.Rule})
		}
	}
	sortFound(fs)
	return quote(red), fs
}

// spread gives each hit the span of the whole value.
func spread(hits []Hit, start, end int) []found {
	var fs []found
	for _, h := range hits {
		for range h.Count {
			fs = append(fs, found{start, end, h.Rule})
		}
	}
	return fs
}

func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && isBlank(b[i]) {
		i++
	}
	return i
}

func unquote(quoted []byte) string {
	out, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		// Lone surrogates: AppendUnquote has put U+FFFD in their place.
		return string(out)
	}
	return string(out)
}

func quote(text []byte) []byte {
	out, err := jsontext.AppendQuote(nil, text)
	if err != nil { // invalid UTF-8, replaced by U+FFFD
		out, _ = jsontext.AppendQuote(nil, bytes.ToValidUTF8(text, []byte("\uFFFD")))
	}
	return out
}
