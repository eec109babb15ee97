package anthropicapi

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

const (
	// defaultTokens caps a declaration where the caller names no cap.
	defaultTokens = 600
	// beyondBudget is what a declaration may take on top of a thinking budget,
	// which the API wants to be smaller than max_tokens.
	beyondBudget = 1024
)

// Declare derives the body of a declare pass. Rung 0 changes nothing that the
// provider's cache key covers: tools, tool_choice, thinking and system stay.
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
	top.Drop("stop_sequences", "output_format")
	thinks := r.Thinking && o.Rung != 1
	top.Set("max_tokens", strconv.AppendInt(nil, int64(maxTokens(r, o.MaxTokens, thinks)), 10))
	outputConfig(r, top, o.Rung)
	switch o.Rung {
	case 1:
		edits = append(edits, offerTool(r, top)...)
		top.Set("tool_choice", []byte(`{"type":"tool","name":"`+wire.DeclareTool+`","disable_parallel_tool_use":true}`))
		if r.Thinking {
			top.Set("thinking", []byte(`{"type":"disabled"}`))
			keepNoThinking(r, top)
			edits = append(edits, cutThinking(r)...)
		}
	case 2, 3:
		if len(r.Tools) > 0 {
			top.Set("tool_choice", []byte(`{"type":"none"}`))
		}
	}
	return wire.Apply(r.Body, append(edits, top.Edits()...)), nil
}

// maxTokens is the output cap: what was asked for, room beyond a thinking budget,
// and then never more than the client's own cap, which the model surely takes.
func maxTokens(r *wire.Request, want int, thinks bool) int {
	if want <= 0 {
		want = defaultTokens
	}
	if !thinks {
		return want
	}
	raw := r.Raw("thinking")
	if b, ok := wire.Find(wire.MembersOf(raw, whole(raw)), "budget_tokens"); ok {
		if n, err := wire.Int(raw[b.Value.Start:b.Value.End]); err == nil && n < 1<<30 {
			want = max(want, int(n)+beyondBudget)
		}
	}
	if r.MaxTokens > 0 {
		want = min(want, r.MaxTokens)
	}
	return want
}

// outputConfig sets the schema of rung 2, takes a client's own schema out, which
// no declaration could fit, and lowers an effort that the client has set.
func outputConfig(r *wire.Request, top *wire.Object, rung wire.Rung) {
	raw := r.Raw("output_config")
	if len(raw) == 0 || raw[0] != '{' {
		raw = []byte(`{}`)
	}
	c := wire.ObjectIn(raw)
	if rung == 2 {
		format := append([]byte(`{"type":"json_schema","schema":`), wire.DeclareSchema(true)...)
		c.Set("format", append(format, '}'))
	} else {
		c.Drop("format")
	}
	if rung > 0 && c.Has("effort") {
		c.Set("effort", []byte(`"low"`))
	}
	if c.Len() == 0 {
		top.Drop("output_config")
	} else {
		top.Set("output_config", c.Edited(raw))
	}
}

func offerTool(r *wire.Request, top *wire.Object) []wire.Edit {
	if slices.ContainsFunc(r.Tools, func(t wire.Tool) bool { return t.Name == wire.DeclareTool }) {
		return nil
	}
	tool := wire.AppendQuote([]byte(`{"name":"`+wire.DeclareTool+`","description":`), wire.DeclareDescription)
	tool = append(append(append(tool, `,"input_schema":`...), wire.DeclareSchema(false)...), '}')
	if len(r.Tools) == 0 {
		top.Set("tools", append(append([]byte{'['}, tool...), ']'))
		return nil
	}
	at := r.Tools[len(r.Tools)-1].Span.End
	return []wire.Edit{{At: wire.Span{Start: at, End: at}, With: append([]byte{','}, tool...)}}
}

// keepNoThinking drops context edits about thinking, which the API refuses where
// thinking is off.
func keepNoThinking(r *wire.Request, top *wire.Object) {
	raw := r.Raw("context_management")
	c := wire.ObjectIn(raw)
	edits, ok := wire.Find(wire.MembersOf(raw, whole(raw)), "edits")
	if !ok {
		return
	}
	list := wire.ElementsOf(raw, edits.Value)
	dropped := make([]bool, len(list))
	kept := 0
	for i, e := range list {
		t, _ := wire.Find(wire.MembersOf(raw, e), "type")
		dropped[i] = strings.HasPrefix(string(raw[t.Value.Start:t.Value.End]), `"clear_thinking`)
		if !dropped[i] {
			kept++
		}
	}
	switch {
	case kept == len(list):
	case kept == 0:
		c.Drop("edits")
		if c.Len() == 0 {
			top.Drop("context_management")
		} else {
			top.Set("context_management", c.Edited(raw))
		}
	default:
		top.Set("context_management", wire.Apply(raw, wire.Cut(list, func(i int) bool { return dropped[i] })))
	}
}

// cutThinking takes thinking blocks out of assistant entries, and entries that
// hold nothing else.
func cutThinking(r *wire.Request) []wire.Edit {
	var edits []wire.Edit
	items := make([]wire.Span, len(r.Items))
	gone := make([]bool, len(r.Items))
	for i, it := range r.Items {
		items[i] = it.Span
		parts := make([]wire.Span, len(it.Parts))
		n := 0
		for j, p := range it.Parts {
			parts[j] = p.Span
			if p.Kind == wire.Thinking {
				n++
			}
		}
		if n > 0 && n == len(parts) {
			gone[i] = true
		} else if n > 0 {
			edits = append(edits, wire.Cut(parts, func(j int) bool { return it.Parts[j].Kind == wire.Thinking })...)
		}
	}
	return append(edits, wire.Cut(items, func(i int) bool { return gone[i] })...)
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
	if r.Stream == stream {
		return r.Body, nil
	}
	top := r.Top()
	top.Set("stream", strconv.AppendBool(nil, stream))
	return top.Edited(r.Body), nil
}
