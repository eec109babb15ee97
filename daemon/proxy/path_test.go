package proxy

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"gettier.dev/gettierd/daemon/wire"
)

// TestGatedPaths: however a path is spelled, what an upstream would take for a
// gated API is gated.
func TestGatedPaths(t *testing.T) {
	for path, want := range map[string]wire.Format{
		"/v1/chat/completions": wire.Chat, "/chat/completions": wire.Chat, "/v1/chat/completions/": wire.Chat,
		"//v1/chat/completions": wire.Chat, "/v1//chat/completions": wire.Chat, "/v1/chat/completions//": wire.Chat,
		"/v1/./chat/completions": wire.Chat, "/x/../v1/chat/completions": wire.Chat, "/V1/Chat/Completions": wire.Chat,
		"/v1/chat/completions;a=b": wire.Chat, `/v1\chat/completions`: wire.Chat,
		"/api/v1/chat/completions": wire.Chat, "/v1beta/openai/chat/completions": wire.Chat, "/openai/deployments/d/chat/completions": wire.Chat,
		"/v1/messages": wire.Messages, "/messages": wire.Messages, "//v1/messages": wire.Messages, "/api/v1/messages/": wire.Messages,
		"/v1/messages/count_tokens": "", "/v1/threads/t/messages": "", "/v1/models": "", "/v1/completions": "", "/": "", "/..": "",
	} {
		got := wire.Format("")
		if a := gatedFormat(http.MethodPost, path); a != nil {
			got = a.Format()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		if gatedFormat(http.MethodGet, path) != nil {
			t.Errorf("GET %s is gated", path)
		}
	}
}

// TestDenyIsJSON: whatever a refusal repeats of a request, it stays JSON.
func TestDenyIsJSON(t *testing.T) {
	for _, m := range []string{"a\x00b", "a\x07", "\xff\xfe", "\u2028", `"\`, "\U000e0001"} {
		w := httptest.NewRecorder()
		(&Server{}).deny(w, http.StatusForbidden, "forbidden", m)
		var v struct {
			Error struct{ Type, Message string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || v.Error.Type != "forbidden" || v.Error.Message == "" {
			t.Errorf("%q: %v: %s", m, err, w.Body.Bytes())
		}
	}
}
