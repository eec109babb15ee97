// Package openaiapi is the OpenAI chat completions format: how a request, an
// answer and a stream are read, and how they are spliced. Bytes in, bytes out: no
// HTTP, no rules about what to inject or release.
package openaiapi

import (
	"bytes"
	"strings"

	"gettier.dev/gettierd/daemon/wire"
)

// Adapter implements wire.Adapter.
type Adapter struct{}

var _ wire.Adapter = Adapter{}

// Format names the format.
func (Adapter) Format() wire.Format { return wire.Chat }

// Error is an error body. An empty kind becomes the API's own word for the status.
func (Adapter) Error(status int, kind, message string) []byte {
	if kind == "" {
		kind = errorType(status)
	}
	return errorBody(kind, message)
}

// StreamError is the in-band error chunk; clients look for its first bytes.
func (Adapter) StreamError(kind, message string) []byte {
	if kind == "" {
		kind = "server_error"
	}
	return wire.AppendEvent(nil, "", errorBody(kind, message))
}

func errorBody(kind, message string) []byte {
	b := wire.AppendQuote([]byte(`{"error":{"message":`), message)
	b = wire.AppendQuote(append(b, `,"type":`...), kind)
	return append(b, `,"param":null,"code":null}}`...)
}

func errorType(status int) string {
	switch {
	case status == 429:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// KeepAlive is a comment: named events are fatal to some clients of this format.
func (Adapter) KeepAlive(bool) []byte { return []byte(": keep-alive\n\n") }

// Start is a chunk that says the role only.
func (Adapter) Start(model, id string) []byte {
	return roleChunk(head{id: completionID(id), model: model})
}

func roleChunk(h head) []byte {
	return chunk(nil, h, `{"role":"assistant","content":""}`, "null")
}

// head is what all chunks of an answer share.
type head struct{ id, model string }

// chunk appends a chunk with one choice.
func chunk(b []byte, h head, delta, finish string) []byte {
	d := appendHead(nil, h, "chat.completion.chunk")
	d = append(append(d, `,"choices":[{"index":0,"delta":`...), delta...)
	d = append(append(append(d, `,"logprobs":null,"finish_reason":`...), finish...), `}]}`...)
	return wire.AppendEvent(b, "", d)
}

func appendHead(b []byte, h head, object string) []byte {
	b = wire.AppendQuote(append(b, `{"id":`...), h.id)
	b = append(append(append(b, `,"object":"`...), object...), `","created":0,"model":`...)
	return wire.AppendQuote(b, h.model)
}

// completionID gives an id the prefix that clients know.
func completionID(id string) string {
	if strings.HasPrefix(id, "chatcmpl-") {
		return id
	}
	return "chatcmpl-" + id
}

// textDelta is a delta of content.
func textDelta(text string) string {
	return string(append(wire.AppendQuote([]byte(`{"content":`), text), '}'))
}

// TextAnswer is a complete answer that says text and stops.
func (a Adapter) TextAnswer(model, id, text string, stream bool) []byte {
	if stream {
		s := a.NewStream()
		start := a.Start(model, id)
		s.Sent(wire.Piece{Raw: start, Kind: wire.PieceStart})
		return append(start, s.Finish(text)...)
	}
	b := appendHead(nil, head{id: completionID(id), model: model}, "chat.completion")
	b = wire.AppendQuote(append(b, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...), text)
	b = append(b, `,"refusal":null},"logprobs":null,"finish_reason":"stop"}],`...)
	return append(b, `"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`...)
}

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
