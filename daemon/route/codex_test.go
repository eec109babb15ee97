package route

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	responsesapi "gettier.dev/gettierd/daemon/proxy/responses"
	"gettier.dev/gettierd/daemon/wire"
)

// codexRecordings are the recorded sessions of Codex, with every request's
// headers and body changed by edit.
func codexRecordings(t testing.TB, edit func(h http.Header, body []byte) []byte) []recording {
	t.Helper()
	var out []recording
	for _, rec := range recordings(t) {
		if !strings.HasPrefix(rec.name, "codex/") {
			continue
		}
		edited := recording{name: rec.name}
		for _, r := range rec.requests {
			if r.req != nil && edit != nil {
				r.header = r.header.Clone()
				r.body = edit(r.header, bytes.Clone(r.body))
				r.req = read(t, responsesapi.Adapter{}, string(r.body))
			}
			edited.requests = append(edited.requests, r)
		}
		out = append(out, edited)
	}
	return out
}

func rename(names ...string) func(http.Header, []byte) []byte {
	return func(h http.Header, body []byte) []byte {
		for _, n := range names {
			body = bytes.ReplaceAll(body, []byte(n), []byte("x_"+n[2:]))
			v := h.Get("X-Codex-Turn-Metadata")
			h.Set("X-Codex-Turn-Metadata", strings.ReplaceAll(v, n, "x_"+n[2:]))
		}
		return body
	}
}

