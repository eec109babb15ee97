package gate

import (
	"strings"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/ledger/lemma"
)

// token is a word of a prompt in lower case, with what it can mean.
type token struct {
	s     string
	at    int   // its place in the prompt, in bytes
	means sense // what the lexicon knows of it
	// before is the mark that stands before it: 0 for none, ',' for one that may
	// begin a clause, '.' for one that does.
	before byte
}

func (k token) is(s sense) bool { return k.means&s != 0 }

// tokens appends the words of a text in lower case to out.
func tokens(t string, out []token) []token {
	mark := byte('.')
	for i := 0; i < len(t); {
		c := t[i]
		if isWord(c) || (c == '.' || c == '-' || c == '_' || c == '/' || c == '~') && i+1 < len(t) && (isWord(t[i+1]) || c == '-' && t[i+1] == '-') {
			j := i + 1
			for j < len(t) && (isWord(t[j]) || (t[j] == '.' || t[j] == '-' || t[j] == '/' || t[j] == ':' || t[j] == '\'') && j+1 < len(t) && (isWord(t[j+1]) || t[j+1] == '/' || t[j+1] == '-' && t[j] == '-')) {
				j++
			}
			w := t[i:j]
			if strings.Contains(w, "’") {
				w = strings.ReplaceAll(w, "’", "'")
			}
			out = append(out, token{s: w, at: i, means: lexicon[w], before: mark})
			mark, i = 0, j
			continue
		}
		switch c {
		case '.', ';', '!', '?', '\n':
			mark = '.'
		case ',', ':', '(', ')', '"', '-':
			if mark == 0 {
				mark = ','
			}
		}
		i++
	}
	return out
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}

// hit is a rule that had a part in the answer.
type hit struct {
	name  string
	class lemma.Class
}

// prompt is one reading of a person's words.
type prompt struct {
	text     string
	tools    bool
	ts       []token
	found    []hit
	room     [4]hit
	handsOff bool   // nothing is to be changed, in so many words
	stated   string // the rule for what lies beyond the code, in a sentence that wishes nothing
	asked    bool   // this sentence has asked already
	looked   bool   // this sentence has wished to see something
}

func (p *prompt) add(name string, c lemma.Class) {
	for _, h := range p.found {
		if h.name == name {
			return
		}
	}
	p.found = append(p.found, hit{name, c})
}

// acts reports a rule that found at least class.
func (p *prompt) acts(class lemma.Class) bool {
	for _, h := range p.found {
		if h.class.Rank() >= class.Rank() {
			return true
		}
	}
	return false
}

// read takes the prompt apart into clauses. A strong mark always begins one; a
// weak one, or "and" and its like, only where a verb, a question or a refusal follows.
func (p *prompt) read() {
	p.found = p.room[:0]
	if p.command() {
		return
	}
	start := 0
	for i := 1; i < len(p.ts); i++ {
		switch {
		case p.ts[i].before == '.':
		case p.ts[i].before == ',' && p.opens(i):
		case conjunction(p.ts[i-1].s) && i-1 > start && p.opens(i):
		default:
			continue
		}
		p.clause(start, i)
		start = i
	}
	p.clause(start, len(p.ts))
	if p.stated != "" && p.acts(lemma.Edit) {
		p.add(p.stated, lemma.Change)
	}
}

// maxCommand is the longest prompt that is taken for a command line, in bytes.
const maxCommand = 200

