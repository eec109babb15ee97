package responsesapi

import (
	"strconv"

	"gettier.dev/gettierd/daemon/wire"
)

// event is one parsed event of the protocol.
type event struct {
	kind     string
	data     []byte
	members  []wire.Member
	index    int // output_index, -1 when absent
	part     int // content_index
	number   int64
	numbered bool
	itemID   string
	name     string
	// Raw values, nil when absent.
	item, response, delta, text, arguments, input, refusal, content []byte
	failed, chat                                                    bool
}

// maxIndex bounds the index of an item and of a part.
const maxIndex = 1 << 20

// parse reads the data of an event strictly.
func parse(e wire.Event) (event, error) {
	ev := event{data: e.Data, index: -1, members: make([]wire.Member, 0, 8)}
	err := wire.Whole(e.Data, func(rd *wire.Reader) error {
		_, err := rd.Object(func(name []byte, key wire.Span) error {
			at, err := rd.Value()
			if err != nil {
				return err
			}
			ev.members = append(ev.members, wire.Member{Name: string(name), Key: key, Value: at})
			raw := rd.Raw(at)
			if raw[0] == 'n' {
				return nil
			}
			switch string(name) {
			case "type":
				ev.kind = text(raw)
			case "output_index", "content_index":
				n, err := wire.Int(raw)
				if err != nil || n < 0 || n > maxIndex {
					return rd.FaultAt(at.Start, "an impossible index")
				}
				if string(name) == "output_index" {
					ev.index = int(n)
				} else {
					ev.part = int(n)
				}
			case "sequence_number":
				n, err := wire.Int(raw)
				if err != nil {
					return rd.FaultAt(at.Start, "an impossible sequence number")
				}
				ev.number, ev.numbered = n, true
			case "item_id":
				ev.itemID = text(raw)
			case "name":
				ev.name = text(raw)
			case "item":
				ev.item = raw
			case "response":
				ev.response = raw
			case "delta":
				ev.delta = raw
			case "text":
				ev.text = raw
			case "refusal":
				ev.refusal = raw
			case "part":
				ev.content = raw
			case "arguments":
				ev.arguments = raw
			case "input":
				ev.input = raw
			case "error":
				ev.failed = set(raw)
			case "choices":
				ev.chat = true
			}
			return nil
		})
		return err
	})
	if err != nil {
		return ev, wire.Unreadable(err)
	}
	if name := wire.DisguisedIn(ev.members); name != "" {
		return ev, wire.Unreadablef("a member %.40q in an event", name)
	}
	switch {
	case e.Name != "" && ev.kind != "" && e.Name != ev.kind:
		return ev, wire.Unreadablef("an event named %.60q of type %.60q", e.Name, ev.kind)
	case ev.kind == "" && ev.failed:
		ev.kind = "error"
	case ev.kind == "" && ev.chat:
		return ev, wire.Unreadablef("a chunk of a chat completion in a stream of responses")
	case ev.kind == "":
		return ev, wire.Unreadablef("an event without a type")
	}
	return ev, nil
}

func eventsOf(raw []byte) []wire.Event {
	var sp wire.Splitter
	events, err := sp.Feed(raw)
	if err != nil {
		return nil
	}
	return events
}

// renumbered is the event with another sequence number and, from 0 up, another
// output index; byte for byte else.
func renumbered(e wire.Event, ev *event, number int64, index int) []byte {
	o := wire.NewObject(whole(ev.data), ev.members)
	o.Set("sequence_number", strconv.AppendInt(nil, number, 10))
	if index >= 0 {
		o.Set("output_index", strconv.AppendInt(nil, int64(index), 10))
	}
	return wire.AppendEvent(nil, e.Name, o.Edited(ev.data))
}
