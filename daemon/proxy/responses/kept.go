package responsesapi

import (
	"fmt"

	"gettier.dev/gettierd/daemon/wire"
)

// Kept reads an answer that tells of what a model said earlier: a kept response
// or chat completion, a list of them or of items, one item. It returns the type of the first item that asks the
// client to act, "" when none does. What cannot be read as strictly as an answer
// is a fault: nobody has ruled on what stands there.
func Kept(body []byte) (string, error) {
	err := wire.Whole(body, func(rd *wire.Reader) error {
		_, err := rd.Value()
		return err
	})
	if err != nil {
		return "", wire.Unreadable(err)
	}
	return keptIn(body, whole(body), 0)
}

// maxKept bounds how deep items are looked for: a list of responses holds outputs.
const maxKept = 8

func keptIn(body []byte, at wire.Span, depth int) (string, error) {
	if depth > maxKept || at.End <= at.Start {
		return "", nil
	}
	switch body[at.Start] {
	case '[':
		for _, e := range wire.ElementsOf(body, at) {
			if kind, err := keptIn(body, e, depth+1); kind != "" || err != nil {
				return kind, err
			}
		}
	case '{':
		raw := body[at.Start:at.End]
		f := readFields(raw)
		if f.kind != "" {
			k, err := kindOf(&f, raw)
			if err != nil {
				return "", fmt.Errorf("read kept item: %w", err)
			}
			if k == classCall {
				return f.kind, nil
			}
		}
		for _, m := range wire.MembersOf(body, at) {
			switch m.Name {
			case "tool_calls", "function_call": // of a kept chat completion
				if v := body[m.Value.Start:m.Value.End]; set(v) && string(v) != "[]" {
					return m.Name, nil
				}
			case "output", "data", "items", "response", "input", "choices", "message":
				if kind, err := keptIn(body, m.Value, depth+1); kind != "" || err != nil {
					return kind, err
				}
			}
		}
	}
	return "", nil
}
