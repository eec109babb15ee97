package openaiapi

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

// place is where the API allows a text of the user for an item: in a user's
// message, else as one after it. Nothing may stand between a message with calls
// and the tools' messages that answer them.
func place(r *wire.Request, after int) wire.Place {
	if r.Items[after].Role == "user" && r.Items[after].Holds() {
		return wire.Place{Item: after}
	}
	for after+1 < len(r.Items) && (r.Items[after+1].Role == "tool" || r.Items[after+1].Role == "function") {
		after++
	}
	return wire.Place{Item: after, Own: true}
}
