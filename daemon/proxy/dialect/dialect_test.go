package dialect

import (
	"net/http"
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
		"/v1/messages/count_tokens": "", "/v1/threads/t/messages": "", "/v1/models": "", "/v1/responses": wire.Responses, "/V1/Responses/": wire.Responses, "/v1/responses/resp_1/..": wire.Responses, "/v1/responses/resp_1": "", "/v1/responses/compact": "", "/v1/completions": "", "/": "", "/..": "",
	} {
		got := wire.Format("")
		if a := Gated(http.MethodPost, path); a != nil {
			got = a.Format()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		if Gated(http.MethodGet, path) != nil {
			t.Errorf("GET %s is gated", path)
		}
	}
}

// TestStoredPaths: what can hold an earlier answer of a model is known; other APIs are not
// taken for it.
func TestStoredPaths(t *testing.T) {
	for path, want := range map[string]bool{
		"/v1/responses/resp_1": true, "/responses/resp_1": true, "/V1/RESPONSES/resp_1/": true, "/v1//responses/./resp_1": true, "/v1/responses/resp_1;v=2": true,
		"/v1/responses/resp_1/input_items": true, "/v1/responses/resp_1/cancel": true, "/v1/responses/compact": true, "/v1/x/../responses/resp_1": true,
		"/v1/conversations/conv_1": true, "/v1/conversations/conv_1/items": true, "/v1/conversations/conv_1/items/msg_1": true, "/v1/conversations": true,
		"/v1/chat/completions/chatcmpl_1": true, "/v1/chat/completions/chatcmpl_1/messages": true, "/v1/chat/completions": true, "/v1/responses": true, "/v1/responses/resp_1/..": true,
		"/v1/models": false, "/v1/completions/c": false, "/v1/messages/count_tokens": false, "/v1/files/responses.jsonl": false, "/": false,
	} {
		if got := Stored(path); got != want {
			t.Errorf("%s: %t, want %t", path, got, want)
		}
	}
}

func TestSplit(t *testing.T) {
	known := func(n string) bool { return n == "local" || n == "openai" }
	for path, want := range map[string]Target{
		"/v1/messages":              {Path: "/v1/messages", Project: "header"},
		"/p/shop/v1/messages":       {Path: "/v1/messages", Project: "shop"},
		"/p/shop/local/v1/messages": {Path: "/v1/messages", Project: "shop", Upstream: "local"},
		"/local/p/shop/v1/messages": {Path: "/v1/messages", Project: "shop", Upstream: "local"},
		"/openai/local/v1/models":   {Path: "/local/v1/models", Project: "header", Upstream: "openai"},
		"/v1/v1/messages":           {Path: "/v1/v1/messages", Project: "header"},
		"/unknown/chat/completions": {Path: "/unknown/chat/completions", Project: "header"},
		"":                          {Project: "header"},
		"v1/messages":               {Path: "v1/messages", Project: "header"},
		"/p/shop":                   {Path: "/", Project: "shop"},
	} {
		if got := Split(path, "header", known); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
}

// TestPathsAllocateNothing: every request passes here.
func TestPathsAllocateNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		Gated(http.MethodPost, "/v1//chat/./completions;a=b")
		Stored("/v1/responses/resp_1/input_items")
	}); n != 0 {
		t.Errorf("%.0f allocations", n)
	}
}
