package verify

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	maxInteger = 1 << 53
	maxDepth   = 10000
)

// ErrJSON is wrapped by every refusal of bytes that are no JSON which RFC 8785
// carries faithfully.
var ErrJSON = errors.New("not faithful JSON")

// Canonical returns the RFC 8785 form of one JSON value. Duplicate names,
// invalid UTF-8, lone surrogates, integer literals beyond 2^53, numbers beyond
// the doubles and more than 10,000 levels are refused.
func Canonical(src []byte) ([]byte, error) {
	p := parser{src: src}
	return p.document(make([]byte, 0, len(src)))
}

// member is a name and its canonical value, as places in the output.
type member struct {
	start, end int // of name, colon and value
	value      int // start of the value
	plain      bool
}

// parser reads JSON and writes the canonical form as it goes.
type parser struct {
	src   []byte
	pos   int
	depth int
	stack []member // members of the objects that are open
	top   []member // members of the outermost object
}

func (p *parser) fail(what string) error {
	return fmt.Errorf("%w: %s at byte %d", ErrJSON, what, p.pos)
}

func (p *parser) document(out []byte) ([]byte, error) {
	out, err := p.value(out)
	if err != nil {
		return nil, err
	}
	if p.space(); p.pos != len(p.src) {
		return nil, p.fail("more than one value")
	}
	return out, nil
}

func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// next is the byte to come behind white space, 0 at the end.
func (p *parser) next() byte {
	if p.space(); p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func (p *parser) value(out []byte) ([]byte, error) {
	switch c := p.next(); {
	case c == '{':
		return p.object(out)
	case c == '[':
		return p.array(out)
	case c == '"':
		out, _, err := p.text(out)
		return out, err
	case c == '-' || c >= '0' && c <= '9':
		return p.number(out)
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if len(p.src)-p.pos >= len(word) && string(p.src[p.pos:p.pos+len(word)]) == word {
			p.pos += len(word)
			return append(out, word...), nil
		}
	}
	return nil, p.fail("no value")
}

// open enters an object or array whose first byte is at pos.
func (p *parser) open() error {
	if p.depth++; p.depth > maxDepth {
		return p.fail("too deep")
	}
	p.pos++
	return nil
}

func (p *parser) array(out []byte) ([]byte, error) {
	if err := p.open(); err != nil {
		return nil, err
	}
	out = append(out, '[')
	for first := true; ; first = false {
		c := p.next()
		if c == ']' && first {
			break
		}
		var err error
		if out, err = p.value(out); err != nil {
			return nil, err
		}
		if c = p.next(); c == ']' {
			break
		}
		if c != ',' {
			return nil, p.fail("no comma")
		}
		p.pos++
		out = append(out, ',')
	}
	p.pos++
	p.depth--
	return append(out, ']'), nil
}

func (p *parser) object(out []byte) ([]byte, error) {
	if err := p.open(); err != nil {
		return nil, err
	}
	base, from := len(p.stack), len(out)+1
	out = append(out, '{')
	for first := true; ; first = false {
		c := p.next()
		if c == '}' && first {
			break
		}
		if c != '"' {
			return nil, p.fail("no name")
		}
		m := member{start: len(out)}
		var err error
		if out, m.plain, err = p.text(out); err != nil {
			return nil, err
		}
		if p.next() != ':' {
			return nil, p.fail("no colon")
		}
		p.pos++
		out = append(out, ':')
		m.value = len(out)
		if out, err = p.value(out); err != nil {
			return nil, err
		}
		m.end = len(out)
		p.stack = append(p.stack, m)
		if c = p.next(); c == '}' {
			break
		}
		if c != ',' {
			return nil, p.fail("no comma")
		}
		p.pos++
		out = append(out, ',')
	}
	p.pos++
	p.depth--
	members := p.stack[base:]
	if err := p.sort(out, members, from); err != nil {
		return nil, err
	}
	if p.depth == 0 {
		p.top = slices.Clone(members)
	}
	p.stack = p.stack[:base]
	return append(out, '}'), nil
}

// sort brings the members of an object into order, in place: out[from:] holds
// them with a comma between each two.
func (p *parser) sort(out []byte, members []member, from int) error {
	ordered := true
	for i := 1; i < len(members); i++ {
		ordered = ordered && compareNames(out, members[i-1], members[i]) < 0
	}
	if ordered {
		return nil
	}
	slices.SortFunc(members, func(a, b member) int { return compareNames(out, a, b) })
	for i := 1; i < len(members); i++ {
		if compareNames(out, members[i-1], members[i]) == 0 {
			return p.fail("a name stands twice in the object that ends")
		}
	}
	sorted := make([]byte, 0, len(out)-from)
	for i, m := range members {
		if i > 0 {
			sorted = append(sorted, ',')
		}
		by := from + len(sorted) - m.start
		sorted = append(sorted, out[m.start:m.end]...)
		members[i].start, members[i].value, members[i].end = m.start+by, m.value+by, m.end+by
	}
	copy(out[from:], sorted)
	return nil
}

// compareNames orders two names by their UTF-16 code units.
func compareNames(out []byte, a, b member) int {
	x, y := out[a.start+1:a.value-2], out[b.start+1:b.value-2]
	if a.plain && b.plain {
		return slices.Compare(x, y)
	}
	return slices.Compare(units(x), units(y))
}

// units decodes the inside of a canonical string.
func units(s []byte) []uint16 {
	var runes []rune
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			r, n := utf8.DecodeRune(s[i:])
			runes, i = append(runes, r), i+n
			continue
		}
		switch c := s[i+1]; c {
		case 'u':
			v, _ := strconv.ParseUint(string(s[i+2:i+6]), 16, 16) // we wrote it
			runes, i = append(runes, rune(v)), i+6
		default:
			runes, i = append(runes, short(c)), i+2
		}
	}
	return utf16.Encode(runes)
}

