package model

import (
	"encoding/json"
	"fmt"
	"strings"
)

// chat is OpenAI's chat completions.
type chat struct{}

type chatRequest struct {
	Model         string        `json:"model"`
	Stream        bool          `json:"stream"`
	StreamOptions *chatUsageOpt `json:"stream_options"`
	Messages      []chatMessage `json:"messages"`
	Tools         []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	ToolChoice     json.RawMessage `json:"tool_choice"`
	ResponseFormat *struct {
		Type string `json:"type"`
	} `json:"response_format"`
}

type chatUsageOpt struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []chatToolCall  `json:"tool_calls"`
}

type chatToolCall struct {
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (chat) read(body []byte) (*view, error) {
	var q chatRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, fmt.Errorf("read chat request: %w", err)
	}
	if len(q.Messages) == 0 {
		return nil, fmt.Errorf("read chat request: messages is empty")
	}
	v := &view{model: q.Model, stream: q.Stream, raw: string(body), schema: q.ResponseFormat != nil && q.ResponseFormat.Type != "text",
		usage: q.StreamOptions != nil && q.StreamOptions.IncludeUsage}
	for _, m := range q.Messages {
		e := entry{role: m.Role, text: flatText(m.Content), result: m.Role == "tool"}
		for _, c := range m.ToolCalls {
			e.calls = append(e.calls, call{c.Function.Name, c.Function.Arguments})
		}
		v.entries = append(v.entries, e)
	}
	for _, t := range q.Tools {
		v.tools = append(v.tools, tool{t.Function.Name, t.Function.Parameters})
	}
	var word string
	var named struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	switch {
	case json.Unmarshal(q.ToolChoice, &word) == nil:
		if word == "required" {
			v.forced = "*"
		}
	case json.Unmarshal(q.ToolChoice, &named) == nil:
		v.forced = named.Function.Name
	}
	return v, nil
}

// flatText reads content that is a string or an array of parts.
func flatText(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var texts []string
	for _, p := range parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func (a answer) chatStop() string {
	if len(a.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func (a answer) chatUsage() map[string]any {
	return map[string]any{"prompt_tokens": a.in, "completion_tokens": a.out, "total_tokens": a.in + a.out,
		"prompt_tokens_details": map[string]any{"cached_tokens": a.cached}}
}

func (a answer) chatCall(i int, c call) map[string]any {
	return map[string]any{"id": fmt.Sprintf("call_%s_%d", a.id, i), "type": "function",
		"function": map[string]any{"name": c.name, "arguments": c.args}}
}

func (chat) whole(v *view, a answer) any {
	msg := map[string]any{"role": "assistant", "content": a.text, "refusal": nil}
	if len(a.calls) > 0 {
		var calls []any
		for i, c := range a.calls {
			calls = append(calls, a.chatCall(i, c))
		}
		msg["tool_calls"] = calls
		if a.text == "" {
			msg["content"] = nil
		}
	}
	return map[string]any{"id": "chatcmpl-" + a.id, "object": "chat.completion", "created": a.created, "model": v.model,
		"system_fingerprint": a.name, "usage": a.chatUsage(),
		"choices": []any{map[string]any{"index": 0, "message": msg, "logprobs": nil, "finish_reason": a.chatStop()}}}
}

func (chat) events(v *view, a answer) []string {
	var out []string
	send := func(choices []any, more map[string]any) {
		o := map[string]any{"id": "chatcmpl-" + a.id, "object": "chat.completion.chunk", "created": a.created, "model": v.model,
			"system_fingerprint": a.name, "choices": choices}
		for k, x := range more {
			o[k] = x
		}
		out = append(out, "data: "+compact(o)+"\n\n")
	}
	delta := func(d map[string]any, finish any) {
		send([]any{map[string]any{"index": 0, "delta": d, "logprobs": nil, "finish_reason": finish}}, nil)
	}
	delta(map[string]any{"role": "assistant", "content": ""}, nil)
	for _, c := range chunks(a.text) {
		delta(map[string]any{"content": c}, nil)
	}
	for i, c := range a.calls {
		first := a.chatCall(i, call{c.name, ""})
		first["index"] = i
		delta(map[string]any{"tool_calls": []any{first}}, nil)
		for _, piece := range chunks(c.args) {
			delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": piece}}}}, nil)
		}
	}
	delta(map[string]any{}, a.chatStop())
	if v.usage {
		send([]any{}, map[string]any{"usage": a.chatUsage()})
	}
	return append(out, "data: [DONE]\n\n")
}

func (chat) fault(message string) any {
	return map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error", "param": nil, "code": nil}}
}

// compact encodes without HTML escapes; the values are ours.
func compact(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "{}"
	}
	return strings.TrimSuffix(b.String(), "\n")
}
