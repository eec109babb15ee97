package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// headerTap remembers what a gate said in the headers of the last answer.
type headerTap struct {
	mu   sync.Mutex
	last string
}

func (h *headerTap) client() *http.Client {
	return &http.Client{Transport: h}
}

// plain is a transport that asks no environment for a proxy.
var plain = &http.Transport{Proxy: nil, DisableCompression: true}

// told are the headers that a person wants to see of an answer.
var told = []string{"Decision", "Hold", "Rung", "Contradicted", "Unverifiable", "Unjudged", "Inconclusive"}

// RoundTrip implements http.RoundTripper.
func (h *headerTap) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", "gettier-scenario-agent/1")
	resp, err := plain.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	var said []string
	for _, n := range told {
		if v := resp.Header.Get("X-Gettier-" + n); v != "" {
			said = append(said, strings.ToLower(n)+"="+v)
		}
	}
	h.mu.Lock()
	h.last = strings.Join(said, " ")
	h.mu.Unlock()
	return resp, nil
}

func (h *headerTap) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.last
	h.last = ""
	return s
}

// messagesTalker speaks Anthropic's messages in plain HTTP.
type messagesTalker struct {
	url  string
	tap  *headerTap
	c    *http.Client
	body messagesBody
}

type messagesBody struct {
	Model     string        `json:"model"`
	MaxTokens int           `json:"max_tokens"`
	System    string        `json:"system"`
	Messages  []messageItem `json:"messages"`
	Tools     []any         `json:"tools,omitempty"`
	Stream    bool          `json:"stream,omitempty"`
}

type messageItem struct {
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

type contentBlock struct {
	Type  string          `json:"type"`
	Text  string          `json:"text,omitempty"`
	ID    string          `json:"id,omitempty"`
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
}

func newMessagesTalker(o AgentOptions) *messagesTalker {
	tap := &headerTap{}
	t := &messagesTalker{url: o.BaseURL + "/v1/messages", tap: tap, c: tap.client(), body: messagesBody{
		Model: o.Model, MaxTokens: 4096, System: system, Stream: o.Stream,
		Messages: []messageItem{{"user", []any{contentBlock{Type: "text", Text: o.Ticket}}}},
	}}
	if !o.NoTools {
		t.body.Tools = []any{map[string]any{"name": "shell", "description": "Run a command line in the current directory.",
			"input_schema": json.RawMessage(shellSchema)}}
	}
	return t
}

func (t *messagesTalker) turn(ctx context.Context) (turnReply, error) {
	blocks, err := t.ask(ctx)
	r := turnReply{headers: t.tap.take()}
	item := messageItem{Role: "assistant"}
	for _, b := range blocks {
		switch b.Type {
		case "text":
			if b.Text == "" {
				continue // the API refuses empty text blocks
			}
			r.text += b.Text
			item.Content = append(item.Content, contentBlock{Type: "text", Text: b.Text})
		case "tool_use":
			if len(b.Input) == 0 {
				b.Input = json.RawMessage("{}")
			}
			r.calls = append(r.calls, agentCall{b.ID, b.Name, string(b.Input)})
			item.Content = append(item.Content, contentBlock{Type: "tool_use", ID: b.ID, Name: b.Name, Input: b.Input})
		}
	}
	if err != nil {
		return r, fmt.Errorf("ask for a message: %w", err)
	}
	if len(item.Content) > 0 {
		t.body.Messages = append(t.body.Messages, item)
	}
	return r, nil
}

func (t *messagesTalker) result(c agentCall, out string) {
	block := map[string]any{"type": "tool_result", "tool_use_id": c.id, "content": out}
	last := &t.body.Messages[len(t.body.Messages)-1]
	if last.Role == "user" { // results of one answer stand in one message
		last.Content = append(last.Content, block)
		return
	}
	t.body.Messages = append(t.body.Messages, messageItem{"user", []any{block}})
}

func (t *messagesTalker) ask(ctx context.Context) ([]contentBlock, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(t.body); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, &buf)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("X-Api-Key", "scripted-needs-no-key")
	resp, err := t.c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		return nil, fmt.Errorf("status %d: %s", resp.StatusCode, bytes.TrimSpace(data))
	}
	if t.body.Stream {
		return readEvents(resp.Body)
	}
	var m struct {
		Content []contentBlock `json:"content"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(&m); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return m.Content, nil
}

// readEvents reads a message stream as strictly as a client library would.
func readEvents(r io.Reader) ([]contentBlock, error) {
	sc := bufio.NewScanner(io.LimitReader(r, 16<<20))
	sc.Buffer(nil, 1<<20)
	var blocks []contentBlock
	var inputs []strings.Builder
	started, stopped := false, false
	for sc.Scan() {
		data, ok := strings.CutPrefix(sc.Text(), "data:")
		if !ok {
			continue
		}
		var ev struct {
			Type  string       `json:"type"`
			Index int          `json:"index"`
			Block contentBlock `json:"content_block"`
			Delta struct {
				Type    string `json:"type"`
				Text    string `json:"text"`
				Partial string `json:"partial_json"`
			} `json:"delta"`
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal([]byte(data), &ev); err != nil {
			return blocks, fmt.Errorf("read event: %w", err)
		}
		switch ev.Type {
		case "message_start":
			started = true
		case "content_block_start":
			if !started || ev.Index != len(blocks) {
				return blocks, fmt.Errorf("block %d starts out of order", ev.Index)
			}
			ev.Block.Input = nil
			blocks, inputs = append(blocks, ev.Block), append(inputs, strings.Builder{})
		case "content_block_delta":
			if ev.Index < 0 || ev.Index >= len(blocks) {
				return blocks, fmt.Errorf("block %d has not started", ev.Index)
			}
			blocks[ev.Index].Text += ev.Delta.Text
			inputs[ev.Index].WriteString(ev.Delta.Partial)
		case "content_block_stop":
			if ev.Index < 0 || ev.Index >= len(blocks) {
				return blocks, fmt.Errorf("block %d has not started", ev.Index)
			}
			if in := inputs[ev.Index].String(); in != "" {
				blocks[ev.Index].Input = json.RawMessage(in)
			}
		case "message_stop":
			stopped = true
		case "error":
			return blocks, errors.New(ev.Error.Message)
		}
	}
	if err := sc.Err(); err != nil {
		return blocks, fmt.Errorf("read stream: %w", err)
	}
	if !stopped {
		return blocks, errors.New("the stream ended without message_stop")
	}
	return blocks, nil
}
