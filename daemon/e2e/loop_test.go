package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
)

// loopLaps is how many requests a looping agent makes after a catch.
const loopLaps = 10

const (
	wrongCommand = `sed -i 's/1mb/25mb/' app.json`
	task         = "Please raise the upload limit to 25 MB in app.json."
)

func shellArgs(command string) string { return `{"command":` + quoted(command) + `}` }

func toolName(tg tongue) string {
	if tg.name == "chat" {
		return "shell"
	}
	return "Bash"
}

// results counts the tool results of a request.
func results(body string) int {
	return strings.Count(body, `"role":"tool"`) + strings.Count(body, `"type":"tool_result"`)
}

// worker is a provider for an agent's loop: it reads for some laps, then wants
// to act on its false claim; once it is told better it reads on until the end.
func worker(readFirst int) func(http.ResponseWriter, *http.Request, *exchange) {
	return func(w http.ResponseWriter, _ *http.Request, x *exchange) {
		tg := tongueOf(x.target)
		n := results(x.body)
		id := fmt.Sprintf("call_%d", n)
		switch {
		case x.declares():
			declare(w, x, falseClaim)
		case x.grounded() && n >= readFirst+loopLaps-1:
			write(w, x.stream, tg.text(x.stream, "Correction: 1m it is. Done."))
		case x.grounded():
			write(w, x.stream, tg.call(x.stream, "Correction: the edge takes 1m.", id+"b", toolName(tg), shellArgs(fmt.Sprintf("cat edge.conf # %d", n))))
		case n < readFirst:
			write(w, x.stream, tg.call(x.stream, "", id, toolName(tg), shellArgs("cat app.json")))
		default:
			write(w, x.stream, tg.call(x.stream, "Raising it.", id, toolName(tg), shellArgs(wrongCommand)))
		}
	}
}

// callOf takes the one call out of an answer: its id and its command, "" when
// the answer has none.
func callOf(t testing.TB, tg tongue, stream bool, answer string) (id, command string) {
	t.Helper()
	args := ""
	if tg.name == "chat" {
		var v struct {
			Choices []struct {
				Message, Delta struct {
					ToolCalls []struct {
						ID       string
						Function struct{ Arguments string }
					} `json:"tool_calls"`
				}
			}
		}
		data := []string{answer}
		if stream {
			data = sseData(answer)
		}
		for _, d := range data {
			if d == "[DONE]" {
				continue
			}
			v.Choices = nil
			if err := json.Unmarshal([]byte(d), &v); err != nil {
				t.Fatalf("%q: %v", d, err)
			}
			for _, c := range v.Choices {
				for _, tc := range slices.Concat(c.Message.ToolCalls, c.Delta.ToolCalls) {
					if tc.ID != "" && id != "" {
						t.Errorf("a second call: %s", answer)
					}
					id += tc.ID
					args += tc.Function.Arguments
				}
			}
		}
	} else {
		type block struct {
			Type, ID string
			Input    json.RawMessage
		}
		var v struct {
			Content      []block
			ContentBlock block `json:"content_block"`
			Delta        struct {
				PartialJSON string `json:"partial_json"`
			}
		}
		data := []string{answer}
		if stream {
			data = sseData(answer)
		}
		for _, d := range data {
			v.Content, v.ContentBlock, v.Delta.PartialJSON = nil, block{}, ""
			if err := json.Unmarshal([]byte(d), &v); err != nil {
				t.Fatalf("%q: %v", d, err)
			}
			for _, b := range append(v.Content, v.ContentBlock) {
				if b.Type != "tool_use" {
					continue
				}
				if id != "" {
					t.Errorf("a second call: %s", answer)
				}
				id = b.ID
				if !stream {
					args = string(b.Input)
				}
			}
			args += v.Delta.PartialJSON
		}
	}
	if id == "" {
		return "", ""
	}
	var a struct{ Command string }
	if err := json.Unmarshal([]byte(args), &a); err != nil {
		t.Fatalf("arguments %q: %v", args, err)
	}
	return id, a.Command
}

