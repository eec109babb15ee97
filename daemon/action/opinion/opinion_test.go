package opinion

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/daemon/action/endpoint"
)

// TestAsk: what a scripted endpoint says becomes an opinion, whatever it says.
func TestAsk(t *testing.T) {
	answer, status := "", http.StatusOK
	var asked string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Messages []struct{ Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/v1/chat/completions" || len(in.Messages) != 2 {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		asked = in.Messages[1].Content
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]string{"role": "assistant", "content": answer}}}})
	}))
	defer s.Close()
	k, err := New(endpoint.Options{URL: s.URL + "/v1", Model: "scripted"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		answer string
		status int
		want   action.Opinion
	}{
		{`{"risk_score": 91, "reasoning": "It removes\nfiles.", "flags": ["irreversible", "nice", "irreversible"]}`, 200, action.Opinion{Score: 91, Text: "It removes files.", Flags: []string{"irreversible"}}},
		{"```json\n{\"risk_score\": 3}\n```", 200, action.Opinion{Score: 3}},
		{`{"risk_score": 1e9}`, 200, action.Opinion{Score: 100}},
		{`{"risk_score": -4}`, 200, action.Opinion{Score: 0}},
		{`{"reasoning": "fine"}`, 200, action.Opinion{Score: 50, Text: "an answer that cannot be read"}},
		{`ALLOW, it is fine`, 200, action.Opinion{Score: 50, Text: "an answer that cannot be read"}},
		{`{"risk_score": 1}`, 500, action.Opinion{Score: 50, Text: "no answer"}},
	} {
		answer, status = c.answer, c.status
		c.want.From = "model:scripted"
		if got := k.Ask(t.Context(), "rm -rf data"); !reflect.DeepEqual(got, c.want) || asked != "rm -rf data" {
			t.Errorf("%q: %+v", c.answer, got)
		}
	}
	if k.Ask(t.Context(), strings.Repeat("é", maxText)); len(asked) > maxText {
		t.Errorf("%d bytes asked", len(asked))
	}
	if _, err := New(endpoint.Options{Model: "m"}); err == nil {
		t.Error("no endpoint")
	}
}
