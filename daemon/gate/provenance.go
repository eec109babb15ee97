package gate

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// Conversation is what a claim's provenance is audited against, in order. Texts
// are in lower case.
type Conversation struct {
	said []said
}

type said struct {
	by   route.Speaker
	text string
	args string
	// counts: a tool result that may back a claim about this system.
	counts bool
}

// Bounds of an audit: histories are foreign, and long.
const (
	maxSaid  = 1 << 20 // bytes of one utterance that are looked at
	minWords = 2       // content words beside the values
)

// NewConversation reads a history once; audit as many claims against it as
// there are.
func NewConversation(r *wire.Request, rt route.Route) Conversation {
	var c Conversation
	for _, u := range route.Transcript(r, rt) {
		s := said{by: u.By, text: strings.ToLower(clip(u.Text)), args: strings.ToLower(clip(string(u.Args)))}
		if u.By == route.Tool && !u.IsError && u.Name != "" {
			a := shell.Tool(u.Name, u.Args)
			s.counts = a.Effect == shell.ReadOnly && !a.External && a.Kind != "plan" && a.Kind != "agent"
			if a.Kind == "shell" {
				s.counts = s.counts && looksHere(a.Shell)
			}
		}
		c.said = append(c.said, s)
	}
	return c
}

// looksHere: a command that only looks, and looks at this machine. What a server
// elsewhere answers, and what a command was told to print, is no measurement.
func looksHere(r shell.Reading) bool {
	if len(r.Commands) == 0 || r.Opaque {
		return false
	}
	for _, c := range r.Commands {
		switch c.Program() {
		case "curl", "wget", "http", "https", "xh", "echo", "printf", "yes", "seq", "gh", "glab", "man", "help", "tldr":
			return false
		}
		for _, w := range c.Wrappers {
			if strings.HasPrefix(w, "ssh") || strings.Contains(w, "exec") {
				return false
			}
		}
	}
	return true
}

func clip(s string) string {
	if len(s) > maxSaid {
		return s[:maxSaid]
	}
	return s
}

// Backing is what the ledger knows about a claim.
type Backing struct {
	Facts []lemma.Fact
	// Satisfies reports whether a fact's value makes the claim true.
	Satisfies func(lemma.Fact) bool
	ClaimID   string
}

// AuditProvenance returns the provenance that a lemma really has, and why it
// was lowered ("" when the tag stands).
//
// measured needs an active measured fact that satisfies the claim, or a result
// of a read-only call of this conversation that holds every value of the claim
// and two more of its words, when the values stand neither in the call's own
// arguments nor in anything the model wrote before (13.5). told needs the same
// in a person's own words, or a told fact of the same claim.
func AuditProvenance(l lemma.Lemma, c Conversation, b Backing) (lemma.Provenance, string) {
	switch l.Provenance {
	case lemma.Measured:
		for _, f := range b.Facts {
			if f.Provenance == lemma.Measured && f.Status == lemma.StatusActive && b.Satisfies != nil && b.Satisfies(f) {
				return lemma.Measured, ""
			}
		}
		why := c.measured(newClaim(l.Claim))
		if why == "" {
			return lemma.Measured, ""
		}
		return lemma.Believed, why
	case lemma.Told:
		for _, f := range b.Facts {
			if f.Provenance == lemma.Told && f.Status == lemma.StatusActive && b.ClaimID != "" && f.Key == b.ClaimID {
				return lemma.Told, ""
			}
		}
		if c.told(newClaim(l.Claim)) {
			return lemma.Told, ""
		}
		return lemma.Believed, "no person said it here"
	case lemma.Believed:
		return lemma.Believed, ""
	}
	return lemma.Believed, "unknown provenance"
}

func (c Conversation) measured(cl claim) string {
	why := "no result of a read-only call holds it"
	for i, s := range c.said {
		if s.by != route.Tool || !s.counts || !cl.in(s.text) {
			continue
		}
		if cl.anyValue(s.args) {
			why = "the call's own arguments hold its value"
			continue
		}
		if c.writtenBefore(i, cl) {
			why = "the model wrote its value before"
			continue
		}
		return ""
	}
	return why
}