// command reads a prompt that is a command line as the action gate would.
func (p *prompt) command() bool {
	if len(p.ts) < 2 || len(p.text) > maxCommand || strings.IndexByte(p.text, '\n') >= 0 || !p.ts[0].is(spelled) {
		return false
	}
	switch second := p.ts[1]; p.ts[0].s {
	case "go":
		switch second.s {
		case "test", "build", "run", "get", "mod", "vet", "install", "generate":
		default:
			return false
		}
	case "python", "python3", "node", "ruby", "php":
		if !strings.HasSuffix(second.s, ".py") && !strings.HasSuffix(second.s, ".js") && !strings.HasPrefix(second.s, "-") && !strings.HasSuffix(second.s, ".rb") && !strings.HasSuffix(second.s, ".php") {
			return false
		}
	default:
		if second.is(asks|subject) && !second.is(does) {
			return false // words about the program
		}
	}
	if p.check(0, len(p.ts)) {
		p.add("words.check", lemma.Explore)
		return true
	}
	// A sentence that begins with a program's name has words that go on after
	// "and"; a command line has none.
	for _, k := range p.ts {
		if k.s == "and" || k.s == "then" || k.s == "please" || k.s == "for" {
			return false
		}
	}
	r := shell.Read(p.text)
	p.add("words.command", CallClass(shell.Action{Effect: r.Effect, Shell: r, Paths: r.Paths}))
	return true
}

func conjunction(w string) bool {
	switch w {
	case "and", "then", "but", "so", "or", "also":
		return true
	}
	return false
}

// opens reports whether a clause may begin at i.
func (p *prompt) opens(i int) bool {
	for i < len(p.ts) && p.ts[i].is(filler) {
		i++
	}
	if i >= len(p.ts) {
		return false
	}
	k := p.ts[i]
	switch k.s {
	case "don't", "dont", "without", "never", "do":
		return true
	case "it", "we", "i", "the":
		return i+1 < len(p.ts) && (p.ts[i+1].s == "should" || p.ts[i+1].s == "shouldn't" || p.ts[i+1].s == "must" || p.ts[i+1].s == "need")
	case "test", "tests", "order", "index", "set", "type", "head", "top", "log", "format", "link", "store", "cache", "open", "new", "hash", "style", "label", "view", "report", "cover", "less": // as often a noun
		return i+1 < len(p.ts) && (p.ts[i+1].s == "the" || p.ts[i+1].s == "it" || p.ts[i+1].s == "a" || p.ts[i+1].s == "them")
	}
	return k.is(does|looks) || k.is(asks) && !k.is(subject) && i+1 < len(p.ts) && p.ts[i+1].is(subject) || questionWord(k.s) && !relative(k.s)
}

func questionWord(w string) bool {
	switch w {
	case "what", "why", "how", "where", "when", "which", "who", "whose", "what's", "whats":
		return true
	}
	return false
}

// clause classes the clause of tokens [from, to).
func (p *prompt) clause(from, to int) {
	if p.ts == nil || from >= to {
		return
	}
	if p.ts[from].before == '.' {
		p.asked, p.looked = false, false
	}
	i := p.lead(from, to)
	if i >= to {
		return
	}
	k := p.ts[i]
	next := p.at(i+1, to)
	switch {
	case p.refuses(i, to):
		p.handsOff = true
		return
	case (p.asked || p.looked && i == to-1) && i == from && p.endsWith(to, '?'):
		return // "… delete and recreate?" belongs to the question
	case p.question(i, to):
		if a := p.advice(i, to); !p.tools && a > 0 {
			p.act(a, to, "words.how-to")
			return
		}
		p.asked = true
		p.add("words.question", lemma.Explore)
		return
	case p.check(i, to):
		p.add("words.check", lemma.Explore)
		return
	case p.look(i, to):
		p.looked = true
		p.add("words.look", lemma.Explore)
		return
	case k.s == "stop" && next == "", k.s == "cancel" && next == "", k.s == "abort" && next == "":
		p.add("words.stop", lemma.Explore)
		return
	case k.is(does | looks), k.s == "do", k.is(programs) && next != "":
		p.act(i, to, "words.edit")
		return
	case k.s == "want", k.s == "need", k.s == "needs", k.s == "have" && i > from:
		p.act(i, to, "words.wish")
		return
	}
	if k.before == '.' && p.imperative(i, to) {
		p.act(i, to, "words.imperative")
		return
	}
	for n := i; n < to; n++ {
		switch p.ts[n].s {
		case "should", "shouldn't", "must", "needs", "ought":
			if n > i || p.ts[n].s != "should" {
				p.act(i, to, "words.wish")
				return
			}
		}
		// What a ticket states is what its wish is about.
		if kind, named := p.file(n); named && kind != plainFile && kind != testFile && kind != docFile {
			p.stated = "words.file"
		} else if p.ts[n].is(platform) && !p.part(n, to) && p.stated == "" {
			p.stated = "words.infra"
		}
	}
}

