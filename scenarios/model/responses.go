package model

import (
	"encoding/json"
	"fmt"
	"slices"
)

// responses is OpenAI's responses API.
type responses struct{}

type responsesRequest struct {
	Model        string          `json:"model"`
	Stream       bool            `json:"stream"`
	Instructions string          `json:"instructions"`
	Input        json.RawMessage `json:"input"`
	Include      []string        `json:"include"`
	Tools        []struct {
		Type       string          `json:"type"`
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	Text       struct {
		Format *struct {
			Type string `json:"type"`
		} `json:"format"`
	} `json:"text"`
}

type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	Output    json.RawMessage `json:"output"`
}

func (responses) read(body []byte) (*view, error) {
	var q responsesRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, fmt.Errorf("read responses request: %w", err)
	}
	v := &view{model: q.Model, stream: q.Stream, raw: string(body), usage: true,
		schema: q.Text.Format != nil && q.Text.Format.Type != "text", reasons: slices.Contains(q.Include, "reasoning.encrypted_content")}
	if q.Instructions != "" {
		v.entries = append(v.entries, entry{role: "system", text: q.Instructions})
	}
	var plain string
	var items []responsesItem
	if json.Unmarshal(q.Input, &plain) == nil {
		items = []responsesItem{{Role: "user", Content: q.Input}}
	} else if err := json.Unmarshal(q.Input, &items); err != nil {
		return nil, fmt.Errorf("read responses input: %w", err)
	}
	if err := answered(items); err != nil {
		return nil, fmt.Errorf("read responses input: %w", err)
	}
	for _, it := range items {
		switch it.Type {
		case "", "message":
			v.entries = append(v.entries, entry{role: it.Role, text: flatText(it.Content)})
		case "function_call":
			v.entries = append(v.entries, entry{role: "assistant", calls: []call{{it.Name, it.Arguments}}})
		case "custom_tool_call":
			v.entries = append(v.entries, entry{role: "assistant", calls: []call{{it.Name, compact(it.Input)}}})
		case "function_call_output", "custom_tool_call_output":
			v.entries = append(v.entries, entry{role: "tool", text: flatText(it.Output), result: true})
		}
	}
	for _, t := range q.Tools {
		if t.Type == "function" {
			v.tools = append(v.tools, tool{t.Name, t.Parameters})
		}
	}
	var word string
	var named struct {
		Name string `json:"name"`
	}
	switch {
	case json.Unmarshal(q.ToolChoice, &word) == nil:
		if word == "required" {
			v.forced = "*"
		}
	case json.Unmarshal(q.ToolChoice, &named) == nil:
		v.forced = named.Name
	}
	return v, nil
}

// answered refuses what the real API refuses: a call without an output, an output
// without a call, reasoning without the item that followed it.
func answered(items []responsesItem) error {
	if len(items) == 0 {
		return fmt.Errorf("input is empty")
	}
	open := map[string]bool{}
	for i, it := range items {
		switch it.Type {
		case "function_call", "custom_tool_call":
			open[it.CallID] = true
		case "function_call_output", "custom_tool_call_output":
			if !open[it.CallID] {
				return fmt.Errorf("no tool call found for function call output with call_id %s", it.CallID)
			}
			delete(open, it.CallID)
		case "reasoning":
			if i+1 == len(items) || items[i+1].Role == "user" || items[i+1].Type == "function_call_output" {
				return fmt.Errorf("item %d of type reasoning was provided without its required following item", i)
			}
		}
	}
	for id := range open {
		return fmt.Errorf("no tool output found for function call %s", id)
	}
	return nil
}

func (a answer) responsesUsage() map[string]any {
	return map[string]any{"input_tokens": a.in, "input_tokens_details": map[string]any{"cached_tokens": a.cached},
		"output_tokens": a.out, "output_tokens_details": map[string]any{"reasoning_tokens": 0}, "total_tokens": a.in + a.out}
}

