package wire

import "slices"

// Edit replaces the bytes at a place. An empty place inserts.
type Edit struct {
	At   Span
	With []byte
}

// Pick makes a new body in which the array at a place has only the elements that
// keep says, each byte for byte; body itself when that is all of them.
func Pick(body []byte, at Span, keep func(i int, element []byte) bool) []byte {
	list := ElementsOf(body, at)
	out, all := []byte{'['}, true
	for i, e := range list {
		if !keep(i, body[e.Start:e.End]) {
			all = false
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, body[e.Start:e.End]...)
	}
	if all {
		return body
	}
	return Apply(body, []Edit{{At: at, With: append(out, ']')}})
}

// Apply makes a new body with all edits in it; body itself when there are none.
// Edits at the same place keep their order. Places should not overlap: what an
// earlier edit replaced stays replaced.
func Apply(body []byte, edits []Edit) []byte {
	if len(edits) == 0 {
		return body
	}
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b Edit) int { return a.At.Start - b.At.Start })
	n := len(body)
	for _, e := range edits {
		n += len(e.With)
	}
	out := make([]byte, 0, n)
	at := 0
	for _, e := range edits {
		if e.At.Start > at {
			out = append(out, body[at:e.At.Start]...)
		}
		out = append(out, e.With...)
		at = max(at, e.At.End)
	}
	return append(out, body[at:]...)
}

// Cut is the edits that take elements out of an array, or members out of an
// object, each with one comma. The white space around what stays is untouched.
func Cut(elements []Span, drop func(i int) bool) []Edit {
	var out []Edit
	for i := 0; i < len(elements); i++ {
		if !drop(i) {
			continue
		}
		first := i
		for i+1 < len(elements) && drop(i+1) {
			i++
		}
		switch {
		case first > 0:
			out = append(out, Edit{At: Span{elements[first-1].End, elements[i].End}})
		case i+1 < len(elements):
			out = append(out, Edit{At: Span{elements[first].Start, elements[i+1].Start}})
		default:
			out = append(out, Edit{At: Span{elements[first].Start, elements[i].End}})
		}
	}
	return out
}

// Object collects changes to the members of one object.
type Object struct {
	at      Span
	members []Member
	drop    []bool
	set     [][]byte // new values, by member; nil = as it was
	added   []byte
}

// NewObject edits the object at a place; members are its own, in order.
func NewObject(at Span, members []Member) *Object {
	return &Object{at: at, members: members, drop: make([]bool, len(members)), set: make([][]byte, len(members))}
}

// Has reports whether the object has a member of that name.
func (o *Object) Has(name string) bool {
	_, ok := Find(o.members, name)
	return ok
}

// Set gives a member a value, in its old place or as the last one.
func (o *Object) Set(name string, value []byte) {
	for i, m := range o.members {
		if m.Name == name {
			o.drop[i], o.set[i] = false, value
			return
		}
	}
	o.added = append(o.added, ',')
	o.added = AppendQuote(o.added, name)
	o.added = append(o.added, ':')
	o.added = append(o.added, value...)
}

// Drop takes members out, those that are there.
func (o *Object) Drop(names ...string) {
	for i, m := range o.members {
		if slices.Contains(names, m.Name) {
			o.drop[i] = true
		}
	}
}

// Edits are the changes as bytes.
func (o *Object) Edits() []Edit {
	spans := make([]Span, len(o.members))
	kept := 0
	for i, m := range o.members {
		spans[i] = Span{m.Key.Start, m.Value.End}
		if !o.drop[i] {
			kept++
		}
	}
	out := Cut(spans, func(i int) bool { return o.drop[i] })
	for i, v := range o.set {
		if v != nil && !o.drop[i] {
			out = append(out, Edit{At: o.members[i].Value, With: v})
		}
	}
	if len(o.added) > 0 {
		at, add := o.at.Start+1, o.added
		if len(spans) > 0 {
			at = spans[len(spans)-1].End
		}
		if kept == 0 {
			add = add[1:]
		}
		out = append(out, Edit{At: Span{at, at}, With: add})
	}
	return out
}

// Edited is the body of the object with the changes; for an object that is a
// text of its own.
func (o *Object) Edited(body []byte) []byte { return Apply(body, o.Edits()) }

// Top edits the top-level object of a request.
func (r *Request) Top() *Object {
	at := Span{0, len(r.Body)}
	for at.Start < len(r.Body) && r.Body[at.Start] != '{' {
		at.Start++
	}
	return NewObject(at, r.Members)
}

// Raw is the bytes of a top-level member; nil when there is none.
func (r *Request) Raw(name string) []byte {
	m, ok := Find(r.Members, name)
	if !ok {
		return nil
	}
	return r.Body[m.Value.Start:m.Value.End]
}

// ObjectIn edits an object that stands alone in raw, e.g. the value of a member.
func ObjectIn(raw []byte) *Object {
	at := Span{0, len(raw)}
	return NewObject(at, MembersOf(raw, at))
}

// Len is how many members stay or were added.
func (o *Object) Len() int {
	n := len(o.added)
	for _, d := range o.drop {
		if !d {
			n++
		}
	}
	return n
}

// Keeps reports whether the i-th of the old members stays.
func (o *Object) Keeps(i int) bool { return !o.drop[i] }