// writtenBefore: a value of the claim stands in what the model wrote before
// entry i, texts and arguments alike.
func (c Conversation) writtenBefore(i int, cl claim) bool {
	for _, s := range c.said[:i] {
		if s.by == route.Model && (cl.anyValue(s.text) || cl.anyValue(s.args)) {
			return true
		}
	}
	return false
}

func (c Conversation) told(cl claim) bool {
	for _, s := range c.said {
		if s.by != route.Person || !cl.in(s.text) {
			continue
		}
		// A question tells nothing, and a denial not the opposite.
		ok := true
		for _, sentence := range sentences(s.text) {
			if cl.anyValue(sentence) || len(cl.values) == 0 && cl.shares(sentence) {
				if strings.HasSuffix(strings.TrimSpace(sentence), "?") || negated(sentence) != cl.negated || hedged(sentence) {
					ok = false
				}
			}
		}
		if ok {
			return true
		}
	}
	return false
}

// claim is a claim's text taken apart.
type claim struct {
	values  []value
	words   []string
	negated bool
}

// value is a token whose exact form carries the claim.
type value struct {
	text string
	num  bool
	unit byte // first letter of a number's unit, 0 for none
}

func newClaim(text string) claim {
	t := strings.ToLower(text)
	cl := claim{negated: negated(t)}
	// Quoted and backticked names.
	for _, q := range [...]string{"`", `"`, "'"} {
		parts := strings.Split(t, q)
		for i := 1; i+1 < len(parts); i += 2 {
			if q == "'" && !quoteOpens(parts[i-1]) {
				i--
				continue
			}
			if p := strings.TrimSpace(parts[i]); p != "" && len(p) < 200 {
				cl.values = append(cl.values, value{text: p})
			}
		}
	}
	fields := strings.FieldsFunc(t, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"`'(),;!?[]{}<>=", r)
	})
	for i, f := range fields {
		f = strings.Trim(f, ".:")
		if f == "" {
			continue
		}
		switch n := numberLen(f); {
		case n > 0:
			v := value{text: f[:n], num: true}
			rest := f[n:]
			if rest == "" && i+1 < len(fields) {
				if u := strings.Trim(fields[i+1], ".:"); units[u] {
					rest = u
				}
			}
			if rest != "" && units[rest] {
				v.unit = rest[0]
			} else if rest != "" {
				v = value{text: f}
			}
			cl.values = append(cl.values, v)
		case strings.ContainsAny(f, "/\\") && len(f) > 2, strings.HasPrefix(f, "~"), fileName(f), strings.ContainsAny(f, "0123456789") && strings.ContainsAny(f, "abcdefghijklmnopqrstuvwxyz"):
			cl.values = append(cl.values, value{text: f})
		case !stop[f] && !units[f] && utf8.RuneCountInString(f) > 2:
			cl.words = append(cl.words, f)
		}
	}
	return cl
}

// quoteOpens: an apostrophe inside a word is no quote.
func quoteOpens(before string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return before == "" || unicode.IsSpace(r) || strings.ContainsRune("([=:,", r)
}

func fileName(f string) bool {
	i := strings.LastIndexByte(f, '.')
	return i > 0 && i+1 < len(f) && len(f)-i <= 6 && !strings.ContainsAny(f[i+1:], "0123456789")
}

// numberLen is the length of a number or version at the start of s.
func numberLen(s string) int {
	i := 0
	if len(s) > 1 && (s[0] == 'v' || s[0] == '-' || s[0] == '+') && s[1] >= '0' && s[1] <= '9' {
		i = 1
	}
	start := i
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.' && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9') {
		i++
	}
	if i == start {
		return 0
	}
	return i
}