// TestE2EToolLoop: after a catch each lap of an agent's loop carries the same
// grounding bytes at the same place, and each request is the one before it plus
// what the client added.
func TestE2EToolLoop(t *testing.T) {
	t.Parallel()
	type variant struct {
		tongue    tongue
		stream    bool
		readFirst int // laps before the catch: 0 = at the prompt's own answer
		edit      func(items []string) []string
		reshaped  bool
	}
	var all []variant
	for _, tg := range tongues {
		for _, stream := range []bool{true, false} {
			for _, first := range []int{0, 3} {
				all = append(all, variant{tongue: tg, stream: stream, readFirst: first})
			}
		}
	}
	all = append(all,
		// Claude Code: the newest entry is an array with a cache mark, an old prompt a plain string.
		variant{tongue: messagesTongue, stream: true, readFirst: 0, edit: claudeShapes, reshaped: true},
		variant{tongue: messagesTongue, stream: true, readFirst: 2, edit: claudeShapes, reshaped: true})
	for _, v := range all {
		name := fmt.Sprintf("%s/stream=%t/after=%d/reshaped=%t", v.tongue.name, v.stream, v.readFirst, v.reshaped)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newRecorder(t, worker(v.readFirst))
			h := newHouse(t, plan{upstream: up.URL})
			a := h.agent(h.project)
			tg := v.tongue
			items := []string{tg.user(task)}
			var turn string
			var sent []string
			requests := 0
			for ; ; requests++ {
				if requests > v.readFirst+loopLaps+2 {
					t.Fatal("the loop does not end")
				}
				out := items
				if v.edit != nil {
					out = v.edit(items)
				}
				body := tg.body(v.stream, true, out...)
				sent = append(sent, body)
				r := a.post(t, tg.path, body)
				if r.status != 200 || r.err != nil {
					t.Fatalf("lap %d: %d %v %s", requests, r.status, r.err, r.body)
				}
				if strings.Contains(r.body, "sed -i") || strings.Contains(r.body, "25mb") {
					t.Fatalf("lap %d: the wrong command left: %s", requests, r.body)
				}
				if v.stream {
					wholeStream(t, tg, r.body)
				}
				if turn == "" {
					turn = r.turn()
				}
				if r.turn() != turn {
					t.Errorf("lap %d belongs to turn %s, not %s", requests, r.turn(), turn)
				}
				want := lemma.DecPassThrough
				if requests > v.readFirst || (requests == v.readFirst && !v.stream) {
					want = lemma.DecCaught
				}
				// A stream's headers leave before what is decided at its end.
				if got := r.decision(); got != string(want) && !(v.stream && requests <= v.readFirst && (got == "" || got == string(lemma.DecPassThrough))) {
					t.Errorf("lap %d: decision %q, want %q", requests, got, want)
				}
				id, command := callOf(t, tg, v.stream, r.body)
				if id == "" {
					break
				}
				if requests >= v.readFirst && !strings.HasPrefix(command, "cat edge.conf") {
					t.Errorf("lap %d runs %q", requests, command)
				}
				items = append(items, tg.called(id, toolName(tg), shellArgs(command)), tg.result(id, "limit = …\n<ok> & \"fine\"\n"))
			}
			if want := v.readFirst + loopLaps - 1; requests != want {
				t.Errorf("the loop ended after %d laps, want %d", requests, want)
			}
			if n := up.declares(); n != 1 {
				t.Errorf("%d declare passes", n)
			}
			var grounded []*exchange
			for _, x := range up.answers() {
				if x.grounded() {
					grounded = append(grounded, x)
				}
			}
			if len(grounded) != loopLaps {
				t.Fatalf("%d grounded requests, want %d", len(grounded), loopLaps)
			}
			block := blockIn(t, grounded[0].body)
			for i, x := range grounded {
				if got := blockIn(t, x.body); got != block {
					t.Errorf("request %d carries other bytes:\n%q\n%q", i, got, block)
				}
				onlyAdded(t, sent[v.readFirst+i], x.body)
				if i > 0 {
					suffixOf(t, grounded[i-1].body, x.body, v.reshaped)
				}
			}
			d := h.turn(turn)
			if d.Decision != lemma.DecCaught || d.Counts.Contradicted != 1 || d.Error != "" {
				t.Errorf("turn: %+v", d.Turn)
			}
			withheld, allowed := 0, 0
			for _, b := range find[lemma.ActionDecided](t, d.Entries) {
				switch b.State {
				case "WITHHELD":
					withheld++
				case "ALLOW":
					allowed++
				}
			}
			if withheld != 1 || allowed != v.readFirst+loopLaps-1 {
				t.Errorf("%d calls withheld, %d allowed", withheld, allowed)
			}
			h.verified()
		})
	}
}

// blockIn is the one block of ours in a body, with the JSON string around it.
func blockIn(t testing.TB, body string) string {
	t.Helper()
	if n := strings.Count(body, blockOpen); n != 1 {
		t.Fatalf("%d blocks in %s", n, body)
	}
	from := strings.Index(body, blockOpen)
	to := strings.Index(body, blockClose)
	if to < from {
		t.Fatalf("a block without an end in %s", body)
	}
	return body[from : to+len(blockClose)]
}

