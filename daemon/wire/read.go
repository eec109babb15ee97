package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Reader walks one JSON text strictly, member by member, and knows the place of
// everything it passes. Duplicate names at any depth, invalid UTF-8 and trailing
// data are faults; escaped lone surrogates, which JavaScript clients do send, are
// not: they stay as bytes and decode to U+FFFD.
type Reader struct {
	body []byte
	buf  bytes.Buffer
	dec  jsontext.Decoder
}

// readers are kept, since a stream reads many small values.
var readers = sync.Pool{New: func() any { return new(Reader) }}

var lenient = []jsontext.Options{jsontext.AllowInvalidUTF8(true)}

// reader starts reading body, which must not change until free.
func reader(body []byte) *Reader {
	r := readers.Get().(*Reader)
	r.start(body)
	return r
}

func (r *Reader) start(body []byte) {
	r.body, r.buf = body, *bytes.NewBuffer(body)
	r.dec.Reset(&r.buf, lenient...)
}

func (r *Reader) free() {
	r.start(nil) // a kept reader holds on to no body
	readers.Put(r)
}

// Whole reads body as exactly one value: read consumes it.
func Whole(body []byte, read func(r *Reader) error) error {
	if !utf8.Valid(body) {
		at := 0
		for at < len(body) {
			c, n := utf8.DecodeRune(body[at:])
			if c == utf8.RuneError && n <= 1 {
				break
			}
			at += n
		}
		return Fault(body, at, "invalid UTF-8")
	}
	r := reader(body)
	defer r.free()
	if err := read(r); err != nil {
		return err
	}
	end := int(r.dec.InputOffset())
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return Fault(body, end, "data after the end of the JSON value")
	}
	return nil
}

// Fault is a *Malformed with the line and column of offset.
func Fault(body []byte, offset int, what string) *Malformed {
	offset = min(max(offset, 0), len(body))
	line := 1 + bytes.Count(body[:offset], []byte{'\n'})
	column := offset - bytes.LastIndexByte(body[:offset], '\n')
	return &Malformed{What: what, Offset: offset, Line: line, Column: column}
}

// fault turns an error of the decoder into one with a place.
func (r *Reader) fault(err error) error {
	var syn *jsontext.SyntacticError
	if !errors.As(err, &syn) {
		return Fault(r.body, int(r.dec.InputOffset()), "unexpected end of JSON")
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return Fault(r.body, int(syn.ByteOffset), fmt.Sprintf("duplicate key at %.200q", string(syn.JSONPointer)))
	}
	return Fault(r.body, int(syn.ByteOffset), fmt.Sprintf("not JSON: %v", syn.Err))
}

// Kind is the kind of the next value: { [ " 0 t f n, or 0 at a fault, which the
// next read reports.
func (r *Reader) Kind() jsontext.Kind { return r.dec.PeekKind() }

// Value reads the next value, of any kind, and returns its place.
func (r *Reader) Value() (Span, error) {
	v, err := r.dec.ReadValue()
	if err != nil {
		return Span{}, r.fault(err)
	}
	end := int(r.dec.InputOffset())
	return Span{end - len(v), end}, nil
}

// Object reads an object; member is called after each name and must read the value.
func (r *Reader) Object(member func(name []byte, key Span) error) (Span, error) {
	start, err := r.open('{', "an object")
	if err != nil {
		return Span{}, err
	}
	for r.dec.PeekKind() != '}' {
		key, err := r.Value()
		if err != nil {
			return Span{}, err
		}
		if err := member(r.unquote(key), key); err != nil {
			return Span{}, err
		}
	}
	return r.close(start)
}

// Array reads an array; element must read one value each time.
func (r *Reader) Array(element func(i int) error) (Span, error) {
	start, err := r.open('[', "an array")
	if err != nil {
		return Span{}, err
	}
	for i := 0; r.dec.PeekKind() != ']'; i++ {
		if err := element(i); err != nil {
			return Span{}, err
		}
	}
	return r.close(start)
}

func (r *Reader) open(kind jsontext.Kind, want string) (int, error) {
	if got := r.dec.PeekKind(); got != kind && got != 0 && got != ']' && got != '}' {
		return 0, r.Wrong(want)
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return 0, r.fault(err)
	}
	return int(r.dec.InputOffset()) - 1, nil
}

func (r *Reader) close(start int) (Span, error) {
	if _, err := r.dec.ReadToken(); err != nil {
		return Span{}, r.fault(err)
	}
	return Span{start, int(r.dec.InputOffset())}, nil
}