var units = words(`b k m g t kb mb gb tb kib mib gib tib byte bytes kilobytes megabytes gigabytes ms s sec secs second seconds min mins minute minutes h hour hours d day days % percent px req requests rps qps`)

var stop = words(`the and for are was were has have had not with that this from its into than then they their there will would can could should does did been being which when where what who how all any each per via use uses used using set sets only also just but our your one two you
 runs run running accepts accept allows allow system here value`)

// in reports every value of the claim in text, and enough of its words.
func (cl claim) in(text string) bool {
	for _, v := range cl.values {
		if !v.in(text) {
			return false
		}
	}
	need := min(minWords, len(cl.words))
	if len(cl.values) == 0 {
		// Nothing exact to find: then all of it must be there.
		if len(cl.words) < minWords {
			return false
		}
		need = len(cl.words)
	}
	return cl.common(text) >= need
}

func (cl claim) common(text string) int {
	n := 0
	for _, w := range cl.words {
		if at(text, w) >= 0 {
			n++
		}
	}
	return n
}

func (cl claim) shares(text string) bool { return cl.common(text) >= minWords }

// anyValue reports a value of the claim in text; a claim without values has its
// words looked for instead.
func (cl claim) anyValue(text string) bool {
	if text == "" {
		return false
	}
	for _, v := range cl.values {
		if v.in(text) {
			return true
		}
	}
	return len(cl.values) == 0 && cl.common(text) == len(cl.words)
}

func (v value) in(text string) bool {
	for from := 0; from < len(text); {
		i := at(text[from:], v.text)
		if i < 0 {
			return false
		}
		i += from
		from = i + 1
		if !v.num {
			return true
		}
		rest := strings.TrimLeft(text[i+len(v.text):], " ")
		if v.unit == 0 {
			return true
		}
		if rest != "" && rest[0] == v.unit {
			return true
		}
	}
	return false
}

// at finds w in text as a whole token: not inside a longer word or number.
func at(text, w string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], w)
		if i < 0 {
			return -1
		}
		i += from
		end := i + len(w)
		if !joins(text, i, w[0], true) && !joins(text, end, w[len(w)-1], false) {
			return i
		}
		from = i + 1
	}
}

// joins reports whether the byte beside a token carries it on.
func joins(text string, i int, edge byte, before bool) bool {
	digit := edge >= '0' && edge <= '9'
	word := digit || edge >= 'a' && edge <= 'z' || edge >= 0x80 || edge == '_'
	if before {
		if i == 0 || !word {
			return false
		}
		c := text[i-1]
		if digit && c == '.' {
			return i > 1 && text[i-2] >= '0' && text[i-2] <= '9'
		}
		return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80
	}
	if i >= len(text) || !word {
		return false
	}
	c := text[i]
	if digit {
		if c == '.' {
			return i+1 < len(text) && text[i+1] >= '0' && text[i+1] <= '9'
		}
		return c >= '0' && c <= '9' // a unit may follow
	}
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80
}

func sentences(text string) []string {
	var out []string
	start := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n', c == '?' || c == '!', c == '.' && (i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\n'):
			out = append(out, text[start:i+1])
			start = i + 1
		}
	}
	return append(out, text[start:])
}

func negated(s string) bool {
	for _, w := range [...]string{"not", "no", "never", "isn't", "doesn't", "don't", "won't", "can't", "cannot", "without", "wasn't", "aren't", "hasn't", "didn't", "shouldn't", "nothing", "none", "neither", "nor"} {
		if at(s, w) >= 0 {
			return true
		}
	}
	return false
}

// hedged: a wish, a condition or a doubt states nothing.
func hedged(s string) bool {
	for _, w := range [...]string{"if", "maybe", "perhaps", "probably", "might", "unless", "suppose", "assume", "i think", "i guess", "not sure", "should", "want", "make", "raise", "set", "change", "increase", "lower", "to be"} {
		if at(s, w) >= 0 {
			return true
		}
	}
	return false
}
