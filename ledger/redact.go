package ledger

import (
	"fmt"
	"slices"
	"strings"

	"gettier.dev/gettierd/ledger/chain"
	"github.com/go-json-experiment/json/jsontext"
)

// redactMin is the shortest text that can hold a secret worth the name.
const redactMin = 8

// redactBody passes every string value of a canonical body through redact. It
// works on the decoded text, value by value: rules see what a person would see,
// and a hit can never break the JSON around it. Names are ours and stay.
func redactBody(body []byte, redact func([]byte) ([]byte, []Hit)) ([]byte, []Hit, error) {
	var (
		out   []byte // nil until something changed
		from  int    // start of what out does not hold yet
		hits  []Hit
		plain []byte
	)
	for i := 0; i < len(body); i++ {
		if body[i] != '"' {
			continue
		}
		start := i
		escaped := false
		for i++; body[i] != '"'; i++ {
			if body[i] == '\\' {
				escaped = true
				i++
			}
		}
		isName := i+1 < len(body) && body[i+1] == ':'
		text := body[start+1 : i]
		if isName || len(text) < redactMin || !escaped && machineMade(text) {
			continue
		}
		if escaped {
			var err error
			if plain, err = jsontext.AppendUnquote(plain[:0], body[start:i+1]); err != nil {
				return nil, nil, fmt.Errorf("redact body: %w", err)
			}
			text = plain
		}
		clean, found := redact(text)
		if len(found) == 0 {
			continue
		}
		out = append(out, body[from:start]...)
		var err error
		if out, err = jsontext.AppendQuote(out, strings.ToValidUTF8(string(clean), "\uFFFD")); err != nil {
			return nil, nil, fmt.Errorf("redact body: %w", err)
		}
		from = i + 1
		for _, h := range found {
			if at := slices.IndexFunc(hits, func(o Hit) bool { return o.Rule == h.Rule }); at >= 0 {
				hits[at].Count += h.Count
			} else {
				hits = append(hits, h)
			}
		}
	}
	if len(hits) == 0 {
		return body, nil, nil
	}
	canon, err := chain.Canonical(append(out, body[from:]...))
	if err != nil {
		return nil, nil, fmt.Errorf("redact body: %w", err)
	}
	return canon, hits, nil
}

// machineMade reports whether text is one of our own ids or hashes, which are
// no secrets however random they look: lower-case hex of 32 bytes, or an id.
func machineMade(text []byte) bool {
	if len(text) == 64 {
		return !slices.ContainsFunc(text, func(c byte) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
	}
	return len(text) == 28 && text[1] == '_' && validID(string(text))
}