// Wrong reads the next value and reports that something else was wanted.
func (r *Reader) Wrong(want string) error {
	at, err := r.Value()
	if err != nil {
		return err
	}
	got := "a number"
	switch r.body[at.Start] {
	case '{':
		got = "an object"
	case '[':
		got = "an array"
	case '"':
		got = "a string"
	case 't', 'f':
		got = "a bool"
	case 'n':
		got = "null"
	}
	return Fault(r.body, at.Start, fmt.Sprintf("%s expected, not %s", want, got))
}

// String reads a string, or null as "".
func (r *Reader) String() (string, Span, error) {
	switch r.dec.PeekKind() {
	case '"':
		at, err := r.Value()
		if err != nil {
			return "", at, err
		}
		return string(r.unquote(at)), at, nil
	case 'n':
		at, err := r.Value()
		return "", at, err
	case 0:
		_, err := r.Value()
		return "", Span{}, err
	}
	return "", Span{}, r.Wrong("a string")
}

// Bool reads a bool, or null as false.
func (r *Reader) Bool() (bool, error) {
	switch r.dec.PeekKind() {
	case 't', 'f', 'n', 0:
		at, err := r.Value()
		return err == nil && r.body[at.Start] == 't', err
	}
	return false, r.Wrong("a bool")
}

// Int reads a number, or null as 0. A fraction is cut, what does not fit is the
// nearest bound: counts of tokens come as 1e3 from some.
func (r *Reader) Int() (int64, error) {
	switch r.dec.PeekKind() {
	case '0':
		tok, err := r.dec.ReadToken()
		if err != nil {
			return 0, r.fault(err)
		}
		n, _ := tok.Int() // the nearest bound stands beside the error
		return n, nil
	case 'n', 0:
		_, err := r.Value()
		return 0, err
	}
	return 0, r.Wrong("a number")
}

// Int reads raw, a number or null, like Reader.Int.
func Int(raw []byte) (int64, error) {
	r := reader(raw)
	defer r.free()
	return r.Int()
}

// Raw is the bytes at a place.
func (r *Reader) Raw(at Span) []byte { return r.body[at.Start:at.End] }

func (r *Reader) unquote(at Span) []byte { return Unquote(r.body[at.Start:at.End]) }

// Unquote decodes a JSON string that has been read already. Without escapes the
// result is part of raw.
func Unquote(raw []byte) []byte {
	if len(raw) < 2 {
		return nil
	}
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	b, _ := jsontext.AppendUnquote(make([]byte, 0, len(raw)), raw) // a lone surrogate becomes U+FFFD
	return b
}

// AppendQuote appends s as a JSON string; what is not UTF-8 becomes U+FFFD.
func AppendQuote(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

// Quote is AppendQuote to a new slice.
func Quote(s string) []byte { return AppendQuote(make([]byte, 0, len(s)+len(s)/16+2), s) }

// MembersOf lists the members of the object at a place of a body that has been
// read already; none when it is no object.
func MembersOf(body []byte, at Span) []Member {
	if at.End <= at.Start || body[at.Start] != '{' {
		return nil
	}
	out := make([]Member, 0, 6)
	r := reader(body[at.Start:at.End])
	defer r.free()
	_, err := r.Object(func(name []byte, key Span) error {
		v, err := r.Value()
		out = append(out, Member{string(name), key.Shift(at.Start), v.Shift(at.Start)})
		return err
	})
	if err != nil {
		return nil
	}
	return out
}

// ElementsOf lists the elements of the array at a place of a body that has been
// read already; none when it is no array.
func ElementsOf(body []byte, at Span) []Span {
	if at.End <= at.Start || body[at.Start] != '[' {
		return nil
	}
	var out []Span
	r := reader(body[at.Start:at.End])
	defer r.free()
	_, err := r.Array(func(int) error {
		v, err := r.Value()
		out = append(out, v.Shift(at.Start))
		return err
	})
	if err != nil {
		return nil
	}
	return out
}

// Shift moves a place by n bytes.
func (s Span) Shift(n int) Span { return Span{s.Start + n, s.End + n} }

// Find returns the member of that name.
func Find(members []Member, name string) (Member, bool) {
	for _, m := range members {
		if m.Name == name {
			return m, true
		}
	}
	return Member{}, false
}

// FaultAt is a *Malformed at an offset of the text that is read.
func (r *Reader) FaultAt(offset int, what string) *Malformed { return Fault(r.body, offset, what) }
