package model

import (
	"encoding/json"
	"fmt"
)

// messages is Anthropic's messages API.
type messages struct{}

type messagesRequest struct {
	Model     string          `json:"model"`
	Stream    bool            `json:"stream"`
	MaxTokens int             `json:"max_tokens"`
	System    json.RawMessage `json:"system"`
	Messages  []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	ToolChoice *struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tool_choice"`
}

type messagesBlock struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	Content json.RawMessage `json:"content"`
}

func (messages) read(body []byte) (*view, error) {
	var q messagesRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, fmt.Errorf("read messages request: %w", err)
	}
	if len(q.Messages) == 0 {
		return nil, fmt.Errorf("read messages request: messages is empty")
	}
	if q.MaxTokens <= 0 {
		return nil, fmt.Errorf("read messages request: max_tokens is required")
	}
	v := &view{model: q.Model, stream: q.Stream, raw: string(body), usage: true}
	if s := flatText(q.System); s != "" {
		v.entries = append(v.entries, entry{role: "system", text: s})
	}
	for _, m := range q.Messages {
		var plain string
		if json.Unmarshal(m.Content, &plain) == nil {
			v.entries = append(v.entries, entry{role: m.Role, text: plain})
			continue
		}
		var bs []messagesBlock
		if err := json.Unmarshal(m.Content, &bs); err != nil {
			return nil, fmt.Errorf("read messages content: %w", err)
		}
		for _, b := range bs {
			switch b.Type {
			case "text":
				v.entries = append(v.entries, entry{role: m.Role, text: b.Text})
			case "tool_use":
				v.entries = append(v.entries, entry{role: m.Role, calls: []call{{b.Name, string(b.Input)}}})
			case "tool_result":
				v.entries = append(v.entries, entry{role: m.Role, text: flatText(b.Content), result: true})
			}
		}
	}
	for _, t := range q.Tools {
		v.tools = append(v.tools, tool{t.Name, t.InputSchema})
	}
	if q.ToolChoice != nil {
		switch q.ToolChoice.Type {
		case "any":
			v.forced = "*"
		case "tool":
			v.forced = q.ToolChoice.Name
		}
	}
	return v, nil
}

func (a answer) messagesStop() string {
	if len(a.calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

func (a answer) messagesUsage(out int) map[string]any {
	return map[string]any{"input_tokens": a.in - a.cached, "cache_creation_input_tokens": 0, "cache_read_input_tokens": a.cached,
		"output_tokens": out}
}

func (a answer) callID(i int) string { return fmt.Sprintf("toolu_%s_%d", a.id, i) }

func (messages) whole(v *view, a answer) any {
	content := []any{}
	if a.text != "" {
		content = append(content, map[string]any{"type": "text", "text": a.text})
	}
	for i, c := range a.calls {
		content = append(content, map[string]any{"type": "tool_use", "id": a.callID(i), "name": c.name, "input": json.RawMessage(c.args)})
	}
	return map[string]any{"id": "msg_" + a.id, "type": "message", "role": "assistant", "model": v.model, "content": content,
		"stop_reason": a.messagesStop(), "stop_sequence": nil, "usage": a.messagesUsage(a.out)}
}

func (messages) events(v *view, a answer) []string {
	var out []string
	send := func(kind string, o map[string]any) {
		o["type"] = kind
		out = append(out, "event: "+kind+"\ndata: "+compact(o)+"\n\n")
	}
	send("message_start", map[string]any{"message": map[string]any{"id": "msg_" + a.id, "type": "message", "role": "assistant",
		"model": v.model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": a.messagesUsage(1)}})
	send("ping", map[string]any{})
	index := 0
	block := func(start map[string]any, deltas []map[string]any) {
		send("content_block_start", map[string]any{"index": index, "content_block": start})
		for _, d := range deltas {
			send("content_block_delta", map[string]any{"index": index, "delta": d})
		}
		send("content_block_stop", map[string]any{"index": index})
		index++
	}
	if a.text != "" {
		var ds []map[string]any
		for _, c := range chunks(a.text) {
			ds = append(ds, map[string]any{"type": "text_delta", "text": c})
		}
		block(map[string]any{"type": "text", "text": ""}, ds)
	}
	for i, c := range a.calls {
		ds := []map[string]any{{"type": "input_json_delta", "partial_json": ""}}
		for _, piece := range chunks(c.args) {
			ds = append(ds, map[string]any{"type": "input_json_delta", "partial_json": piece})
		}
		block(map[string]any{"type": "tool_use", "id": a.callID(i), "name": c.name, "input": map[string]any{}}, ds)
	}
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": a.messagesStop(), "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": a.out}})
	send("message_stop", map[string]any{})
	return out
}

func (messages) fault(message string) any {
	return map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": message}}
}
