package endpoint

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestNew(t *testing.T) {
	for _, o := range []Options{{URL: "ftp://x/v1", Model: "m"}, {URL: "", Model: "m"}, {URL: "://", Model: "m"}, {URL: "http://x/v1"}} {
		if _, err := New("constitution", o, 1); err == nil || !strings.HasPrefix(err.Error(), "constitution.") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	var path string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		if strings.HasSuffix(path, "/models") {
			_, _ = w.Write([]byte(`{"object":"list","data":[{"id":"` + strings.Repeat("x", 1000) + `"}]}`))
			return
		}
		http.Redirect(w, r, "/v1/models", http.StatusFound)
	}))
	defer s.Close()
	for most, ok := range map[int64]bool{100: false, 10_000: true} {
		c, err := New("x", Options{URL: s.URL + "/v1/", Model: "m"}, most)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.ListModels(t.Context()); (err == nil) != ok || path != "/v1/models" {
			t.Errorf("at most %d bytes: %v of %s", most, err, path)
		}
		if _, err := c.GetFile(t.Context(), "f"); err == nil || path == "/v1/models" {
			t.Errorf("a redirect was followed to %s", path)
		}
	}
}
