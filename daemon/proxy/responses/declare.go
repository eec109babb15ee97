package responsesapi

import (
	"errors"
	"slices"
	"strconv"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// defaultTokens caps a declaration where the caller names no cap; the API takes
// none below leastTokens.
const (
	defaultTokens = 600
	leastTokens   = 16
)

// Declare derives the body of a declare pass. Rung 0 changes nothing that the
// provider's cache key covers: tools, tool_choice and reasoning effort stay. A
// previous_response_id stays on every rung, since the history is behind it.
func (Adapter) Declare(r *wire.Request, o wire.DeclareOptions) ([]byte, error) {
	if len(r.Items) == 0 {
		return nil, errors.New("declare: the request has no input")
	}
	if set(r.Raw("conversation")) {
		return nil, errors.New("declare: the provider would add the question to the conversation that it keeps")
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
	top.Drop("stream_options", "top_logprobs", "max_tool_calls", "background")
	if top.Has("store") || !o.OmitStore {
		top.Set("store", []byte("false"))
	}
	limit := o.MaxTokens
	if limit <= 0 {
		limit = defaultTokens
	}
	top.Set("max_output_tokens", strconv.AppendInt(nil, int64(max(limit, leastTokens)), 10))
	if o.Rung > 0 {
		lessEffort(r, top)
	}
	shapeText(r, top, o.Rung)
	switch {
	case o.Rung == 1:
		edits = append(edits, offerTool(r, top)...)
		top.Set("tool_choice", []byte(`{"type":"function","name":"`+wire.DeclareTool+`"}`))
		top.Drop("parallel_tool_calls")
	case o.Rung > 1 && set(r.Raw("tools")):
		top.Set("tool_choice", []byte(`"none"`))
	}
	return wire.Apply(r.Body, append(edits, top.Edits()...)), nil
}

// lessEffort lowers the effort of a model that reasons: a declaration is short.
func lessEffort(r *wire.Request, top *wire.Object) {
	raw := r.Raw("reasoning")
	effort := text(member(raw, "effort"))
	if effort != "" && !slices.Contains([]string{"medium", "high", "xhigh", "max"}, effort) || !r.Thinking {
		return
	}
	if len(raw) == 0 || raw[0] != '{' {
		raw = []byte("{}")
	}
	o := wire.ObjectIn(raw)
	o.Set("effort", []byte(`"low"`))
	top.Set("reasoning", o.Edited(raw))
}

// shapeText asks for constrained JSON on rung 2 and for free text elsewhere.
func shapeText(r *wire.Request, top *wire.Object, rung wire.Rung) {
	if rung != 2 && !r.OutputFormat {
		return
	}
	raw := r.Raw("text")
	if len(raw) == 0 || raw[0] != '{' {
		raw = []byte("{}")
	}
	o := wire.ObjectIn(raw)
	if rung == 2 {
		format := append([]byte(`{"type":"json_schema","name":"`+wire.DeclareTool+`","strict":false,"schema":`), wire.DeclareSchema(false)...)
		o.Set("format", append(format, '}'))
	} else {
		o.Drop("format")
	}
	top.Set("text", o.Edited(raw))
}

func offerTool(r *wire.Request, top *wire.Object) []wire.Edit {
	for _, t := range r.Tools {
		if t.Name == wire.DeclareTool {
			return nil
		}
	}
	tool := wire.AppendQuote([]byte(`{"type":"function","name":"`+wire.DeclareTool+`","strict":false,"description":`), wire.DeclareDescription)
	tool = append(append(append(tool, `,"parameters":`...), wire.DeclareSchema(false)...), '}')
	tools, _ := wire.Find(r.Members, "tools")
	list := wire.ElementsOf(r.Body, tools.Value)
	if len(list) == 0 {
		top.Set("tools", append(append([]byte{'['}, tool...), ']'))
		return nil
	}
	end := list[len(list)-1].End
	return []wire.Edit{{At: wire.Span{Start: end, End: end}, With: append([]byte{','}, tool...)}}
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
