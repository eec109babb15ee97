package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gettier.dev/gettierd/ipc"
)

// connect starts the server and a client of the SDK's own beside each other.
func connect(t *testing.T, o Options) *sdk.ClientSession {
	t.Helper()
	ct, st := sdk.NewInMemoryTransports()
	ss, err := server(o).Connect(t.Context(), st, nil)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), ct, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close(); _ = ss.Wait() })
	return cs
}

// TestTools: whatever is offered here a model can call, so nothing is that
// answers, tells, approves or changes anything.
func TestTools(t *testing.T) {
	cs := connect(t, Options{})
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Annotations == nil || !tool.Annotations.ReadOnlyHint {
			t.Errorf("%s is not marked as one that only looks", tool.Name)
		}
	}
	if strings.Join(names, " ") != "decide" {
		t.Errorf("tools %v", names)
	}
}

func TestDecide(t *testing.T) {
	var asked []ipc.Action
	cs := connect(t, Options{Decide: func(_ context.Context, a ipc.Action) (ipc.Decision, error) {
		asked = append(asked, a)
		if a.Command == "broken" {
			return ipc.Decision{}, errors.New("no daemon")
		}
		return ipc.Decision{State: "REQUIRE_CONFIRM", Effect: "destroy", Reason: "removes data", Risk: 55, DecisionID: "d1"}, nil
	}})
	for _, tc := range []struct {
		name  string
		in    string
		fails string
	}{
		{"a command", `{"command_line":"rm -rf data","cwd":"/shop"}`, ""},
		{"an argv", `{"argv":["rm","-rf","data"]}`, ""},
		{"a tool", `{"tool":"Bash","args":{"command":"rm -rf data"}}`, ""},
		{"nothing", `{}`, "exactly one"},
		{"two", `{"command_line":"ls","tool":"Bash"}`, "exactly one"},
		{"args of nothing", `{"command_line":"ls","args":{}}`, "belong to a tool"},
		{"an unknown word", `{"command_line":"ls","approve":true}`, "approve"},
		{"another type", `{"command_line":7}`, "command_line"},
		{"too much", `{"command_line":"` + strings.Repeat("a", maxArgs+1) + `"}`, "at most"},
		{"no gate", `{"command_line":"broken"}`, "treat it as refused"},
	} {
		asked = nil
		res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "decide", Arguments: json.RawMessage(tc.in)})
		text := ""
		if err != nil {
			text = err.Error()
		} else {
			for _, c := range res.Content {
				if x, ok := c.(*sdk.TextContent); ok {
					text += x.Text
				}
			}
		}
		if failed := err != nil || res.IsError; failed != (tc.fails != "") || !strings.Contains(text, tc.fails) {
			t.Errorf("%s: %v %s", tc.name, err, text)
			continue
		}
		if tc.fails != "" {
			continue
		}
		out, err := json.Marshal(res.StructuredContent)
		if err != nil || !strings.Contains(string(out), `"state":"REQUIRE_CONFIRM"`) || text != "REQUIRE_CONFIRM (destroy): removes data" || len(asked) != 1 || asked[0].Actor != "mcp" {
			t.Errorf("%s: %s %s %v %+v", tc.name, text, out, err, asked)
		}
	}
}
