package model

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/ledger/lemma"
)

const execTool = `{"type":"function","name":"exec_command","strict":false,"parameters":{"type":"object","properties":{"cmd":{"type":"string"}},"required":["cmd"]}}`

type responsesReply struct {
	ID, Object, Status string
	Output             []struct {
		Type, ID, Name, Arguments string
		CallID                    string `json:"call_id"`
		Encrypted                 string `json:"encrypted_content"`
		Content                   []struct{ Type, Text string }
	}
	Usage struct {
		Input   int `json:"input_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"input_tokens_details"`
	}
}

// says is the answer's text, and its only call.
func (r responsesReply) says() (text, name, args string) {
	for _, it := range r.Output {
		for _, p := range it.Content {
			text += p.Text
		}
		if it.Type == "function_call" {
			name, args = name+it.Name, args+it.Arguments
		}
	}
	return text, name, args
}

func respond(t *testing.T, srv *httptest.Server, body string) responsesReply {
	t.Helper()
	status, data, _ := post(t, srv.URL+"/v1/responses", body)
	var r responsesReply
	if status != 200 || json.Unmarshal(data, &r) != nil || r.Status != "completed" || r.Object != "response" {
		t.Fatalf("status %d: %s", status, data)
	}
	return r
}

func responsesBody(input, more string) string {
	return fmt.Sprintf(`{"model":"m","include":["reasoning.encrypted_content"],"tools":[%s],"input":[%s]%s}`, execTool, input, more)
}

func TestResponses(t *testing.T) {
	s := scenario(t)
	srv := upstream(t, Options{Scenario: s})
	ticket := fmt.Sprintf(`{"type":"message","role":"developer","content":"You code."},{"type":"message","role":"user","content":[{"type":"input_text","text":%s}]}`, quote(s.Ticket))
	r := respond(t, srv, responsesBody(ticket, ""))
	_, name, args := r.says()
	if name != "exec_command" || !strings.Contains(args, s.Scripted.Look) || r.Output[0].Type != "reasoning" || r.Output[0].Encrypted == "" {
		t.Fatalf("first it looks: %+v", r)
	}
	looked := fmt.Sprintf(`,{"type":"reasoning","id":"rs","summary":[]},{"type":"function_call","call_id":"1","name":"exec_command","arguments":%s},{"type":"function_call_output","call_id":"1","output":"{}"}`, quote(args))
	wrong, err := s.Fix("wrong")
	if err != nil {
		t.Fatal(err)
	}
	right, err := s.Fix("right")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, args = respond(t, srv, responsesBody(ticket+looked, "")).says(); !strings.Contains(args, quote(wrong)) {
		t.Errorf("uncorrected, it does the wrong fix: %s", args)
	}
	block := fmt.Sprintf(`,{"type":"message","role":"user","content":[{"type":"input_text","text":%s}]}`, quote(verification(s.Claims()[2])))
	r = respond(t, srv, responsesBody(ticket+looked+block, ""))
	text, _, args := r.says()
	if !strings.Contains(args, quote(right)) || !strings.HasPrefix(text, "Correction: ") {
		t.Errorf("corrected, it does the right fix: %q %s", text, args)
	}
	if r.Usage.Input == 0 || r.Usage.Details.Cached == 0 {
		t.Errorf("usage %+v", r.Usage)
	}
	forced := strings.Replace(responsesBody(ticket, `,"tool_choice":{"type":"function","name":"declare_lemmas"}`), `"tools":[`, `"tools":[{"type":"function","name":"declare_lemmas","parameters":{}},`, 1)
	_, name, args = respond(t, srv, forced).says()
	if d, _, err := lemma.ParseDeclaration([]byte(args)); name != "declare_lemmas" || err != nil || len(d.Lemmas) != 1 {
		t.Errorf("declared %s %+v, %v", name, d, err)
	}
	for _, bad := range []string{
		responsesBody("", ""), `{"model":"m","input":7}`,
		responsesBody(ticket+`,{"type":"function_call","call_id":"1","name":"n","arguments":"{}"}`, ""),
		responsesBody(ticket+`,{"type":"function_call_output","call_id":"1","output":""}`, ""),
		responsesBody(ticket+`,{"type":"reasoning","id":"rs"},{"type":"message","role":"user","content":"x"}`, ""),
	} {
		if status, data, _ := post(t, srv.URL+"/v1/responses", bad); status != 400 || !strings.Contains(string(data), "invalid_request_error") {
			t.Errorf("%s: status %d %s", bad, status, data)
		}
	}
}

func TestResponsesStreamed(t *testing.T) {
	s := scenario(t)
	srv := upstream(t, Options{Scenario: s})
	body := responsesBody(fmt.Sprintf(`{"role":"user","content":%s}`, quote(s.Ticket)), "")
	whole := respond(t, srv, body)
	_, data, h := post(t, srv.URL+"/v1/responses", strings.Replace(body, `{"model"`, `{"stream":true,"model"`, 1))
	if h.Get("Content-Type") != "text/event-stream" {
		t.Fatal(h)
	}
	var text, args string
	var end responsesReply
	n := 0
	for event := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n\n") {
		name, payload, _ := strings.Cut(event, "\ndata: ")
		var ev struct {
			Type     string
			Number   int `json:"sequence_number"`
			Delta    string
			Response responsesReply
		}
		if err := json.Unmarshal([]byte(payload), &ev); err != nil || name != "event: "+ev.Type || ev.Number != n {
			t.Fatalf("event %d: %v %s", n, err, event)
		}
		n++
		switch ev.Type {
		case "response.output_text.delta":
			text += ev.Delta
		case "response.function_call_arguments.delta":
			args += ev.Delta
		case "response.completed":
			end = ev.Response
		}
	}
	wantText, _, wantArgs := whole.says()
	gotText, _, gotArgs := end.says()
	if diff := cmp.Diff([]string{wantText, wantArgs, wantText, wantArgs}, []string{text, args, gotText, gotArgs}); diff != "" || args == "" {
		t.Error(diff)
	}
}