// TestCodexKinds: what is known of a request may come in the body or in headers,
// and times may be missing as in older versions: the kinds stay as labelled.
func TestCodexKinds(t *testing.T) {
	noTimes := rename("turn_started_at_unix_ms", "internal_chat_message_metadata_passthrough")
	for name, tc := range map[string]struct {
		edit func(http.Header, []byte) []byte
		// without the body's word a side chat is a person's turn as any other
		want map[string]string
	}{
		"as recorded": {edit: nil},
		"body only": {edit: func(h http.Header, body []byte) []byte {
			for _, n := range []string{"X-Codex-Turn-Metadata", "Session-Id", "Thread-Id", "X-Openai-Subagent", "X-Codex-Parent-Thread-Id"} {
				h.Del(n)
			}
			return body
		}},
		"headers only": {
			edit: func(h http.Header, body []byte) []byte {
				return bytes.Replace(body, []byte(`"client_metadata"`), []byte(`"client_metadatum"`), 1)
			},
			want: map[string]string{"codex/tui/012.request": "new"},
		},
		"no times": {edit: noTimes},
		"no times, no ids": {edit: func(h http.Header, body []byte) []byte {
			return bytes.ReplaceAll(noTimes(h, body), []byte(`"id":"msg_`), []byte(`"x":"msg_`))
		}},
		"items name their turn, no times": {edit: rename("turn_started_at_unix_ms")},
		"times, no names":                 {edit: rename("internal_chat_message_metadata_passthrough")},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			for _, rec := range codexRecordings(t, tc.edit) {
				replay(rec, func(r recorded, rt Route) {
					n++
					want := r.kind
					if w := tc.want[rec.name+"/"+r.file]; w != "" {
						want = w
					}
					if string(rt.Kind) != want {
						t.Errorf("%s/%s: %s (%s), want %s: %s", rec.name, r.file, rt.Kind, rt.Why, want, r.why)
					}
					if rt.Client != Codex || rt.Session == "" || rt.Turn == "" || rt.RootTurn == "" {
						t.Errorf("%s/%s: %+v", rec.name, r.file, rt)
					}
				})
			}
			if n != 48 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestCodexWithoutMetadata: versions that say nothing of their turns are read by
// their texts alone.
func TestCodexWithoutMetadata(t *testing.T) {
	for _, rec := range codexRecordings(t, func(h http.Header, body []byte) []byte {
		h.Del("X-Codex-Turn-Metadata")
		return bytes.Replace(body, []byte(`"client_metadata"`), []byte(`"client_metadatum"`), 1)
	}) {
		replay(rec, func(r recorded, rt Route) {
			want := r.kind
			switch want {
			case "side:title", "side:side-chat": // nothing but metadata tells
				want = "new"
			}
			if string(rt.Kind) != want {
				t.Errorf("%s/%s: %s (%s), want %s: %s", rec.name, r.file, rt.Kind, rt.Why, want, r.why)
			}
		})
	}
}

// TestCodexThreads: a sub-agent shares its parent's session and works for its
// parent's turn, in a conversation of its own; a side chat is forked from the
// main one and shares its history.
func TestCodexThreads(t *testing.T) {
	agents, chats, titles := 0, 0, 0
	for _, rec := range codexRecordings(t, nil) {
		turns := map[string]string{} // conversation → its turn
		first := ""
		var anchors []string
		replay(rec, func(r recorded, rt Route) {
			id := rec.name + "/" + r.file
			if first == "" && rt.Kind == New {
				first = rt.Conversation
			}
			switch rt.Kind {
			case Subagent:
				agents++
				if rt.Conversation == rt.Parent || rt.Turn == rt.RootTurn {
					t.Errorf("%s: a sub-agent in its parent's place", id)
				}
				if first != "" && (rt.Parent != first || rt.RootTurn != turns[first]) {
					t.Errorf("%s: another parent or another turn than the main conversation's", id)
				}
			case SideChat:
				chats++
				if rt.Parent != first || rt.Conversation == first || rt.PersonText != "which language is this?" {
					t.Errorf("%s: %+v", id, rt)
				}
				if now := Anchors(r.req); len(anchors) == 0 || !slices.Equal(now[:len(anchors)], anchors) {
					t.Errorf("%s: the history that it was forked from has other anchors", id)
				}
			case SideTitle:
				titles++
				if rt.Conversation == first || rt.Parent != "" {
					t.Errorf("%s: %+v", id, rt)
				}
			default:
				if rt.Conversation != first || rt.Turn != rt.RootTurn || rt.Parent != "" {
					t.Errorf("%s: not in the main conversation: %+v", id, rt)
				}
				turns[rt.Conversation] = rt.Turn
				anchors = Anchors(r.req)
			}
		})
	}
	if agents != 4 || chats != 1 || titles != 2 {
		t.Errorf("%d agents, %d chats, %d titles", agents, chats, titles)
	}
}

// TestCodexResendsDiffer: the recorded resends are other bytes, so that equality
// as JSON is what finds them.
func TestCodexResendsDiffer(t *testing.T) {
	n := 0
	for _, rec := range codexRecordings(t, nil) {
		var before []byte
		replay(rec, func(r recorded, rt Route) {
			if rt.Kind == Resend {
				n++
				if bytes.Equal(before, r.body) || !BodyEqual(before, r.body) {
					t.Errorf("%s/%s: equal bytes %v, equal as JSON %v", rec.name, r.file, bytes.Equal(before, r.body), BodyEqual(before, r.body))
				}
			}
			before = r.body
		})
	}
	if n != 2 {
		t.Errorf("%d resends", n)
	}
}

// codexRequest is a request of a turn that began at 1000.
func codexRequest(t testing.TB, meta map[string]any, items string) (*wire.Request, Headers) {
	t.Helper()
	m := map[string]any{"thread_id": "t", "session_id": "s", "turn_id": "u", "root_turn_id": "u", "request_kind": "turn", "thread_source": "user", "turn_started_at_unix_ms": 1000}
	maps.Copy(m, meta)
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(string(text))
	if err != nil {
		t.Fatal(err)
	}
	r := read(t, responsesapi.Adapter{}, `{"model":"m","stream":true,"input":[`+items+`],"tools":[{"type":"function","name":"exec_command"}],"client_metadata":{"x-codex-turn-metadata":`+string(quoted)+`}}`)
	return r, headers("User-Agent", "codex_exec/0.171.0", "Thread-Id", "t", "Session-Id", "s")
}

func said(ms int, text string) string {
	quoted, _ := json.Marshal(text)
	return fmt.Sprintf(`{"type":"message","id":"msg_%08x-%04x-7000-8000-000000000000","role":"user","content":[{"type":"input_text","text":%s}]}`, ms>>16, ms&0xffff, quoted)
}

const (
	answered = `,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]},`
	ran      = `,{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"x"},{"type":"function_call","name":"exec_command","arguments":"{}","call_id":"c"},{"type":"function_call_output","call_id":"c","output":"out"},`
)

func TestCodexTurns(t *testing.T) {
	summary := tellCodexSummary + "tarted this.\nSUMMARY"
	for _, tc := range []struct {
		name         string
		meta         map[string]any
		items        string
		kind         Kind
		text, queued string
		ordinal      int
	}{
		{"first", nil, said(1100, "go"), New, "go", "", 1},
		{"second", nil, said(10, "go") + answered + said(1100, "on"), New, "on", "", 2},
		{"lap", nil, said(1100, "go") + ran + said(1101, "<environment_context>x</environment_context>"), Loop, "go", "", 1},
		{"queued behind an output", nil, said(1100, "go") + ran + said(1200, "and tests"), Loop, "go", "and tests", 1},
		{"queued behind a message", nil, said(1100, "go") + answered + said(1200, "and tests"), Loop, "go", "and tests", 1},
		{"the same words, no times: asked about rather than missed", map[string]any{"turn_started_at_unix_ms": 0}, said(1100, "go") + answered + said(1200, "and tests"), New, "and tests", "", 2},
		{"two lines at once", nil, said(1100, "go") + "," + said(1101, "and tests"), New, "go", "and tests", 1},
		{"queued before, answered since", nil, said(10, "go") + ran + said(20, "and tests") + answered + said(1100, "on"), New, "on", "", 2},
		{"a turn that nobody typed", nil, said(10, "go") + answered + `{"type":"message","role":"developer","content":"next step"}`, Loop, "go", "", 1},
		{"a notification wakes it", nil, said(10, "go") + answered + said(1100, "<subagent_notification>\nx\n</subagent_notification>"), Loop, "go", "", 1},
		{"a notification beside the prompt", nil, said(1100, "go") + "," + said(1101, "<subagent_notification>\nx\n</subagent_notification>"), New, "go", "", 1},
		{"a skill behind the prompt", nil, said(1100, "go") + "," + said(1101, "<skill>\n<name>x</name>\ntext\n</skill>"), New, "go", "", 1},
		{"an aborted turn", nil, said(10, "go") + ran + said(20, "<turn_aborted>\nx\n</turn_aborted>") + "," + said(1100, "again"), New, "again", "", 2},
		{"a failed turn", nil, said(10, "go") + ran + said(1100, "again"), New, "again", "", 2},
		{"compacted in the middle", nil, said(10, "a") + "," + said(1100, "go") + "," + said(1200, summary), Loop, "go", "", 2},
		{"compacted before", nil, said(10, "a") + "," + said(20, summary) + "," + said(1100, "go"), New, "go", "", 2},
		{"a person quotes the summary's start", nil, said(1100, tellCodexSummary+"aid so."), New, tellCodexSummary + "aid so.", "", 1},
		{"a picture", nil, `{"type":"message","role":"user","content":[{"type":"input_text","text":"<image name=[Image #1]>"},{"type":"input_image","image_url":"data:,"},{"type":"input_text","text":"</image>"}]}`, New, "", "", 1},
		{"an editor's context", nil, said(1100, "# Context from my IDE setup:\n\n## Active file: a.go\n## My request for Codex:\nnot this\n\n## My request for Codex:\nfix it\n"), New, "fix it", "", 1},
		{"project instructions", nil, said(1100, "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nNever.\n</INSTRUCTIONS>") + "," + said(1101, "go"), New, "go", "", 1},
		{"a shell line", nil, said(1000, "<user_shell_command>\n<command>\nls\n</command>\n</user_shell_command>") + "," + said(1100, "which?"), New, "which?", "", 1},
		{"a title needs its shape", map[string]any{"thread_source": "thread_title"}, said(1100, "go"), New, "go", "", 1},
		{"a compaction needs its shape", map[string]any{"request_kind": "compaction"}, said(1100, "go"), New, "go", "", 1},
		{"remote compaction", map[string]any{"request_kind": "compaction"}, said(1100, "go") + ran + `{"type":"compaction_trigger"}`, SideCompaction, "go", "", 1},
		{"after a remote compaction", nil, said(1100, "go") + `,{"type":"compaction","encrypted_content":"x"}`, Loop, "go", "", 1},
		{"our block alone behind an output", nil, said(1100, "go") + ran + `{"type":"message","role":"user","content":[{"type":"input_text","text":"<gettier-verification id=\"v1\">\nx\n</gettier-verification>"}]}`, Loop, "go", "", 1},
	} {
		r, h := codexRequest(t, tc.meta, tc.items)
		rt := Classify(testKey, r, h, "/v1/responses", nil)
		if rt.Kind != tc.kind || rt.PersonText != tc.text || strings.Join(rt.Queued, "|") != tc.queued || rt.Ordinal != tc.ordinal {
			t.Errorf("%s: %s (%s) text %q queued %q ordinal %d", tc.name, rt.Kind, rt.Why, rt.PersonText, rt.Queued, rt.Ordinal)
		}
		if rt.AnchorItem >= 0 {
			if role := r.Items[rt.AnchorItem].Role; role != "user" && role != "tool" {
				t.Errorf("%s: a block would stand after a %s item", tc.name, role)
			}
		}
		for _, u := range Transcript(r, rt) {
			if u.By == Person && strings.HasPrefix(u.Text, "<") {
				t.Errorf("%s: %q as a person's", tc.name, u.Text)
			}
		}
	}
}

// TestCodexForgedHeader: a header can be set by a repository's settings, so that
// it never makes a person's turn with tools a side chat.
func TestCodexForgedHeader(t *testing.T) {
	r, _ := codexRequest(t, nil, said(1100, "go"))
	rt := Classify(testKey, r, headers("User-Agent", "codex_exec/1", "X-Codex-Turn-Metadata", `{"thread_source":"tui_side_chat","forked_from_thread_id":"z","request_kind":"compaction","turn_id":"other"}`), "/v1/responses", nil)
	if rt.Kind != New {
		t.Errorf("%+v", rt)
	}
}

func TestRecordedResponses(t *testing.T) {
	for file, want := range map[string]Route{
		"openai-node":       {Kind: New, PersonText: "say hello", Ordinal: 1, AnchorItem: 0},
		"openai-go":         {Kind: New, PersonText: "hi", Ordinal: 1, AnchorItem: 0},
		"ai-sdk":            {Kind: New, PersonText: "say hello", Ordinal: 1, AnchorItem: 1},
		"ai-sdk-toolresult": {Kind: Loop, PersonText: "say hello", Ordinal: 1, AnchorItem: 4, Continues: true},
		"opencode-openai":   {Kind: New, Client: OpenCode, Session: "ses_example", PersonText: "say hello", Ordinal: 1, AnchorItem: 1},
	} {
		raw, err := os.ReadFile("testdata/recorded/" + file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var rec struct {
			Path    string
			Headers [][2]string
			Body    json.RawMessage
		}
		if err := json.Unmarshal(raw, &rec); err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		for _, kv := range rec.Headers {
			h.Add(kv[0], kv[1])
		}
		r := read(t, responsesapi.Adapter{}, string(rec.Body))
		rt := Classify(testKey, r, h.Get, rec.Path, nil)
		if rt.Kind != want.Kind || rt.Client != want.Client || rt.Session != want.Session || rt.PersonText != want.PersonText || rt.Ordinal != want.Ordinal || rt.AnchorItem != want.AnchorItem || rt.Continues != want.Continues || rt.Conversation == "" || rt.Interactive {
			t.Errorf("%s: %+v", file, rt)
		}
	}
}

// TestKeptHistories: where the upstream keeps the history, what it is called by
// tells the conversations of one program apart.
func TestKeptHistories(t *testing.T) {
	seen := map[string]string{}
	for _, member := range []string{`"conversation":"conv_1"`, `"conversation":{"id":"conv_2"}`, `"previous_response_id":"resp_1"`, `"previous_response_id":"resp_2"`, `"previous_response_id":null`} {
		r := read(t, responsesapi.Adapter{}, `{"model":"m","input":"go on",`+member+`}`)
		rt := Classify(testKey, r, headers(), "/v1/responses", nil)
		if f := seen[rt.Conversation]; f != "" || rt.Conversation == "" {
			t.Errorf("%s and %s are one conversation", member, f)
		}
		seen[rt.Conversation] = member
	}
}

// TestResponsesShapes: the same history in other shapes has the same anchors.
func TestResponsesShapes(t *testing.T) {
	a := responsesapi.Adapter{}
	want := Anchors(read(t, a, `{"model":"m","input":"hi"}`))
	for name, body := range map[string]string{
		"item":      `{"model":"m","input":[{"role":"user","content":"hi"}]}`,
		"part":      `{"model":"m","input":[{"type":"message","id":"msg_1","role":"user","content":[{"type":"input_text","text":"hi"}]}]}`,
		"our block": `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_text","text":"<gettier-verification id=\"f1\">\nx\n</gettier-verification>"}]}]}`,
	} {
		if got := Anchors(read(t, a, body)); !slices.Equal(got, want) {
			t.Errorf("%s: other anchors", name)
		}
	}
	// Reasoning and calls count with every byte: another signature is another history.
	one := Anchors(read(t, a, `{"model":"m","input":[`+said(1, "go")+strings.TrimSuffix(ran, ",")+`]}`))
	two := Anchors(read(t, a, `{"model":"m","input":[`+said(1, "go")+strings.TrimSuffix(strings.Replace(ran, `"x"`, `"y"`, 1), ",")+`]}`))
	if one[0] != two[0] || one[1] == two[1] || one[3] == two[3] {
		t.Error("reasoning does not count")
	}
}
