package extract

import (
	"path"
	"strings"
)

// nginxDump is what `nginx -T` prints, as the tree that nginx would build:
// each include stands where it is written, so that a directive's context is
// known. Found by trying: the first match in the text is often the decoy, since
// the file that overrides it is printed later.
type nginxDump struct {
	root   *nginxBlock
	broken bool // a dump by its marks, but not to be read: nothing in it is a value
}

type nginxBlock struct {
	name     string
	args     []string
	children []*nginxBlock // in order; a simple directive has block == false
	block    bool
	place    string
}

const (
	maxNginxNodes = 50_000    // after expansion of includes
	maxNginxWork  = 2_000_000 // file names held against include patterns
	maxNginxDepth = 32
)

// parseNginx returns nil when the output is no nginx configuration: no file
// marks, and no http, server or events block or braces that do not match.
func parseNginx(lines []line) *nginxDump {
	files := map[string][]line{}
	var order []string
	for _, l := range lines {
		if strings.HasPrefix(l.text, fileMark) && l.n == 0 {
			if _, seen := files[l.file]; !seen {
				order = append(order, l.file)
				files[l.file] = nil
			}
			continue
		}
		if l.file != "" {
			files[l.file] = append(files[l.file], l)
		}
	}
	if len(order) == 0 {
		if !looksLikeNginx(lines) {
			return nil
		}
		order, files[""] = []string{""}, lines
	}
	p := &nginxParser{files: files, order: order, toks: map[string][]nginxToken{}, base: path.Dir(order[0])}
	root := &nginxBlock{block: true}
	if !p.file(order[0], root, 0) {
		if order[0] == "" {
			return nil
		}
		return &nginxDump{root: root, broken: true}
	}
	return &nginxDump{root: root}
}

func looksLikeNginx(lines []line) bool {
	for _, l := range lines {
		switch strings.Join(strings.Fields(l.text), " ") {
		case "http {", "http{", "server {", "server{", "events {", "events{":
			return true
		}
	}
	return false
}

type nginxParser struct {
	files map[string][]line
	order []string
	toks  map[string][]nginxToken // of the files read so far
	base  string
	nodes int
	work  int
}

// file parses one dumped file into b.
func (p *nginxParser) file(name string, b *nginxBlock, depth int) bool {
	if depth > maxNginxDepth {
		return false
	}
	toks, seen := p.toks[name]
	if !seen {
		var ok bool
		if toks, ok = nginxTokens(p.files[name]); !ok {
			return false
		}
		p.toks[name] = toks
	}
	rest, ok := p.statements(toks, b, depth, name)
	return ok && len(rest) == 0
}

// statements parses until the closing brace of b or the end.
func (p *nginxParser) statements(toks []nginxToken, b *nginxBlock, depth int, file string) ([]nginxToken, bool) {
	for len(toks) > 0 {
		if toks[0].mark == '}' {
			return toks, true
		}
		var words []nginxToken
		for len(toks) > 0 && toks[0].mark == 0 {
			words, toks = append(words, toks[0]), toks[1:]
		}
		if len(toks) == 0 || len(words) == 0 {
			return nil, false
		}
		if p.nodes++; p.nodes > maxNginxNodes || depth > maxNginxDepth {
			return nil, false
		}
		n := &nginxBlock{name: words[0].text, place: words[0].place}
		for _, w := range words[1:] {
			n.args = append(n.args, w.text)
		}
		switch toks[0].mark {
		case ';':
			toks = toks[1:]
			if n.name == "include" && len(n.args) == 1 {
				if !p.include(n.args[0], b, depth, file) {
					return nil, false
				}
				continue
			}
		case '{':
			n.block = true
			rest, ok := p.statements(toks[1:], n, depth+1, file)
			if !ok || len(rest) == 0 {
				return nil, false
			}
			toks = rest[1:]
		default:
			return nil, false
		}
		b.children = append(b.children, n)
	}
	return nil, true
}

// include puts the dumped files that pattern names into b. A file outside the
// dump (mime.types cut off) contributes nothing.
func (p *nginxParser) include(pattern string, b *nginxBlock, depth int, from string) bool {
	if !path.IsAbs(pattern) && p.base != "." {
		pattern = path.Join(p.base, pattern)
	}
	if p.work += len(p.order); p.work > maxNginxWork {
		return false
	}
	for _, name := range p.order {
		if ok, err := path.Match(pattern, name); name == from || name != pattern && (err != nil || !ok) {
			continue
		}
		if !p.file(name, b, depth+1) {
			return false
		}
	}
	return true
}

type nginxToken struct {
	text  string
	mark  byte // ; { } or 0 for a word
	place string
}

