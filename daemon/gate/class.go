package gate

import (
	"strings"
	"sync"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/ledger/lemma"
)

// maxClassified bounds how much of a prompt is looked at, in bytes: its head and
// its tail, half each. A person's wish stands at one of them.
const maxClassified = 2 << 10

// rooms keeps the space of a prompt's words: it is larger than all the rest.
var rooms = sync.Pool{New: func() any { return new([]token) }}

// PromptClass classes a person's words by named rules, in microseconds and the
// same way every time. tools reports a client that can act: without one a
// question for advice is as good as the act, since the person will do what it says.
//
// A prompt is read clause by clause. What a clause begins with says whether it
// asks, wants something looked at, or wants something done; only the last is
// classed further, by what it is to be done with. The reasons name every rule
// that had a part in the answer.
func PromptClass(text string, tools bool) (lemma.Class, []string) {
	t := strings.TrimSpace(text)
	if t == "" {
		return lemma.Explore, []string{"words.none"}
	}
	if BareContinuation(t) {
		return lemma.Explore, []string{"words.continue"}
	}
	if len(t) > maxClassified {
		t = strings.ToValidUTF8(t[:maxClassified/2], "") + "\n" + strings.ToValidUTF8(t[len(t)-maxClassified/2:], "")
	}
	t = strings.ToLower(t)
	room := rooms.Get().(*[]token)
	defer func() {
		clear(*room) // a kept room holds on to no prompt
		rooms.Put(room)
	}()
	*room = tokens(t, (*room)[:0])
	p := prompt{text: t, tools: tools, ts: *room}
	p.read()
	class := lemma.Explore
	why := make([]string, 0, 4)
	if p.handsOff && !p.acts(lemma.Destructive) {
		return lemma.Explore, append(why, "words.hands-off")
	}
	for _, h := range p.found {
		class = lemma.MaxClass(class, h.class)
		why = append(why, h.name)
	}
	if len(why) == 0 {
		why = append(why, "words.plain")
	}
	return class, why
}

// quantity: 20 MB, 5gb.
func quantity(s, next string) bool {
	n := numberLen(s)
	if n == 0 {
		return false
	}
	u := s[n:]
	if u == "" {
		u = next
	}
	switch u {
	case "kb", "mb", "gb", "tb", "kib", "mib", "gib", "megabytes", "gigabytes":
		return true
	}
	return false
}

// BareContinuation reports words that only say go on: they tell nothing new.
func BareContinuation(text string) bool {
	t := strings.TrimSpace(text)
	if len(t) > 60 {
		return false
	}
	t = strings.ToLower(t)
	t = strings.Trim(t, ".!… \t\n")
	t = strings.Join(strings.FieldsFunc(t, func(r rune) bool { return r == ' ' || r == ',' || r == '.' || r == '!' || r == '\n' || r == '\t' }), " ")
	t = strings.TrimSuffix(strings.TrimPrefix(t, "please "), " please")
	switch t {
	case "y", "yes", "yep", "yeah", "yup", "sure", "ok", "okay", "k", "go", "go on", "go ahead", "goahead", "continue", "carry on", "proceed", "next", "keep going", "do it", "do that", "yes do it", "yes go ahead", "yes continue", "yes proceed",
		"ok go", "ok go on", "ok go ahead", "ok continue", "ok do it", "sounds good", "looks good", "lgtm", "looks good go ahead", "sounds good go ahead", "fine", "right", "correct", "exactly", "approved", "try again", "again", "retry", "resume", "finish", "finish it", "yes please", "sure go ahead", "thanks", "thank you", "great", "perfect", "weiter", "ja", "mach weiter", "oui", "continuez", "sí", "si", "sigue":
		return true
	}
	return false
}

// ActionClass classes an action by its effect and the files it touches.
func ActionClass(effect shell.Effect, paths []string) lemma.Class {
	switch effect {
	case "", shell.ReadOnly:
		return lemma.Explore
	case shell.Destroy, shell.Catastrophe:
		return lemma.Destructive
	case shell.Mutate:
		for _, p := range paths {
			if k := pathKind(p); k != plainFile && k != docFile && k != testFile {
				return lemma.Change
			}
		}
		return lemma.Edit
	}
	return lemma.Change
}
