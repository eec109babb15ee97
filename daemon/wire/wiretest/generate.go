package wiretest

import (
	"testing"

	"pgregory.net/rapid"

	"gettier.dev/gettierd/daemon/wire"
)

// Generated checks splicing over made-up conversations with the white space of
// any hand. roles are those of the format, parts are contents of one part, items
// are whole items that are no messages.
func Generated(t *testing.T, a wire.Adapter, roles, parts []string, items ...string) {
	t.Helper()
	key, textType := "messages", "text"
	if a.Format() == wire.Responses {
		key, textType = "input", "input_text"
	}
	rapid.Check(t, func(rt *rapid.T) {
		ws := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n  ", "\t"}).Draw(rt, "ws") }
		list := func(n int, element func() string) string {
			s := "[" + ws()
			for i := range n {
				if i > 0 {
					s += ws() + "," + ws()
				}
				s += element()
			}
			return s + ws() + "]"
		}
		text := func() string {
			return string(wire.Quote(rapid.SampledFrom([]string{"", "a", "one\ntwo \"q\" \\", "é✓", "<x>"}).Draw(rt, "text")))
		}
		content := func() string {
			switch rapid.IntRange(0, 5).Draw(rt, "shape") {
			case 0:
				return "null"
			case 1, 2:
				return text()
			}
			return list(rapid.IntRange(0, 3).Draw(rt, "parts"), func() string {
				if rapid.Bool().Draw(rt, "textual") {
					return `{` + ws() + `"type":"` + textType + `",` + ws() + `"text":` + text() + `}`
				}
				return rapid.SampledFrom(parts).Draw(rt, "part")
			})
		}
		body := `{` + ws() + `"` + key + `"` + ws() + `:` + ws() + list(rapid.IntRange(1, 6).Draw(rt, "items"), func() string {
			if len(items) > 0 && rapid.IntRange(0, 2).Draw(rt, "kind") == 0 {
				return rapid.SampledFrom(items).Draw(rt, "item")
			}
			role := `"role":"` + rapid.SampledFrom(roles).Draw(rt, "role") + `"`
			switch rapid.IntRange(0, 6).Draw(rt, "order") {
			case 0:
				return `{` + role + `}`
			case 1, 2:
				return `{"content":` + content() + ws() + `,` + role + `}`
			}
			return `{` + role + `,` + ws() + `"content":` + ws() + content() + ws() + `}`
		}) + ws() + `,"model":"m"}`
		r, err := a.Read([]byte(body))
		if err != nil {
			rt.Fatalf("%v\n%s", err, body)
		}
		var blocks []wire.Block
		for range rapid.IntRange(1, 4).Draw(rt, "blocks") {
			at := rapid.IntRange(0, len(r.Items)-1).Draw(rt, "after")
			blocks = append(blocks, wire.Block{After: at, Text: Frame("x")})
		}
		spliced(rt, a, r, blocks)
	})
}