// nginxTokens splits as nginx does: quotes, backslashes, comments, ${name}
// inside a word, and Lua blocks, whose code is no configuration, skipped.
func nginxTokens(lines []line) ([]nginxToken, bool) {
	var toks []nginxToken
	lua := 0 // open braces of a Lua block
	var word strings.Builder
	var place string
	quote, inWord := byte(0), false
	flush := func() {
		if inWord {
			toks = append(toks, nginxToken{text: word.String(), place: place})
		}
		word.Reset()
		inWord = false
	}
	for _, l := range lines {
		s := l.text
		for i := 0; i < len(s); i++ {
			c := s[i]
			if lua > 0 {
				switch c {
				case '{':
					lua++
				case '}':
					if lua--; lua == 0 {
						toks = append(toks, nginxToken{mark: ';', place: l.place()})
					}
				}
				continue
			}
			if quote != 0 {
				switch {
				case c == '\\' && i+1 < len(s):
					i++
					word.WriteByte(s[i])
				case c == quote:
					quote = 0
				default:
					word.WriteByte(c)
				}
				continue
			}
			switch {
			case c == ' ' || c == '\t' || c == '\r':
				flush()
			case c == '#' && !inWord:
				i = len(s)
			case (c == '"' || c == '\'') && !inWord:
				quote, inWord, place = c, true, l.place()
			case c == ';' || c == '{' && !(i > 0 && s[i-1] == '$') || c == '}' && !strings.Contains(word.String(), "${"):
				flush()
				if c == '{' && len(toks) > 0 && strings.HasSuffix(toks[len(toks)-1].text, "_by_lua_block") {
					lua = 1
					continue
				}
				toks = append(toks, nginxToken{mark: c, place: l.place()})
			default:
				if c == '\\' && i+1 < len(s) {
					if !inWord {
						inWord, place = true, l.place()
					}
					word.WriteByte(c)
					i++
					c = s[i]
				}
				if !inWord {
					inWord, place = true, l.place()
				}
				word.WriteByte(c)
			}
		}
		if quote != 0 {
			word.WriteByte('\n')
		} else if lua == 0 {
			flush()
		}
	}
	return toks, quote == 0 && lua == 0 && !inWord
}

// scan offers every simple directive, wherever it stands, as `name args`.
func (d *nginxDump) scan(read func(string) (string, bool)) found {
	if d.broken {
		return found{unclear: true}
	}
	var f found
	var walk func(b *nginxBlock)
	walk = func(b *nginxBlock) {
		for _, c := range b.children {
			if len(f.matches) > maxMatches {
				return
			}
			if c.block {
				walk(c)
				continue
			}
			if v, ok := read(strings.Join(append([]string{c.name}, c.args...), " ")); ok {
				f.matches = append(f.matches, match{v, c.place})
			}
		}
	}
	walk(d.root)
	return f
}

// effective is what holds for requests: per server, and per location that
// overrides it. Several different outcomes are all returned, which settle makes
// ambiguous: which of them a claim means is not known here. A directive that
// stands only outside servers (worker_processes) is taken from there.
func (d *nginxDump) effective(name string) found {
	if d.broken {
		return found{unclear: true}
	}
	var f found
	var servers int
	for _, proto := range d.root.children {
		if !proto.block || proto.name != "http" && proto.name != "stream" && proto.name != "mail" || !proto.mentions(name) {
			continue
		}
		var all, serving []*nginxBlock
		for _, s := range proto.blocks("server") {
			all = append(all, s)
			if !s.answersByItself() {
				serving = append(serving, s)
			}
		}
		if len(serving) > 0 {
			all = serving
		}
		outer, bad := proto.own(name, nil)
		f.unclear = f.unclear || bad
		for _, s := range all {
			servers++
			f.server(s, name, outer)
		}
	}
	if servers > 0 {
		return f
	}
	// No server says or inherits it: the outermost place that has it.
	for _, b := range append([]*nginxBlock{d.root}, d.root.children...) {
		if !b.block {
			continue
		}
		m, bad := b.own(name, nil)
		f.unclear = f.unclear || bad
		if m != nil {
			f.matches = append(f.matches, *m)
		}
	}
	if len(f.matches) == 0 {
		// A fragment: servers without http around them.
		for _, s := range d.root.blocks("server") {
			if s.mentions(name) {
				f.server(s, name, nil)
			}
		}
	}
	return f
}

// server adds what holds inside one server.
func (f *found) server(s *nginxBlock, name string, outer *match) {
	own, bad := s.own(name, outer)
	f.unclear = f.unclear || bad
	locations := s.blocks("location")
	catchAll := false
	for _, l := range locations {
		if len(l.args) == 1 && l.args[0] == "/" || len(l.args) == 2 && l.args[0] == "^~" && l.args[1] == "/" {
			catchAll = true
		}
		f.location(l, name, own)
	}
	if !catchAll {
		f.add(own)
	}
	for _, c := range s.blocks("if") {
		f.unclear = f.unclear || c.mentions(name)
	}
}

func (f *found) location(l *nginxBlock, name string, outer *match) {
	own, bad := l.own(name, outer)
	f.unclear = f.unclear || bad
	f.add(own)
	for _, c := range l.children {
		if !c.block {
			continue
		}
		if c.name == "location" {
			f.location(c, name, own)
		} else if c.mentions(name) { // if, limit_except
			f.unclear = true
		}
	}
}

// add keeps a value; a place without one runs on nginx's default, which this
// output does not say, so beside other values it is unclear.
func (f *found) add(m *match) {
	if m == nil {
		f.unclear = true
		return
	}
	f.matches = append(f.matches, *m)
}

// own is b's own value of the directive or, without one, outer. Two different
// ones in one block are unclear.
func (b *nginxBlock) own(name string, outer *match) (*match, bool) {
	m := outer
	seen := false
	for _, c := range b.children {
		if c.block || c.name != name {
			continue
		}
		text := strings.Join(c.args, " ")
		if seen && m.text != text {
			return m, true
		}
		m, seen = &match{text, c.place}, true
	}
	return m, false
}

func (b *nginxBlock) blocks(name string) []*nginxBlock {
	var out []*nginxBlock
	for _, c := range b.children {
		if c.block && c.name == name {
			out = append(out, c)
		}
	}
	return out
}

// mentions: the directive stands somewhere inside b.
func (b *nginxBlock) mentions(name string) bool {
	for _, c := range b.children {
		if c.block && c.mentions(name) || !c.block && c.name == name {
			return true
		}
	}
	return false
}

// answersByItself: a server that returns at once (a redirect to https) handles
// no request further, so its limits are not the ones in effect.
func (b *nginxBlock) answersByItself() bool {
	for _, c := range b.children {
		if !c.block && c.name == "return" {
			return true
		}
	}
	return false
}
