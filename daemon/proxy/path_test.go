package proxy

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

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
