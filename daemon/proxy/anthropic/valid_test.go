package anthropicapi

import (
	"fmt"
	"testing"

	"github.com/tidwall/gjson"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/daemon/wire/wiretest"
)

// refusal is why the API would refuse these messages, by its documented rules on
// order: results first and straight after their calls, a system entry after a
// user's and before an assistant's or the end, no empty text.
func refusal(body []byte) error {
	open := map[string]bool{} // calls without a result
	role, late := "", false   // late: the current user's turn has had other blocks than results
	messages := gjson.GetBytes(body, "messages").Array()
	for i, m := range messages {
		now := m.Get("role").String()
		if now == "system" {
			if role != "user" {
				return fmt.Errorf("%d: a system entry after %q", i, role)
			}
			if i+1 < len(messages) && messages[i+1].Get("role").String() != "assistant" {
				return fmt.Errorf("%d: a system entry in the middle of a user's turn", i)
			}
			role = now
			continue
		}
		if now != role {
			late = false
		}
		if now == "assistant" && len(open) > 0 {
			return fmt.Errorf("%d: calls without results: %v", i, open)
		}
		role = now
		blocks := m.Get("content").Array()
		if !m.Get("content").IsArray() {
			blocks = []gjson.Result{gjson.Parse(`{"type":"text","text":` + m.Get("content").Raw + `}`)}
		}
		for j, b := range blocks {
			switch b.Get("type").String() {
			case "tool_use":
				open[b.Get("id").String()] = true
				continue
			case "tool_result":
				if late {
					return fmt.Errorf("%d.%d: a result after other blocks", i, j)
				}
				if !open[b.Get("tool_use_id").String()] {
					return fmt.Errorf("%d.%d: a result without a call", i, j)
				}
				delete(open, b.Get("tool_use_id").String())
				continue
			case "text":
				if b.Get("text").String() == "" {
					return fmt.Errorf("%d.%d: an empty text", i, j)
				}
			}
			late = late || now == "user"
			if now == "user" && len(open) > 0 {
				return fmt.Errorf("%d.%d: text before the results of %v", i, j, open)
			}
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("calls without results at the end: %v", open)
	}
	return nil
}

func TestSplicedRequestsAreWhatTheAPITakes(t *testing.T) {
	checked := 0
	for _, rec := range wiretest.Load(t, sessions) {
		if err := refusal(rec.Body); err != nil {
			t.Logf("%s is refused as it is: %v", rec.Name, err)
			continue
		}
		r, err := Adapter{}.Read(rec.Body)
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Items {
			got, err := Adapter{}.Splice(r, []wire.Block{{After: i, Text: wiretest.Frame("x")}})
			if err != nil {
				t.Fatal(err)
			}
			if err := refusal(got); err != nil {
				t.Errorf("%s, block after item %d (%s): %v", rec.Name, i, r.Items[i].Role, err)
			}
			checked++
		}
		for rung := range wire.Rung(4) {
			d, err := Adapter{}.Declare(r, wire.DeclareOptions{Rung: rung, Instruction: "ask", MaxTokens: 600})
			if err != nil {
				t.Fatal(err)
			}
			if err := refusal(d); err != nil {
				t.Errorf("%s, declare pass of rung %d: %v", rec.Name, rung, err)
			}
		}
	}
	if checked < 500 {
		t.Errorf("only %d splices checked", checked)
	}
}
