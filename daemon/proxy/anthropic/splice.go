package anthropicapi

import "gettier.dev/gettierd/daemon/wire"

// Strip takes our blocks out of a body.
func (a Adapter) Strip(body []byte) ([]byte, error) { return wire.StripBlocks(body, a.Read) }

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

// place is where the API allows a text of the user for an item. A system entry
// must follow a user's and be followed by an assistant's or nothing, so the text
// goes before it, into the user entry that it belongs to. A user entry after an
// assistant's stands alone, unless it would part a call from its result.
func place(r *wire.Request, after int) wire.Place {
	i := after
	for i >= 0 && r.Items[i].Role == "system" {
		i--
	}
	if i < 0 {
		return wire.Place{Item: -1, Own: true}
	}
	if r.Items[i].Role == "user" && r.Items[i].Holds() {
		return wire.Place{Item: i}
	}
	if i+1 < len(r.Items) && r.Items[i+1].Role == "user" && hasResult(r.Items[i+1]) {
		return wire.Place{Item: i + 1}
	}
	return wire.Place{Item: i, Own: true}
}

func hasResult(it wire.Item) bool {
	for _, p := range it.Parts {
		if p.Kind == wire.ToolResult {
			return true
		}
	}
	return false
}
