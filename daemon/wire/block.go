package wire

import (
	"bytes"
	"fmt"
)

// Place is where a block stands: as the last part of an item, or as a user item
// of its own after it (before the first item for Item -1).
type Place struct {
	Item int
	Own  bool
}

// SpliceAt inserts the blocks' texts, each at the place that the format gives for
// its item. Blocks at the same place keep their order.
func SpliceAt(r *Request, blocks []Block, place func(after int) Place) ([]Edit, error) {
	var order []Place
	texts := make(map[Place][]string, len(blocks))
	for _, b := range blocks {
		if b.After < 0 || b.After >= len(r.Items) {
			return nil, fmt.Errorf("splice block: no item %d among %d", b.After, len(r.Items))
		}
		p := place(b.After)
		if texts[p] == nil {
			order = append(order, p)
		}
		texts[p] = append(texts[p], b.Text)
	}
	var out []Edit
	for _, p := range order {
		if p.Own {
			out = append(out, ownItem(r, p.Item, texts[p]))
		} else {
			out = append(out, lastParts(r, p.Item, texts[p])...)
		}
	}
	return out, nil
}

const (
	textClose = `}`
	// fromPlain stands between a content that was a plain string and our first
	// block; elsewhere a bare comma does. It is how Strip knows what to restore.
	fromPlain = `, `
	// wholeOpen and wholeClose make a message of an input that was a plain string.
	// The two spaces tell it from a message that a client wrote.
	wholeOpen  = `[{"type":"message",  "role":"user","content":`
	wholeClose = `}]`
)

// textOpen starts a text part of the user in a format.
func textOpen(f Format) string {
	if f == Responses {
		return `{"type":"input_text","text":`
	}
	return `{"type":"text","text":`
}

// appendOwn appends a user item that holds one text.
func appendOwn(b []byte, f Format, text string) []byte {
	if f == Responses {
		b = append(append(b, `{"type":"message","role":"user","content":[`...), textOpen(f)...)
		return append(append(AppendQuote(b, text), textClose...), `]}`...)
	}
	return append(AppendQuote(append(b, `{"role":"user","content":`...), text), '}')
}

// whole reports an input that is one plain string: item and content are the same.
func (it Item) whole() bool { return it.Plain && it.Span == it.Content }

// lastParts appends text parts to a content that is not empty.
func lastParts(r *Request, item int, texts []string) []Edit {
	it := r.Items[item]
	var b []byte
	for i, t := range texts {
		sep := ","
		if it.Plain && i == 0 {
			sep = fromPlain
		}
		b = append(append(b, sep...), textOpen(r.Format)...)
		b = append(AppendQuote(b, t), textClose...)
	}
	if !it.Plain {
		at := lastPart(it)
		return []Edit{{At: Span{at, at}, With: b}}
	}
	before, after := "", ""
	if it.whole() {
		before, after = wholeOpen, wholeClose
	}
	return []Edit{
		{At: Span{it.Content.Start, it.Content.Start}, With: []byte(before + "[" + textOpen(r.Format))},
		{At: Span{it.Content.End, it.Content.End}, With: append(append(append([]byte(textClose), b...), ']'), after...)},
	}
}

// lastPart is where the last part of an array content ends.
func lastPart(it Item) int {
	at := it.Content.Start + 1
	for _, p := range it.content() {
		at = max(at, p.Span.End)
	}
	return at
}

// Holds reports whether an item has a content that a part can be added to.
func (it Item) Holds() bool {
	if it.Plain {
		return it.Content.End-it.Content.Start > len(`""`)
	}
	return it.Content.End > 0 && lastPart(it) > it.Content.Start+1
}

// ownItem inserts each text as a user item of its own.
func ownItem(r *Request, after int, texts []string) Edit {
	var b []byte
	for _, t := range texts {
		item := appendOwn(nil, r.Format, t)
		if after < 0 {
			b = append(append(b, item...), ',')
		} else {
			b = append(append(b, ','), item...)
		}
	}
	at := r.Items[max(after, 0)].Span.Start
	if after >= 0 {
		at = r.Items[after].Span.End
	}
	return Edit{At: Span{at, at}, With: b}
}

// StripBlocks takes every block of ours out of the user items of a body: parts,
// and items that hold nothing else. Only there are blocks ever put; what imitates
// one in an assistant's text or a tool's output is their text and stays.
func StripBlocks(body []byte, read func([]byte) (*Request, error)) ([]byte, error) {
	if !bytes.Contains(body, frameName) {
		return body, nil
	}
	r, err := read(body)
	if err != nil {
		return nil, err
	}
	spans := make([]Span, len(r.Items))
	gone := make([]bool, len(r.Items))
	var edits []Edit
	for i, it := range r.Items {
		spans[i] = it.Span
		if it.Role != "user" {
			continue
		}
		content := it.content()
		ours, n := make([]bool, len(content)), 0
		for j, p := range content {
			if p.Kind == Text && IsBlock(p.Text) {
				ours[j] = true
				n++
			}
		}
		switch {
		case n == 0:
		case n == len(it.Parts):
			gone[i] = true
		default:
			if e, ok := plainAgain(r, it, ours, n); ok {
				edits = append(edits, e)
				continue
			}
			parts := make([]Span, len(content))
			for j, p := range content {
				parts[j] = p.Span
			}
			edits = append(edits, Cut(parts, func(j int) bool { return ours[j] })...)
		}
	}
	edits = append(edits, Cut(spans, func(i int) bool { return gone[i] })...)
	return Apply(body, edits), nil
}

// content is the parts that stand in the content, in order; others are members of
// their own, such as calls in chat format.
func (it Item) content() []Part {
	var out []Part
	for _, p := range it.Parts {
		if it.Plain && p.Span.End == 0 || p.Span.Start > it.Content.Start && p.Span.End < it.Content.End {
			out = append(out, p)
		}
	}
	return out
}

// plainAgain restores a plain string that lastParts made an array of.
func plainAgain(r *Request, it Item, ours []bool, n int) (Edit, bool) {
	if ours[0] || n != len(ours)-1 {
		return Edit{}, false
	}
	body, open := r.Body, textOpen(r.Format)
	content := it.content()
	first, second := content[0].Span, content[1].Span
	raw := body[first.Start:first.End]
	if first.Start != it.Content.Start+1 || string(body[first.End:second.Start]) != fromPlain ||
		!bytes.HasPrefix(raw, []byte(open+`"`)) || !bytes.HasSuffix(raw, []byte(`"`+textClose)) {
		return Edit{}, false
	}
	str := raw[len(open) : len(raw)-len(textClose)]
	if end := bytes.IndexByte(str[1:], '"'); end != len(str)-2 && !oneString(str) {
		return Edit{}, false // a part with more members
	}
	at := it.Content
	if from, to := at.Start-len(wholeOpen), at.End+len(wholeClose); r.Format == Responses && len(r.Items) == 1 && from >= 0 && to <= len(body) &&
		string(body[from:at.Start]) == wholeOpen && string(body[at.End:to]) == wholeClose {
		at = Span{from, to}
	}
	return Edit{At: at, With: str}, true
}

// oneString reports whether raw is one JSON string and nothing more.
func oneString(raw []byte) bool {
	r := reader(raw)
	defer r.free()
	at, err := r.Value()
	return err == nil && at.Start == 0 && at.End == len(raw)
}