func (a answer) response(v *view, status string, output []any) map[string]any {
	r := map[string]any{"id": "resp_" + a.id, "object": "response", "created_at": a.created, "status": status, "background": false, "error": nil,
		"incomplete_details": nil, "instructions": nil, "max_output_tokens": nil, "model": v.model, "output": output, "parallel_tool_calls": true,
		"previous_response_id": nil, "store": false, "temperature": 1, "tool_choice": "auto", "tools": []any{}, "top_p": 1, "truncation": "disabled",
		"text": map[string]any{"format": map[string]any{"type": "text"}}, "usage": nil, "metadata": map[string]any{"scripted": a.name}}
	if status == "completed" {
		r["usage"] = a.responsesUsage()
	}
	return r
}

// items are the answer's output, and of each what it starts as. Where the client
// takes encrypted reasoning, each item has some before it.
func (a answer) items(v *view) (start, done []map[string]any) {
	add := func(s, d map[string]any) {
		if v.reasons {
			r := map[string]any{"type": "reasoning", "id": fmt.Sprintf("rs_%s_%d", a.id, len(done)), "summary": []any{}, "encrypted_content": "c2NyaXB0ZWQ="}
			start, done = append(start, r), append(done, r)
		}
		start, done = append(start, s), append(done, d)
	}
	if a.text != "" {
		message := func(status string, content ...any) map[string]any {
			return map[string]any{"type": "message", "id": "msg_" + a.id, "status": status, "role": "assistant", "content": append([]any{}, content...)}
		}
		add(message("in_progress"), message("completed", a.part(a.text)))
	}
	for i, c := range a.calls {
		item := func(status, args string) map[string]any {
			return map[string]any{"type": "function_call", "id": fmt.Sprintf("fc_%s_%d", a.id, i), "call_id": fmt.Sprintf("call_%s_%d", a.id, i),
				"name": c.name, "arguments": args, "status": status}
		}
		add(item("in_progress", ""), item("completed", c.args))
	}
	return start, done
}

func (a answer) part(text string) map[string]any {
	return map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

func (responses) whole(v *view, a answer) any {
	_, done := a.items(v)
	output := []any{}
	for _, it := range done {
		output = append(output, it)
	}
	return a.response(v, "completed", output)
}

func (responses) events(v *view, a answer) []string {
	var out []string
	send := func(kind string, o map[string]any) {
		o["type"], o["sequence_number"] = kind, len(out)
		out = append(out, "event: "+kind+"\ndata: "+compact(o)+"\n\n")
	}
	send("response.created", map[string]any{"response": a.response(v, "in_progress", []any{})})
	send("response.in_progress", map[string]any{"response": a.response(v, "in_progress", []any{})})
	start, done := a.items(v)
	output := []any{}
	for i, it := range done {
		send("response.output_item.added", map[string]any{"output_index": i, "item": start[i]})
		at := func(more map[string]any) map[string]any {
			more["item_id"], more["output_index"] = it["id"], i
			return more
		}
		switch it["type"] {
		case "message":
			send("response.content_part.added", at(map[string]any{"content_index": 0, "part": a.part("")}))
			for _, c := range chunks(a.text) {
				send("response.output_text.delta", at(map[string]any{"content_index": 0, "delta": c, "logprobs": []any{}}))
			}
			send("response.output_text.done", at(map[string]any{"content_index": 0, "text": a.text, "logprobs": []any{}}))
			send("response.content_part.done", at(map[string]any{"content_index": 0, "part": a.part(a.text)}))
		case "function_call":
			args := fmt.Sprint(it["arguments"])
			for _, c := range chunks(args) {
				send("response.function_call_arguments.delta", at(map[string]any{"delta": c}))
			}
			send("response.function_call_arguments.done", at(map[string]any{"arguments": args}))
		}
		send("response.output_item.done", map[string]any{"output_index": i, "item": it})
		output = append(output, it)
	}
	send("response.completed", map[string]any{"response": a.response(v, "completed", output)})
	return out
}

func (responses) fault(message string) any { return chat{}.fault(message) }
