package openaiapi

import (
	"errors"
	"regexp"
	"slices"
	"strconv"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// defaultTokens caps a declaration where the caller names no cap.
const defaultTokens = 600

// reasoners are models that refuse max_tokens and want max_completion_tokens.
var reasoners = regexp.MustCompile(`^(?:openai/)?(?:o[1-9]|gpt-[5-9])`)

// Declare derives the body of a declare pass. Rung 0 changes nothing that the
// provider's cache key covers: tools, tool_choice and reasoning effort stay.
func (Adapter) Declare(r *wire.Request, o wire.DeclareOptions) ([]byte, error) {
	if len(r.Items) == 0 {
		return nil, errors.New("declare: the request has no messages")
	}
	edits, err := splice(r, []wire.Block{{After: len(r.Items) - 1, Text: o.Asked()}})
	if err != nil {
		return nil, err
	}
	top := r.Top()
	if top.Has("stream") {
		top.Set("stream", []byte("false"))
	}
	// What shapes the output elsewhere would only spoil a declaration here.
	top.Drop("stream_options", "n", "stop", "prediction", "modalities", "audio", "logprobs", "top_logprobs")
	if top.Has("store") || !o.OmitStore {
		top.Set("store", []byte("false"))
	}
	capTokens(r, top, o.MaxTokens)
	if o.Rung > 0 && slices.Contains([]string{"medium", "high", "xhigh", "max"}, text(r.Raw("reasoning_effort"))) {
		top.Set("reasoning_effort", []byte(`"low"`))
	}
	if r.OutputFormat && o.Rung != 2 {
		top.Drop("response_format")
	}
	if o.Rung == 1 {
		edits = append(edits, offerTool(r, top)...)
		top.Set("tool_choice", []byte(`{"type":"function","function":{"name":"`+wire.DeclareTool+`"}}`))
		top.Drop("function_call", "parallel_tool_calls")
	} else if o.Rung > 1 {
		if tools := r.Raw("tools"); set(tools) {
			top.Set("tool_choice", []byte(`"none"`))
		}
		if functions := r.Raw("functions"); set(functions) {
			top.Set("function_call", []byte(`"none"`))
		}
	}
	if o.Rung == 2 {
		format := append([]byte(`{"type":"json_schema","json_schema":{"name":"`+wire.DeclareTool+`","strict":false,"schema":`), wire.DeclareSchema(false)...)
		top.Set("response_format", append(format, `}}`...))
	}
	return wire.Apply(r.Body, append(edits, top.Edits()...)), nil
}

// capTokens sets the output cap under the name that this model takes.
func capTokens(r *wire.Request, top *wire.Object, want int) {
	if want <= 0 {
		want = defaultTokens
	}
	n := strconv.AppendInt(nil, int64(want), 10)
	switch {
	case top.Has("max_completion_tokens"):
		top.Set("max_completion_tokens", n)
		top.Drop("max_tokens")
	case top.Has("max_tokens"):
		top.Set("max_tokens", n)
	case r.Thinking || reasoners.MatchString(r.Model):
		top.Set("max_completion_tokens", n)
	default:
		top.Set("max_tokens", n)
	}
}

func offerTool(r *wire.Request, top *wire.Object) []wire.Edit {
	raw := r.Raw("tools")
	var last wire.Span
	for _, t := range r.Tools {
		if t.Name == wire.DeclareTool {
			return nil
		}
		if m, ok := wire.Find(r.Members, "tools"); ok && t.Span.Start > m.Value.Start && t.Span.End < m.Value.End {
			last = t.Span
		}
	}
	tool := wire.AppendQuote([]byte(`{"type":"function","function":{"name":"`+wire.DeclareTool+`","description":`), wire.DeclareDescription)
	tool = append(append(append(tool, `,"parameters":`...), wire.DeclareSchema(false)...), `}}`...)
	if last.End == 0 || !set(raw) {
		top.Set("tools", append(append([]byte{'['}, tool...), ']'))
		return nil
	}
	return []wire.Edit{{At: wire.Span{Start: last.End, End: last.End}, With: append([]byte{','}, tool...)}}
}

// ReadDeclaration takes the declaration out of a declare answer.
func (a Adapter) ReadDeclaration(rung wire.Rung, answer []byte) ([]byte, lemma.Usage, error) {
	ans, err := a.ReadAnswer(answer)
	if err != nil {
		return nil, lemma.Usage{}, err
	}
	d, err := ans.Declaration(rung)
	return d, ans.Usage, err
}

// Again derives the body of an answer made anew.
func (Adapter) Again(r *wire.Request, stream bool) ([]byte, error) {
	top := r.Top()
	if r.Stream != stream {
		top.Set("stream", strconv.AppendBool(nil, stream))
	}
	if !stream {
		top.Drop("stream_options")
	}
	edits := top.Edits()
	if len(edits) == 0 {
		return r.Body, nil
	}
	return wire.Apply(r.Body, edits), nil
}
