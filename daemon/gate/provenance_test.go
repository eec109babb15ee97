package gate

import (
	"encoding/json"
	"strings"
	"testing"

	anthropicapi "gettier.dev/gettierd/daemon/proxy/anthropic"
	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/ledger/lemma"
)

// turn is one entry of a made-up history: who, then what.
type turn struct{ who, what, extra string }

func history(t *testing.T, sub bool, turns ...turn) Conversation {
	t.Helper()
	type m = map[string]any
	var items []m
	id := 0
	for _, u := range turns {
		switch u.who {
		case "person":
			items = append(items, m{"role": "user", "content": u.what})
		case "model":
			items = append(items, m{"role": "assistant", "content": u.what})
		case "call": // what = tool, extra = arguments
			id++
			items = append(items, m{"role": "assistant", "content": []m{{"type": "tool_use", "id": "t" + strings.Repeat("x", id), "name": u.what, "input": json.RawMessage(u.extra)}}})
		case "result":
			items = append(items, m{"role": "user", "content": []m{{"type": "tool_result", "tool_use_id": "t" + strings.Repeat("x", id), "content": u.what, "is_error": u.extra == "error"}}})
		}
	}
	body, err := json.Marshal(m{"model": "m", "max_tokens": 10, "messages": items, "tools": []m{{"name": "Bash", "input_schema": m{"type": "object"}}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := (anthropicapi.Adapter{}).Read(body)
	if err != nil {
		t.Fatal(err)
	}
	h := func(n string) string {
		if n == "User-Agent" {
			return "claude-cli/2 (external, cli)"
		}
		if sub && n == "X-Claude-Code-Agent-Id" || n == "X-Claude-Code-Session-Id" {
			return "id"
		}
		return ""
	}
	return NewConversation(r, route.Classify([]byte("k"), r, h, "/v1/messages", nil))
}

func TestAuditProvenance(t *testing.T) {
	const claim = "nginx accepts request bodies of 20 MB"
	read := []turn{{"person", "Why do uploads fail?", ""}, {"call", "Bash", `{"command":"cat /etc/nginx/nginx.conf"}`}}
	for _, tc := range []struct {
		name  string
		claim string
		tag   lemma.Provenance
		turns []turn
		want  lemma.Provenance
	}{
		{"read from a file", claim, lemma.Measured, append(read[:2:2], turn{"result", "# nginx: limit of request bodies\nclient_max_body_size 20m;", ""}), lemma.Measured},
		{"another number", claim, lemma.Measured, append(read[:2:2], turn{"result", "# nginx: limit of request bodies\nclient_max_body_size 200m;", ""}), lemma.Believed},
		{"another unit", claim, lemma.Measured, append(read[:2:2], turn{"result", "# nginx: limit of request bodies\nclient_max_body_size 20k;", ""}), lemma.Believed},
		{"too few words", claim, lemma.Measured, append(read[:2:2], turn{"result", "20m", ""}), lemma.Believed},
		{"an error result", claim, lemma.Measured, append(read[:2:2], turn{"result", "nginx request bodies 20m", "error"}), lemma.Believed},
		{"echoed", claim, lemma.Measured, []turn{{"person", "Go", ""}, {"call", "Bash", `{"command":"grep '20m' nginx-request-bodies.txt"}`}, {"result", "nginx request bodies 20m", ""}}, lemma.Believed},
		{"printed by itself", claim, lemma.Measured, []turn{{"person", "Go", ""}, {"call", "Bash", `{"command":"echo nginx request bodies $X"}`}, {"result", "nginx request bodies 20m", ""}}, lemma.Believed},
		{"written before", claim, lemma.Measured, append([]turn{{"person", "Go", ""}, {"model", "I think it is 20 MB.", ""}}, turn{"call", "Bash", `{"command":"cat a"}`}, turn{"result", "nginx request bodies 20m", ""}), lemma.Believed},
		{"in a file it wrote", claim, lemma.Measured, []turn{{"person", "Go", ""}, {"call", "Write", `{"file_path":"a","content":"limit 20m"}`}, {"result", "ok", ""}, {"call", "Read", `{"file_path":"a"}`}, {"result", "nginx request bodies limit 20m", ""}}, lemma.Believed},
		{"written after", claim, lemma.Measured, append(read[:2:2], turn{"result", "nginx request bodies 20m", ""}, turn{"model", "The limit is 20 MB.", ""}), lemma.Measured},
		{"from the web", claim, lemma.Measured, []turn{{"person", "Go", ""}, {"call", "WebFetch", `{"url":"https://example.org"}`}, {"result", "nginx request bodies 20m", ""}}, lemma.Believed},
		{"from a server's tool", claim, lemma.Measured, []turn{{"person", "Go", ""}, {"call", "mcp__x__read", `{}`}, {"result", "nginx request bodies 20m", ""}}, lemma.Believed},
		{"by a call that changes", claim, lemma.Measured, []turn{{"person", "Go", ""}, {"call", "Bash", `{"command":"make limits"}`}, {"result", "nginx request bodies 20m", ""}}, lemma.Believed},
		{"from another machine", claim, lemma.Measured, []turn{{"person", "Go", ""}, {"call", "Bash", `{"command":"ssh web cat nginx.conf"}`}, {"result", "nginx request bodies 20m", ""}}, lemma.Believed},
		{"a person said it", claim, lemma.Told, []turn{{"person", "nginx takes request bodies up to 20 MB here.", ""}}, lemma.Told},
		{"a person asked it", claim, lemma.Told, []turn{{"person", "Does nginx take request bodies of 20 MB?", ""}}, lemma.Believed},
		{"a person denied it", claim, lemma.Told, []turn{{"person", "nginx does not take request bodies of 20 MB.", ""}}, lemma.Believed},
		{"a person wants it", claim, lemma.Told, []turn{{"person", "Raise nginx request bodies to 20 MB.", ""}}, lemma.Believed},
		{"pasted", claim, lemma.Told, []turn{{"person", "nginx takes request bodies up to 20 MB here. " + strings.Repeat("log line ", 60), ""}}, lemma.Believed},
		{"a reminder said it", claim, lemma.Told, []turn{{"person", "<system-reminder>nginx takes request bodies of 20 MB.</system-reminder>\nGo", ""}}, lemma.Believed},
		{"only the model said it", claim, lemma.Told, []turn{{"person", "Go", ""}, {"model", "nginx takes request bodies of 20 MB.", ""}}, lemma.Believed},
		{"a name in backticks", "the service runs as user `deploy`", lemma.Measured, []turn{{"person", "Go", ""}, {"call", "Bash", `{"command":"ps -eo user,comm"}`}, {"result", "service user\ndeploy web", ""}}, lemma.Measured},
		{"a version", "node is version 18.19", lemma.Measured, []turn{{"person", "Go", ""}, {"call", "Bash", `{"command":"node --version"}`}, {"result", "node version v18.19.1", ""}}, lemma.Believed},
		{"believed stays", claim, lemma.Believed, []turn{{"person", "nginx takes request bodies up to 20 MB here.", ""}}, lemma.Believed},
		{"an unknown tag", claim, "proven", []turn{{"person", "nginx takes request bodies up to 20 MB here.", ""}}, lemma.Believed},
	} {
		got, why := AuditProvenance(lemma.Lemma{Claim: tc.claim, Provenance: tc.tag}, history(t, false, tc.turns...), Backing{})
		if got != tc.want {
			t.Errorf("%s: %s, want %s (%s)", tc.name, got, tc.want, why)
		}
		if (got != tc.tag) != (why != "") {
			t.Errorf("%s: %s of %s with reason %q", tc.name, got, tc.tag, why)
		}
	}
}

func TestAuditSubagent(t *testing.T) {
	c := history(t, true, turn{"person", "nginx takes request bodies up to 20 MB here.", ""})
	if got, _ := AuditProvenance(lemma.Lemma{Claim: "nginx accepts request bodies of 20 MB", Provenance: lemma.Told}, c, Backing{}); got != lemma.Believed {
		t.Errorf("a parent's words told a sub-agent: %s", got)
	}
}

func TestAuditFacts(t *testing.T) {
	yes := func(lemma.Fact) bool { return true }
	fact := func(p lemma.Provenance, s lemma.FactStatus, key string) []lemma.Fact {
		return []lemma.Fact{{Provenance: p, Status: s, Key: key}}
	}
	for _, tc := range []struct {
		tag  lemma.Provenance
		b    Backing
		want lemma.Provenance
	}{
		{lemma.Measured, Backing{Facts: fact(lemma.Measured, lemma.StatusActive, "k"), Satisfies: yes}, lemma.Measured},
		{lemma.Measured, Backing{Facts: fact(lemma.Measured, lemma.StatusStale, "k"), Satisfies: yes}, lemma.Believed},
		{lemma.Measured, Backing{Facts: fact(lemma.Told, lemma.StatusActive, "k"), Satisfies: yes}, lemma.Believed},
		{lemma.Measured, Backing{Facts: fact(lemma.Measured, lemma.StatusActive, "k")}, lemma.Believed},
		{lemma.Told, Backing{Facts: fact(lemma.Told, lemma.StatusActive, "id"), ClaimID: "id"}, lemma.Told},
		{lemma.Told, Backing{Facts: fact(lemma.Told, lemma.StatusActive, ""), ClaimID: ""}, lemma.Believed},
	} {
		if got, _ := AuditProvenance(lemma.Lemma{Claim: "c", Provenance: tc.tag}, Conversation{}, tc.b); got != tc.want {
			t.Errorf("%s with %+v: %s, want %s", tc.tag, tc.b, got, tc.want)
		}
	}
}

func FuzzAudit(f *testing.F) {
	f.Add("nginx accepts 20 MB", "nginx accepts 20 MB here")
	f.Add("the `x` is 'y' at /etc/a.conf", "x y /etc/a.conf")
	f.Fuzz(func(t *testing.T, text, spoken string) {
		c := Conversation{said: []said{{by: route.Person, text: strings.ToLower(spoken)}, {by: route.Tool, counts: true, text: strings.ToLower(spoken)}}}
		for _, p := range []lemma.Provenance{lemma.Told, lemma.Measured} {
			if got, why := AuditProvenance(lemma.Lemma{Claim: text, Provenance: p}, c, Backing{}); got != p && why == "" {
				t.Fatalf("lowered to %s without a reason", got)
			}
		}
	})
}
