package semantic

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/daemon/action/endpoint"
)

// scripted is an endpoint of embeddings whose vectors are written down here: what
// speaks of wiping lies along one axis, of bombs along another, the rest between.
func scripted(t *testing.T) (*httptest.Server, *atomic.Value) {
	t.Helper()
	mood := &atomic.Value{}
	mood.Store("")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer k" {
			http.Error(w, "no", http.StatusNotFound)
			return
		}
		var in struct {
			Input []string `json:"input"`
			Model string   `json:"model"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Model != "scripted" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		switch mood.Load() {
		case "broken":
			http.Error(w, "no", http.StatusInternalServerError)
			return
		case "slow":
			<-r.Context().Done()
			return
		case "moved":
			http.Redirect(w, r, "http://192.0.2.1/v1/embeddings", http.StatusTemporaryRedirect)
			return
		}
		type data struct {
			Object    string    `json:"object"`
			Embedding []float32 `json:"embedding"`
			Index     int       `json:"index"`
		}
		var out []data
		for i, text := range in.Input {
			v := []float32{0.1, 0.1, 1}
			switch {
			case strings.Contains(text, "wipe"):
				v = []float32{1, 0, 0.1}
			case strings.Contains(text, "bomb"):
				v = []float32{0, 1, 0.1}
			}
			switch mood.Load() {
			case "short":
				v = v[:2]
			case "zero":
				v = []float32{0, 0, 0}
			case "twice":
				out = append(out, data{"embedding", v, i})
			}
			out = append(out, data{"embedding", v, i})
		}
		if mood.Load() == "fewer" {
			out = nil
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": out, "model": in.Model})
	}))
	t.Cleanup(s.Close)
	return s, mood
}

func TestEvaluator(t *testing.T) {
	s, mood := scripted(t)
	e, err := New(endpoint.Options{URL: s.URL + "/v1/", Model: "scripted", Key: "k"}, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	p := action.Default()
	if got := e.Measure(t.Context(), p, "wipe it"); got.Skipped != action.SkippedCold || got.Near != nil {
		t.Errorf("before it is warm: %+v", got)
	}
	if n, err := e.Warm(t.Context(), p); err != nil || n != len(p.Constitution.Principles) {
		t.Fatal(n, err)
	}
	got := e.Measure(t.Context(), p, "please wipe the machine")
	if got.Skipped != "" || len(got.Near) != 4 {
		t.Fatalf("%+v", got)
	}
	for _, n := range got.Near {
		if near := n.Percent >= 55; near != (n.Principle == "SystemIntegrity") {
			t.Errorf("%+v", n)
		}
	}
	d := action.Decide(action.Action{Command: "touch a", Raw: "please wipe the machine"}, p, action.Situation{Semantic: got})
	if d.State != action.RequireConfirm || d.Semantic != got {
		t.Errorf("%+v", d)
	}
	if other, doc := action.ParsePolicy([]byte("version: 1\nenforce: shadow\n")); other == nil {
		t.Fatal(doc.Text("policy"))
	} else if got := e.Measure(t.Context(), other, "wipe"); got.Skipped != action.SkippedCold {
		t.Errorf("another policy's principles: %+v", got)
	}
	for _, m := range []string{"broken", "moved", "short", "zero", "twice", "fewer"} {
		mood.Store(m)
		if got := e.Measure(t.Context(), p, "wipe"); got.Skipped != action.SkippedFailed || got.Near != nil {
			t.Errorf("%s: %+v", m, got)
		}
	}
	mood.Store("slow")
	e.timeout = 20 * time.Millisecond
	if got := e.Measure(t.Context(), p, "wipe"); got.Skipped != action.SkippedTimeout {
		t.Errorf("slow: %+v", got)
	}
	mood.Store("broken")
	if _, err := e.Warm(t.Context(), p); err == nil {
		t.Error("warmed by an error")
	}
	if _, err := New(endpoint.Options{Model: "m"}, 1); err == nil {
		t.Error("no endpoint")
	}
}
