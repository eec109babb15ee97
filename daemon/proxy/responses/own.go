package responsesapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// paragraph parts our text from the text before it: SDKs join all texts of a
// response without anything between them.
const paragraph = "\n\n"

// lastNumber is the sequence number of a failure, which knows no stream: nothing
// follows it, and no stream gets that far.
const lastNumber = 1<<31 - 1

// Error is an error body. An empty kind becomes the API's own word for the status.
func (Adapter) Error(status int, kind, message string) []byte {
	if kind == "" {
		kind = errorType(status)
	}
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

// StreamError is response.failed. The code tells a client whether to try again:
// what was refused is an invalid prompt, everything else a fault of the server.
func (Adapter) StreamError(kind, message string) []byte {
	code := "server_error"
	switch kind {
	case "invalid_request_error", "invalid_prompt", "forbidden", "refused", "blocked":
		code = "invalid_prompt"
	case "rate_limit_error", "rate_limit_exceeded":
		code = "rate_limit_exceeded"
	}
	fault := wire.AppendQuote([]byte(`{"code":"`+code+`","message":`), message)
	o := object{id: "resp_gettier", status: "failed", err: append(fault, '}')}
	return appendEvent(nil, "response.failed", lastNumber, append([]byte(`,"response":`), o.bytes()...))
}

// KeepAlive repeats response.in_progress, the one event that holds a waiting
// client of this format. A stream knows a better one, with its own id and number.
func (Adapter) KeepAlive(started bool) []byte {
	if !started {
		return []byte(": keep-alive\n\n")
	}
	o := object{id: "resp_gettier", status: "in_progress"}
	return wire.AppendEvent(nil, "response.in_progress", append(append([]byte(`{"type":"response.in_progress","response":`), o.bytes()...), '}'))
}

// Start is response.created.
func (Adapter) Start(model, id string) []byte {
	o := object{id: responseID(id), model: model, status: "in_progress"}
	return appendEvent(nil, "response.created", 0, append([]byte(`,"response":`), o.bytes()...))
}

// TextAnswer is a complete answer that says text and stops.
func (a Adapter) TextAnswer(model, id, text string, stream bool) []byte {
	if stream {
		s := a.NewStream()
		start := a.Start(model, id)
		s.Sent(wire.Piece{Raw: start, Kind: wire.PieceStart})
		return append(start, s.Finish(text)...)
	}
	id = responseID(id)
	item := messageItem(messageID(id, 0, text), text)
	return object{id: id, model: model, status: "completed", output: item, usage: usageObject(lemma.Usage{})}.bytes()
}

// responseID gives an id the prefix that clients know.
func responseID(id string) string {
	if strings.HasPrefix(id, "resp_") {
		return id
	}
	return "resp_" + id
}

// messageID names a message of ours, so that Strip knows it again. No two of one
// conversation are the same.
func messageID(response string, index int, text string) string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%s\x00%d\x00%s", response, index, text)))
	return ownID + hex.EncodeToString(sum[:12])
}

// object is a response object of our own making.
type object struct {
	id, model, status  string
	output, usage, err []byte // output: the items, with commas between
}

func (o object) bytes() []byte {
	null := func(raw []byte) []byte {
		if raw == nil {
			return []byte("null")
		}
		return raw
	}
	b := wire.AppendQuote([]byte(`{"id":`), o.id)
	b = append(b, `,"object":"response","created_at":0,"status":"`+o.status+`","background":false,"error":`...)
	b = append(append(b, null(o.err)...), `,"incomplete_details":null,"instructions":null,"max_output_tokens":null,"model":`...)
	b = append(append(wire.AppendQuote(b, o.model), `,"output":[`...), o.output...)
	b = append(b, `],"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":null,"summary":null},"store":false,"temperature":1.0,`+
		`"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled","usage":`...)
	return append(append(b, null(o.usage)...), `,"user":null,"metadata":{}}`...)
}

// textPart is a content part of the assistant.
func textPart(text string) []byte {
	return append(wire.AppendQuote([]byte(`{"type":"output_text","text":`), text), `,"annotations":[],"logprobs":[]}`...)
}

func messageItem(id, text string) []byte {
	return message(id, "completed", textPart(text))
}

func message(id, status string, content []byte) []byte {
	b := wire.AppendQuote([]byte(`{"type":"message","id":`), id)
	b = append(b, `,"status":"`+status+`","role":"assistant","content":[`...)
	return append(append(b, content...), `]}`...)
}

func usageObject(u lemma.Usage) []byte {
	prompt := u.Input + u.CacheRead
	b := strconv.AppendInt([]byte(`{"input_tokens":`), prompt, 10)
	b = strconv.AppendInt(append(b, `,"input_tokens_details":{"cached_tokens":`...), u.CacheRead, 10)
	b = strconv.AppendInt(append(b, `},"output_tokens":`...), u.Output, 10)
	b = strconv.AppendInt(append(b, `,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":`...), prompt+u.Output, 10)
	return append(b, '}')
}

// appendEvent appends an event of our own; more is the rest of its members.
func appendEvent(b []byte, kind string, number int64, more []byte) []byte {
	d := strconv.AppendInt([]byte(`{"type":"`+kind+`","sequence_number":`), number, 10)
	return wire.AppendEvent(b, kind, append(append(d, more...), '}'))
}