// short is what a two-character escape stands for, -1 for none.
func short(c byte) rune {
	switch c {
	case '"', '\\', '/':
		return rune(c)
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return -1
}

// text reads a string and writes its canonical form. plain says that it is
// ASCII without an escape.
func (p *parser) text(out []byte) (_ []byte, plain bool, err error) {
	p.pos++
	out = append(out, '"')
	plain = true
	for {
		start := p.pos
		for p.pos < len(p.src) && p.src[p.pos] >= 0x20 && p.src[p.pos] < 0x80 && p.src[p.pos] != '"' && p.src[p.pos] != '\\' {
			p.pos++
		}
		out = append(out, p.src[start:p.pos]...)
		if p.pos == len(p.src) {
			return nil, false, p.fail("string without an end")
		}
		switch c := p.src[p.pos]; {
		case c == '"':
			p.pos++
			return append(out, '"'), plain, nil
		case c < 0x20:
			return nil, false, p.fail("control character")
		case c == '\\':
			plain = false
			r, err := p.escape()
			if err != nil {
				return nil, false, err
			}
			out = quote(out, r)
		default:
			plain = false
			r, n := utf8.DecodeRune(p.src[p.pos:])
			if r == utf8.RuneError && n <= 1 {
				return nil, false, p.fail("invalid UTF-8")
			}
			out = append(out, p.src[p.pos:p.pos+n]...)
			p.pos += n
		}
	}
}

func quote(out []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(out, '\\', byte(r))
	case '\b':
		return append(out, `\b`...)
	case '\f':
		return append(out, `\f`...)
	case '\n':
		return append(out, `\n`...)
	case '\r':
		return append(out, `\r`...)
	case '\t':
		return append(out, `\t`...)
	}
	if r < 0x20 {
		return fmt.Appendf(out, `\u%04x`, r)
	}
	return utf8.AppendRune(out, r)
}

func (p *parser) escape() (rune, error) {
	if p.pos+1 >= len(p.src) {
		return 0, p.fail("string without an end")
	}
	if c := p.src[p.pos+1]; c != 'u' {
		r := short(c)
		if r < 0 {
			return 0, p.fail("unknown escape")
		}
		p.pos += 2
		return r, nil
	}
	hi, ok := p.unit(p.pos)
	if !ok {
		return 0, p.fail("bad escape")
	}
	if !utf16.IsSurrogate(hi) {
		p.pos += 6
		return hi, nil
	}
	lo, ok := p.unit(p.pos + 6)
	r := utf16.DecodeRune(hi, lo)
	if !ok || r == utf8.RuneError {
		return 0, p.fail("lone surrogate")
	}
	p.pos += 12
	return r, nil
}

func (p *parser) unit(at int) (rune, bool) {
	if at+6 > len(p.src) || p.src[at] != '\\' || p.src[at+1] != 'u' {
		return 0, false
	}
	var v rune
	for _, c := range p.src[at+2 : at+6] {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			v = v<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

func (p *parser) digits() int {
	start := p.pos
	for p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' {
		p.pos++
	}
	return p.pos - start
}

func (p *parser) at(set string) bool {
	if p.pos < len(p.src) {
		for i := range len(set) {
			if p.src[p.pos] == set[i] {
				p.pos++
				return true
			}
		}
	}
	return false
}

func (p *parser) number(out []byte) ([]byte, error) {
	start := p.pos
	negative := p.at("-")
	first := p.pos
	if n := p.digits(); n == 0 || n > 1 && p.src[first] == '0' {
		return nil, p.fail("no number")
	}
	whole := p.pos
	if p.at(".") && p.digits() == 0 {
		return nil, p.fail("no digits behind the point")
	}
	if p.at("eE") {
		p.at("+-")
		if p.digits() == 0 {
			return nil, p.fail("no digits in the exponent")
		}
	}
	if p.pos == whole {
		v, err := strconv.ParseUint(string(p.src[first:whole]), 10, 64)
		if err != nil || v > maxInteger {
			return nil, p.fail("integer beyond 2^53")
		}
		if negative && v != 0 {
			out = append(out, '-')
		}
		return strconv.AppendUint(out, v, 10), nil
	}
	f, err := strconv.ParseFloat(string(p.src[start:p.pos]), 64)
	if err != nil {
		return nil, p.fail("number beyond the doubles")
	}
	return double(out, f), nil
}

// double writes f as ECMAScript's Number::toString does.
func double(out []byte, f float64) []byte {
	if f == 0 {
		return append(out, '0')
	}
	if f < 0 {
		out, f = append(out, '-'), -f
	}
	if f >= 1e-6 && f < 1e21 {
		return strconv.AppendFloat(out, f, 'f', -1, 64)
	}
	s := strconv.AppendFloat(nil, f, 'e', -1, 64)
	// Go pads the exponent to two digits, ECMAScript does not.
	if n := len(s); s[n-2] == '0' && (s[n-3] == '-' || s[n-3] == '+') {
		s = append(s[:n-2], s[n-1])
	}
	return append(out, s...)
}
