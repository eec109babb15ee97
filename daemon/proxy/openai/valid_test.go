package openaiapi

import (
	"fmt"
	"testing"

	"github.com/tidwall/gjson"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/daemon/wire/wiretest"
)

// refusal is why the API would refuse these messages: calls must be answered by
// tools' messages that follow at once.
func refusal(body []byte) error {
	open := map[string]bool{}
	for i, m := range gjson.GetBytes(body, "messages").Array() {
		if m.Get("role").String() == "tool" {
			id := m.Get("tool_call_id").String()
			if !open[id] {
				return fmt.Errorf("%d: a tool's message without a call", i)
			}
			delete(open, id)
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("%d: calls without answers: %v", i, open)
		}
		for _, c := range m.Get("tool_calls").Array() {
			open[c.Get("id").String()] = true
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("calls without answers at the end: %v", open)
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
	if checked < 300 {
		t.Errorf("only %d splices checked", checked)
	}
}
