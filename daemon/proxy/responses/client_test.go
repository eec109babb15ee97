package responsesapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gettier.dev/gettierd/daemon/wire"
)

// sdk follows a stream as the official clients do, and holds it to what all of
// them need: the start first, numbers that rise, items opened once at a free
// index and closed, texts that add up, and an end that tells the same again.
type sdk struct {
	t      *testing.T
	number int
	id     string
	items  []sdkItem
	output []json.RawMessage
	usage  map[string]any
	ended  bool
}

type sdkItem struct {
	kind, id string
	text     string
	args     string
	done     json.RawMessage
}

func newSDK(t *testing.T) *sdk { return &sdk{t: t, number: -1} }

func (c *sdk) take(b []byte) {
	c.t.Helper()
	var sp wire.Splitter
	events, err := sp.Feed(b)
	if err != nil || sp.Rest() {
		c.t.Fatalf("not whole events (%v): %q", err, b)
	}
	for _, e := range events {
		if e.HasData && string(e.Data) != "[DONE]" {
			c.event(e)
		}
	}
}

type sdkEvent struct {
	Type            string
	Sequence_number *int
	Output_index    *int
	Content_index   int
	Item_id, Delta  string
	Text            *string
	Arguments       *string
	Item            json.RawMessage
	Response        struct {
		ID, Status string
		Output     []json.RawMessage
		Usage      map[string]any
	}
}

func (c *sdk) event(e wire.Event) {
	c.t.Helper()
	var m sdkEvent
	if err := json.Unmarshal(e.Data, &m); err != nil {
		c.t.Fatalf("event: %v: %s", err, e.Data)
	}
	if m.Type != e.Name || m.Sequence_number == nil || *m.Sequence_number <= c.number {
		c.t.Fatalf("named %q, number after %d: %s", e.Name, c.number, e.Data)
	}
	c.number = *m.Sequence_number
	if c.ended || (c.id == "") != (m.Type == "response.created") {
		c.t.Fatalf("out of its place: %s", e.Data)
	}
	var it *sdkItem
	if m.Output_index != nil && *m.Output_index < len(c.items) {
		it = &c.items[*m.Output_index]
	}
	if strings.Contains(m.Type, "delta") || strings.Contains(m.Type, "part") || strings.HasSuffix(m.Type, "_text.done") {
		if it == nil || it.done != nil || it.id != m.Item_id {
			c.t.Fatalf("no such item is open: %s", e.Data)
		}
	}
	switch m.Type {
	case "response.created", "response.in_progress": // SDKs go on from what it tells
		c.id = m.Response.ID
		if len(m.Response.Output) != len(c.items) {
			c.t.Fatalf("%d items told, %d had left: %s", len(m.Response.Output), len(c.items), e.Data)
		}
	case "response.output_item.added":
		if m.Output_index == nil || *m.Output_index != len(c.items) {
			c.t.Fatalf("an item at another index than %d: %s", len(c.items), e.Data)
		}
		c.items = append(c.items, readItemOf(c.t, m.Item))
	case "response.output_item.done":
		if it == nil || it.done != nil {
			c.t.Fatalf("the end of no open item: %s", e.Data)
		}
		whole := readItemOf(c.t, m.Item)
		if whole.kind != it.kind || whole.id != it.id || it.kind == "message" && whole.text != it.text || it.kind == "function_call" && whole.args != it.args {
			c.t.Fatalf("an item that does not add up: %+v, %s", *it, m.Item)
		}
		it.done = m.Item
		it.text = whole.text
	case "response.output_text.delta":
		it.text += m.Delta
	case "response.output_text.done":
		if *m.Text != it.text {
			c.t.Fatalf("a text that does not add up: %q, %s", it.text, e.Data)
		}
	case "response.function_call_arguments.delta":
		it.args += m.Delta
	case "response.completed":
		c.ended = true
		c.output, c.usage = m.Response.Output, m.Response.Usage
		if m.Response.Status != "completed" || !strings.HasPrefix(m.Response.ID, "resp_") {
			c.t.Fatalf("a bad end: %s", e.Data)
		}
	}
}

func readItemOf(t *testing.T, raw json.RawMessage) sdkItem {
	t.Helper()
	var m struct {
		Type, ID, Name, Arguments string
		Content, Summary          []struct{ Text string }
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	it := sdkItem{kind: m.Type, id: m.ID, args: m.Arguments}
	for _, p := range append(m.Content, m.Summary...) {
		it.text += p.Text
	}
	if it.kind == "function_call" {
		it.text = m.Name
	}
	return it
}

func (c *sdk) says() string {
	c.t.Helper()
	if !c.ended || len(c.output) != len(c.items) {
		c.t.Fatalf("ended=%v, %d items, %d in the end", c.ended, len(c.items), len(c.output))
	}
	var out []string
	for i, it := range c.items {
		if it.done == nil || string(it.done) != string(c.output[i]) {
			c.t.Fatalf("item %d: %s\nat the end %s", i, it.done, c.output[i])
		}
		switch it.kind {
		case "message":
			out = append(out, "text:"+it.text)
		case "reasoning":
			out = append(out, "think:"+it.text)
		case "function_call":
			out = append(out, "call:"+it.text+it.args)
		default:
			out = append(out, it.kind)
		}
	}
	return strings.Join(append(out, fmt.Sprintf("in=%v out=%v total=%v", c.usage["input_tokens"], c.usage["output_tokens"], c.usage["total_tokens"])), " | ")
}
