// Package responsesapi is the OpenAI Responses format: how a request, an answer
// and a stream of typed events are read, and how they are spliced. Bytes in,
// bytes out: no HTTP, no rules about what to inject or release.
package responsesapi

import (
	"bytes"

	"gettier.dev/gettierd/daemon/wire"
)

// Adapter implements wire.Adapter.
type Adapter struct{}

// Format names the format.
func (Adapter) Format() wire.Format { return wire.Responses }

func whole(raw []byte) wire.Span { return wire.Span{Start: 0, End: len(raw)} }

// text decodes a string value that may be absent or of another kind.
func text(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	return string(wire.Unquote(raw))
}

// member is the raw value of a member of an object; nil when absent or null.
func member(raw []byte, name string) []byte {
	m, ok := wire.Find(wire.MembersOf(raw, whole(raw)), name)
	if !ok || raw[m.Value.Start] == 'n' {
		return nil
	}
	return raw[m.Value.Start:m.Value.End]
}

// set reports a value that says something: not absent, null, "", [] or {}.
func set(raw []byte) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", `""`, "[]", "{}":
		return false
	}
	return true
}