func (p *prompt) at(i, to int) string {
	if i < to {
		return p.ts[i].s
	}
	return ""
}

// imperative: a word that nothing is known of, and then what it is done to.
func (p *prompt) imperative(i, to int) bool {
	k := p.ts[i]
	if i+2 >= to || k.means != 0 || strings.HasSuffix(k.s, "ly") || strings.HasSuffix(k.s, "s") || strings.HasSuffix(k.s, "ing") || p.endsWith(to, '?') {
		return false
	}
	for _, c := range []byte(k.s) {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	switch k.s {
	case "in", "on", "at", "for", "with", "as", "if", "because", "although", "though", "while", "once", "after", "before", "until", "under", "over", "from", "of", "by", "about", "often", "here", "there", "today", "yesterday", "whenever", "than", "every", "each", "both", "either", "neither", "not", "some", "many", "few", "most",
		"per", "via", "into", "onto", "around", "behind", "between", "inside", "outside", "through", "despite", "besides", "like", "unlike", "error", "warning", "note", "context", "background", "even", "such", "half", "and", "or", "nor", "yet", "soon", "ever", "however", "given", "whether":
		return false
	}
	switch p.ts[i+1].s {
	case "the", "a", "an", "this", "these", "my", "our", "all", "it", "them":
		return true
	}
	return false
}

// lead skips what stands before the verb: greetings, please, "can you", "I want
// you to", "let's", "go ahead and", "try to".
func (p *prompt) lead(i, to int) int {
	for i < to {
		k, next, after := p.ts[i], p.at(i+1, to), p.at(i+2, to)
		switch {
		case k.s == "no" && (next == "changes" || next == "edits" || next == "code"):
			return i
		case k.is(filler):
			i++
		case (k.s == "can" || k.s == "could" || k.s == "would" || k.s == "will") && (next == "you" || next == "we" && i+2 < to && (p.ts[i+2].is(does|looks) || after == "have")):
			i += 2
		case k.s == "i" || k.s == "we" || k.s == "you" || k.s == "i'd":
			switch {
			case (next == "want" || next == "need" || next == "would" || next == "like" || next == "have" || next == "should" || next == "must") && after == "to":
				i += 3
			case (next == "want" || next == "need" || next == "like") && after == "you" && p.at(i+3, to) == "to":
				i += 4
			case next == "would" && after == "like" && p.at(i+3, to) == "to":
				i += 4
			case next == "would" && after == "like" && p.at(i+3, to) == "you":
				i += 5
			case next == "want" || next == "need":
				return i + 1
			case next == "wonder":
				return i + 1
			default:
				return i
			}
		case k.s == "go" && next == "ahead", k.s == "feel" && next == "free", k.s == "time" && next == "to", k.s == "need" && next == "to", k.s == "try" && (next == "to" || next == "and"), k.s == "help" && next == "me" && i+2 < to && p.ts[i+2].is(does|looks) && !p.ts[i+2].is(asks), k.s == "let" && next == "us":
			i += 2
		case k.s == "to", k.s == "me" && i > 0 && p.ts[i-1].s == "help":
			i++
		case numberLen(k.s) == len(k.s) && i+1 < to && p.ts[i].before == '.': // "1. rename"
			i++
		default:
			return i
		}
	}
	return i
}

// relative: after a comma the word says more about something, it asks nothing.
func relative(w string) bool {
	return w == "which" || w == "who" || w == "whose" || w == "where" || w == "when"
}
