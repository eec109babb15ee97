package spec

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Limits of a command. A longer one is a script and belongs in a file, where
// the approval pin covers it.
const (
	MaxCommandBytes = 4096
	MaxWords        = 64
)

// SplitError is a fault of a command template. Offset counts bytes from the
// start of the text.
type SplitError struct {
	Offset int
	What   string
	Hint   string
}

func (e *SplitError) Error() string {
	return fmt.Sprintf("command, character %d: %s", e.Offset+1, e.What)
}

var placeholder = regexp.MustCompile(`^\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*\}\}`)

// Split reads a command template into words the way a person who knows shells
// expects, and refuses what only a shell could do: nothing is expanded, now or
// later. Placeholders are found before quotes, so {{ x }} is one word. Errors
// are *SplitError.
func Split(text string) ([]Word, error) {
	sp := splitter{text: text}
	if err := sp.run(); err != nil {
		return nil, err
	}
	if err := checkProgram(sp.words); err != nil {
		return nil, err
	}
	return sp.words, nil
}

// List makes words of a command that is written as a list. Nothing in them is
// special but placeholders. An error's Offset counts within the element Elem.
func List(elems []string) (words []Word, elem int, err error) {
	for i, e := range elems {
		if off := badByte(e); off >= 0 {
			return nil, i, &SplitError{Offset: off, What: "control characters and invalid UTF-8 are not allowed"}
		}
		words = append(words, Word{Text: e, Parts: parts(e)})
	}
	if err := checkProgram(words); err != nil {
		return nil, 0, err
	}
	return words, 0, nil
}

// parts cuts literal text at its placeholders.
func parts(s string) []WordPart {
	var out []WordPart
	start := 0
	for i := 0; i < len(s); {
		if m := placeholder.FindStringSubmatch(s[i:]); m != nil {
			if i > start {
				out = append(out, WordPart{Literal: s[start:i]})
			}
			out = append(out, WordPart{Param: m[1]})
			i += len(m[0])
			start = i
			continue
		}
		i++
	}
	if start < len(s) {
		out = append(out, WordPart{Literal: s[start:]})
	}
	return out
}

// badByte returns the offset of the first NUL, control character or invalid
// UTF-8, or -1. A tab may stand in an argument.
func badByte(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
		if (r < 0x20 && r != '\t') || (r >= 0x7f && r < 0xa0) {
			return i
		}
	}
	return -1
}

type splitter struct {
	text  string
	pos   int
	words []Word

	// The word being read. open: a word has begun, an empty quoted one too.
	open    bool
	start   int
	spelled strings.Builder // quotes resolved, placeholders as spelled
	parts   []WordPart
	lit     strings.Builder
}

func (s *splitter) fail(off int, what, hint string) error {
	return &SplitError{Offset: off, What: what, Hint: hint}
}

func (s *splitter) run() error {
	if len(s.text) > MaxCommandBytes {
		return s.fail(MaxCommandBytes, fmt.Sprintf("longer than %d bytes", MaxCommandBytes), "put it in a script of the project")
	}
	if off := badByte(s.text); off >= 0 && s.text[off] != '\n' && s.text[off] != '\r' {
		return s.fail(off, "control characters and invalid UTF-8 are not allowed", "")
	}
	for s.pos < len(s.text) {
		if err := s.step(); err != nil {
			return err
		}
	}
	return s.end()
}

func (s *splitter) begin() {
	if !s.open {
		s.open, s.start = true, s.pos
	}
}

func (s *splitter) put(text string) {
	s.spelled.WriteString(text)
	s.lit.WriteString(text)
}

func (s *splitter) flush() {
	if s.lit.Len() > 0 {
		s.parts = append(s.parts, WordPart{Literal: s.lit.String()})
		s.lit.Reset()
	}
}

func (s *splitter) end() error {
	if !s.open {
		return nil
	}
	s.flush()
	if len(s.words) == MaxWords {
		return s.fail(s.start, fmt.Sprintf("more than %d words", MaxWords), "put it in a script of the project")
	}
	s.words = append(s.words, Word{Text: s.spelled.String(), Parts: s.parts})
	s.open, s.parts = false, nil
	s.spelled.Reset()
	return nil
}

// placeholder takes one at the current position, whatever quotes are open.
func (s *splitter) placeholder() bool {
	m := placeholder.FindStringSubmatch(s.text[s.pos:])
	if m == nil {
		return false
	}
	s.begin()
	s.flush()
	s.spelled.WriteString(m[0])
	s.parts = append(s.parts, WordPart{Param: m[1]})
	s.pos += len(m[0])
	return true
}

