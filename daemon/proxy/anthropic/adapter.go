// Package anthropicapi is the Anthropic Messages format: how a request, an answer
// and a stream are read, and how they are spliced. Bytes in, bytes out: no HTTP,
// no rules about what to inject or release.
package anthropicapi

import (
	"fmt"
	"strconv"

	"gettier.dev/gettierd/daemon/wire"
)

// Adapter implements wire.Adapter.
type Adapter struct{}

var _ wire.Adapter = Adapter{}

// Format names the format.
func (Adapter) Format() wire.Format { return wire.Messages }

// Error is an error body. An empty kind becomes the API's own word for the status.
func (Adapter) Error(status int, kind, message string) []byte {
	if kind == "" {
		kind = errorType(status)
	}
	return errorBody(kind, message)
}

// StreamError is the in-band error event.
func (Adapter) StreamError(kind, message string) []byte {
	if kind == "" {
		kind = "api_error"
	}
	return wire.AppendEvent(nil, "error", errorBody(kind, message))
}

func errorBody(kind, message string) []byte {
	b := wire.AppendQuote([]byte(`{"type":"error","error":{"type":`), kind)
	b = wire.AppendQuote(append(b, `,"message":`...), message)
	return append(b, `}}`...)
}

func errorType(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

// KeepAlive is a ping, and once the message has started a delta that changes
// nothing: some clients count only events of the message as signs of life.
func (Adapter) KeepAlive(started bool) []byte {
	b := wire.AppendEvent(nil, "ping", []byte(`{"type":"ping"}`))
	if started {
		b = wire.AppendEvent(b, "message_delta", []byte(`{"type":"message_delta","delta":{"stop_reason":null,"stop_sequence":null},"usage":{"output_tokens":0}}`))
	}
	return b
}

// Start is a message_start without content.
func (Adapter) Start(model, id string) []byte {
	b := []byte(`{"type":"message_start","message":`)
	b = append(appendMessage(b, model, id, "", "null"), '}')
	return wire.AppendEvent(nil, "message_start", b)
}

// appendMessage appends a message object; content is raw elements.
func appendMessage(b []byte, model, id, content, stop string) []byte {
	b = wire.AppendQuote(append(b, `{"id":`...), messageID(id))
	b = wire.AppendQuote(append(b, `,"type":"message","role":"assistant","model":`...), model)
	b = append(append(append(b, `,"content":[`...), content...), `],"stop_reason":`...)
	b = append(append(b, stop...), `,"stop_sequence":null,"usage":`...)
	b = append(b, `{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}`...)
	return append(b, '}')
}

// messageID gives an id the prefix that clients know.
func messageID(id string) string {
	if len(id) >= 4 && id[:4] == "msg_" {
		return id
	}
	return "msg_" + id
}

// TextAnswer is a complete answer of one text block.
func (a Adapter) TextAnswer(model, id, text string, stream bool) []byte {
	if !stream {
		block := string(wire.Quote(text))
		return appendMessage(nil, model, id, `{"type":"text","text":`+block+`}`, `"end_turn"`)
	}
	s := a.NewStream()
	start := a.Start(model, id)
	s.Sent(wire.Piece{Raw: start, Kind: wire.PieceStart})
	return append(start, s.Finish(text)...)
}

// appendTextBlock appends the events of one whole text block.
func appendTextBlock(b []byte, index int, text string) []byte {
	n := strconv.Itoa(index)
	b = wire.AppendEvent(b, "content_block_start", []byte(`{"type":"content_block_start","index":`+n+`,"content_block":{"type":"text","text":""}}`))
	delta := wire.AppendQuote([]byte(`{"type":"content_block_delta","index":`+n+`,"delta":{"type":"text_delta","text":`), text)
	b = wire.AppendEvent(b, "content_block_delta", append(delta, `}}`...))
	return appendBlockStop(b, index)
}

func appendBlockStop(b []byte, index int) []byte {
	return wire.AppendEvent(b, "content_block_stop", []byte(fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index)))
}
