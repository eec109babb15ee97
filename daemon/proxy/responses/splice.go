package responsesapi

import (
	"bytes"
	"strings"

	"gettier.dev/gettierd/daemon/wire"
)

// Strip takes our blocks out of a body, and what names an item of ours: their
// ids mean nothing to the API.
func (a Adapter) Strip(body []byte) ([]byte, error) {
	body, err := disown(body, a.Read)
	if err != nil {
		return nil, err
	}
	return wire.StripBlocks(body, a.Read)
}

// Splice puts blocks into a body.
func (Adapter) Splice(r *wire.Request, blocks []wire.Block) ([]byte, error) {
	edits, err := splice(r, blocks)
	if err != nil {
		return nil, err
	}
	return wire.Apply(r.Body, edits), nil
}

func splice(r *wire.Request, blocks []wire.Block) ([]wire.Edit, error) {
	return wire.SpliceAt(r, blocks, func(after int) wire.Place { return place(r, after) })
}

// place is where the API allows a text of the user for an item: in a user's
// message, else as one after it. Nothing may stand between reasoning and the item
// that it led to, nor between calls and their outputs; a compaction trigger stays
// last.
func place(r *wire.Request, after int) wire.Place {
	items := r.Items
	if items[0].Span == items[0].Content { // the input is one string
		return wire.Place{Item: 0}
	}
	for after >= 0 && items[after].Type == "compaction_trigger" {
		after--
	}
	if after < 0 {
		return wire.Place{Item: -1, Own: true}
	}
	if items[after].Role == "user" && items[after].Holds() {
		return wire.Place{Item: after}
	}
	for after+1 < len(items) && (leads(r, items[after]) || items[after+1].Role == "tool" || unanswered(items, after)) {
		after++
	}
	if items[after].Role == "user" && items[after].Holds() {
		return wire.Place{Item: after}
	}
	return wire.Place{Item: after, Own: true}
}

// leads reports an item that the API takes only with the one after it.
func leads(r *wire.Request, it wire.Item) bool {
	if it.Type == "item_reference" {
		return strings.HasPrefix(readFields(r.Body[it.Span.Start:it.Span.End]).id, "rs_")
	}
	return it.Type == "reasoning"
}

// unanswered reports a call among the items up to one whose output comes later.
func unanswered(items []wire.Item, upto int) bool {
	var open map[string]bool
	for _, it := range items[:upto+1] {
		for _, p := range it.Parts {
			switch p.Kind {
			case wire.ToolCall:
				if open == nil {
					open = map[string]bool{}
				}
				open[p.CallID] = true
			case wire.ToolResult:
				delete(open, p.CallID)
			}
		}
	}
	if len(open) == 0 {
		return false
	}
	for _, it := range items[upto+1:] {
		for _, p := range it.Parts {
			if p.Kind == wire.ToolResult && open[p.CallID] {
				return true
			}
		}
	}
	return false
}

// ownID starts the id of every message that we put into an answer.
const ownID = "msg_gettier_"

// disown takes the ids of our own messages out of a body, and references to them,
// which the provider cannot resolve.
func disown(body []byte, read func([]byte) (*wire.Request, error)) ([]byte, error) {
	if !bytes.Contains(body, []byte(ownID)) {
		return body, nil
	}
	r, err := read(body)
	if err != nil {
		return nil, err
	}
	spans, gone := make([]wire.Span, len(r.Items)), make([]bool, len(r.Items))
	var edits []wire.Edit
	for i, it := range r.Items {
		spans[i] = it.Span
		members := wire.MembersOf(body, it.Span)
		id, ok := wire.Find(members, "id")
		if !ok || !strings.HasPrefix(text(body[id.Value.Start:id.Value.End]), ownID) {
			continue
		}
		if it.Type == "item_reference" {
			gone[i] = true
			continue
		}
		o := wire.NewObject(it.Span, members)
		o.Drop("id")
		edits = append(edits, o.Edits()...)
	}
	edits = append(edits, wire.Cut(spans, func(i int) bool { return gone[i] })...)
	return wire.Apply(body, edits), nil
}