func (s *splitter) step() error {
	if s.placeholder() {
		return nil
	}
	switch c := s.text[s.pos]; c {
	case ' ', '\t':
		s.pos++
		return s.end()
	case '\n', '\r':
		if strings.TrimSpace(s.text[s.pos:]) == "" { // a block scalar's last newline
			s.pos++
			return s.end()
		}
		return s.lines()
	case '\'':
		return s.single()
	case '"':
		return s.double()
	case '\\':
		return s.escape()
	case '|', '&', ';', '<', '>', '$', '(', ')', '`':
		return s.fail(s.pos, fmt.Sprintf("%q would need a shell, and there is none", c), "quote it to pass it as it is, or put the pipeline in a script")
	case '*', '?', '[':
		return s.fail(s.pos, fmt.Sprintf("%q is a pattern that only a shell expands", c), "quote it to pass it as it is")
	case '~':
		if !s.open {
			return s.fail(s.pos, "~ is not expanded", "write the absolute path")
		}
	case '{':
		if strings.HasPrefix(s.text[s.pos:], "{{") {
			return s.fail(s.pos, "this is not a placeholder: {{name}} takes a letter, then letters, digits and _", "quote it to pass it as it is")
		}
	case '=':
		if len(s.words) == 0 && s.open && isName(s.spelled.String()) && s.pos-s.start == s.spelled.Len() {
			return s.fail(s.start, "an assignment before the program is not supported", "name the variable under env:")
		}
	}
	s.begin()
	_, n := utf8.DecodeRuneInString(s.text[s.pos:])
	s.put(s.text[s.pos : s.pos+n])
	s.pos += n
	return nil
}

func (s *splitter) single() error {
	s.begin()
	at := s.pos
	s.pos++
	for s.pos < len(s.text) {
		if s.placeholder() {
			continue
		}
		c := s.text[s.pos]
		if c == '\n' || c == '\r' {
			return s.lines()
		}
		s.pos++
		if c == '\'' {
			return nil
		}
		s.put(string([]byte{c}))
	}
	return s.fail(at, "this quote is never closed", "")
}

func (s *splitter) double() error {
	s.begin()
	at := s.pos
	s.pos++
	for s.pos < len(s.text) {
		if s.placeholder() {
			continue
		}
		c := s.text[s.pos]
		switch c {
		case '\n', '\r':
			return s.lines()
		case '"':
			s.pos++
			return nil
		case '$', '`':
			return s.fail(s.pos, fmt.Sprintf("%q in double quotes would need a shell, and there is none", c), "use single quotes to pass it as it is")
		case '\\':
			if s.pos+1 < len(s.text) && strings.IndexByte("\"\\$`", s.text[s.pos+1]) >= 0 {
				s.pos++
				c = s.text[s.pos]
			}
		}
		s.put(string([]byte{c}))
		s.pos++
	}
	return s.fail(at, "this quote is never closed", "")
}

func (s *splitter) lines() error {
	return s.fail(s.pos, "one command only, on one line", "use a folded scalar (>) to break a long one")
}

func (s *splitter) escape() error {
	s.begin()
	if s.pos+1 == len(s.text) {
		return s.fail(s.pos, "nothing follows this backslash", "")
	}
	s.pos++
	if c := s.text[s.pos]; c == '\n' || c == '\r' {
		return s.lines()
	}
	_, n := utf8.DecodeRuneInString(s.text[s.pos:])
	s.put(s.text[s.pos : s.pos+n])
	s.pos += n
	return nil
}

func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// raises lists programs that run another one with other rights: a sensor
// measures with the person's own, or not at all.
var raises = map[string]bool{"sudo": true, "doas": true, "su": true, "pkexec": true, "run0": true, "runuser": true, "setpriv": true}

// RaisesRights reports whether the program of this path is one that changes
// whose rights a command has.
func RaisesRights(program string) bool {
	return raises[program[strings.LastIndexByte(program, '/')+1:]]
}

// reads lists programs that take program text as an argument, with the options
// that introduce it. A parameter inside such text could become code.
var reads = map[string][]string{
	"sh": {"-c"}, "bash": {"-c"}, "dash": {"-c"}, "zsh": {"-c"}, "ksh": {"-c"}, "ash": {"-c"}, "fish": {"-c"}, "busybox": {"-c"},
	"python": {"-c"}, "python3": {"-c"}, "node": {"-e", "-p", "-pe", "--eval", "--print"}, "perl": {"-e", "-E", "-ne", "-pe"},
	"ruby": {"-e", "-ne", "-pe"}, "php": {"-r"}, "lua": {"-e"}, "deno": {"eval"}, "bun": {"-e", "--eval"},
}

func checkProgram(words []Word) error {
	if len(words) == 0 {
		return &SplitError{What: "the command is empty"}
	}
	if len(words) > MaxWords {
		return &SplitError{What: fmt.Sprintf("more than %d words", MaxWords), Hint: "put it in a script of the project"}
	}
	for _, p := range words[0].Parts {
		if p.Param != "" {
			return &SplitError{What: "the program itself cannot be a placeholder", Hint: "write its name or path"}
		}
	}
	program := words[0].Text
	if program == "" || strings.HasSuffix(program, "/") || strings.HasPrefix(program, "-") {
		return &SplitError{What: fmt.Sprintf("%q is not a program", program)}
	}
	if RaisesRights(program) {
		return &SplitError{What: fmt.Sprintf("%s would change whose rights the sensor has", program), Hint: "use runs_as: for another user; more rights than yours are not available"}
	}
	code := reads[program[strings.LastIndexByte(program, '/')+1:]]
	for i := 2; i < len(words) && code != nil; i++ {
		for _, p := range words[i].Parts {
			if p.Param != "" && contains(code, words[i-1].Text) {
				return &SplitError{What: fmt.Sprintf("{{%s}} would become part of a program that %s runs", p.Param, program), Hint: "pass it as an argument of its own"}
			}
		}
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}