var cacheMark = regexp.MustCompile(`,"cache_control":\{[^}]*\}`)

// suffixOf holds that next is prev with elements added at the end of messages.
func suffixOf(t testing.TB, prev, next string, reshaped bool) {
	t.Helper()
	a, b := apart(t, prev), apart(t, next)
	if a.before != b.before || a.after != b.after {
		t.Error("bytes outside the messages differ from the request before")
	}
	if len(b.items) <= len(a.items) {
		t.Errorf("%d elements after %d", len(b.items), len(a.items))
		return
	}
	for i := range a.items {
		x, y := cacheMark.ReplaceAllString(a.items[i], ""), cacheMark.ReplaceAllString(b.items[i], "")
		if x != y && !(reshaped && plainShape(x) == plainShape(y)) {
			t.Errorf("element %d differs from the request before:\n%s\n%s", i, x, y)
		}
	}
}

var oneText = regexp.MustCompile(`"content":\[\{"type":"text","text":("(?:[^"\\]|\\.)*")`)

// plainShape spells a content array of one text as the plain string it equals,
// without the spaces that JSON ignores.
func plainShape(item string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(item)); err != nil {
		return err.Error()
	}
	return oneText.ReplaceAllString(b.String(), `"content":[{$1`)
}

// claudeShapes spells a history as Claude Code does: the newest user entry as an
// array with a cache mark, older prompts as plain strings.
func claudeShapes(items []string) []string {
	out := slices.Clone(items)
	for i, it := range out {
		if !strings.HasPrefix(it, `{"role":"user"`) {
			continue
		}
		if i == len(out)-1 {
			out[i] = strings.TrimSuffix(it, "}]}") + `,"cache_control":{"type":"ephemeral"}}]}`
			continue
		}
		if m := oneText.FindStringSubmatch(it); m != nil {
			out[i] = `{"role":"user","content":` + m[1] + `}`
		}
	}
	return out
}

// wholeStream holds that a stream is what clients accept: one start, one end,
// blocks opened and closed in order.
func wholeStream(t testing.TB, tg tongue, stream string) {
	t.Helper()
	data := sseData(stream)
	if len(data) == 0 {
		t.Fatalf("no event in %q", stream)
	}
	if tg.name == "chat" {
		finished := 0
		for i, d := range data {
			if d == "[DONE]" {
				if i != len(data)-1 {
					t.Errorf("[DONE] in the middle: %s", stream)
				}
				continue
			}
			var v struct {
				Choices []struct {
					Delta struct {
						Role      string
						ToolCalls []struct{ Index *int } `json:"tool_calls"`
					}
					FinishReason *string `json:"finish_reason"`
				}
			}
			if err := json.Unmarshal([]byte(d), &v); err != nil {
				t.Fatalf("%q: %v", d, err)
			}
			for _, c := range v.Choices {
				if (c.Delta.Role != "") != (i == 0) {
					t.Errorf("the role stands in chunk %d: %s", i, stream)
				}
				if finished > 0 {
					t.Errorf("a delta after the finish: %s", stream)
				}
				if c.FinishReason != nil {
					finished++
				}
				for _, tc := range c.Delta.ToolCalls {
					if tc.Index == nil || *tc.Index != 0 {
						t.Errorf("the call's index: %s", d)
					}
				}
			}
		}
		if finished != 1 || data[len(data)-1] != "[DONE]" {
			t.Errorf("%d finishes, ends with %q", finished, data[len(data)-1])
		}
		return
	}
	open, next, stopped, ended := -1, 0, false, false
	for i, d := range data {
		var v struct {
			Type  string
			Index int
		}
		if err := json.Unmarshal([]byte(d), &v); err != nil {
			t.Fatalf("%q: %v", d, err)
		}
		bad := ended
		switch v.Type {
		case "message_start":
			bad = bad || i != 0
		case "content_block_start":
			bad = bad || open >= 0 || v.Index != next || stopped
			open, next = v.Index, v.Index+1
		case "content_block_delta":
			bad = bad || v.Index != open
		case "content_block_stop":
			bad = bad || v.Index != open
			open = -1
		case "message_delta":
			bad = bad || open >= 0 || stopped
			stopped = true
		case "message_stop":
			bad = bad || !stopped
			ended = true
		case "ping":
		default:
			bad = true
		}
		if bad {
			t.Fatalf("event %d (%s) is out of place in:\n%s", i, d, stream)
		}
	}
	if !ended {
		t.Errorf("no message_stop in:\n%s", stream)
	}
}
