package responsesapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/daemon/wire/wiretest"
)

// refusal is why the API would refuse this input: calls must be answered, and
// nothing of ours may part reasoning from what it led to or a run of outputs.
func refusal(body []byte) error {
	input := gjson.GetBytes(body, "input")
	if !input.IsArray() {
		return nil
	}
	open, ours := map[string]bool{}, false
	before := gjson.Result{}
	for i, m := range input.Array() {
		kind, now := m.Get("type").String(), false
		for _, p := range m.Get("content").Array() {
			now = now || wire.IsBlock(p.Get("text").String()) || p.Get("text").String() == "ask"
			if r := m.Get("role").String(); now && r != "user" || p.Get("type").String() == "text" {
				return fmt.Errorf("%d: a part of type %s in a message of role %s", i, p.Get("type"), r)
			}
		}
		if now && len(m.Get("content").Array()) == 1 {
			ours = true // an item of its own
			if len(open) > 0 {
				return fmt.Errorf("%d: our item parts calls from their outputs: %v", i, open)
			}
			if before.Get("type").String() == "reasoning" {
				return fmt.Errorf("%d: our item follows reasoning", i)
			}
		}
		switch {
		case strings.HasSuffix(kind, "_call_output"):
			if id := m.Get("call_id").String(); !open[id] {
				return fmt.Errorf("%d: an output without a call", i)
			}
			delete(open, m.Get("call_id").String())
		case strings.HasSuffix(kind, "_call"):
			open[m.Get("call_id").String()] = true
		case before.Get("type").String() == "compaction_trigger":
			return fmt.Errorf("%d: an item after the compaction trigger", i)
		}
		before = m
	}
	if len(open) > 0 {
		return fmt.Errorf("calls without outputs at the end: %v (ours: %v)", open, ours)
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
				t.Errorf("%s, block after item %d (%s): %v", rec.Name, i, r.Items[i].Type, err)
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
