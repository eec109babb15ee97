package hold

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"gettier.dev/gettierd/ledger/lemma"
)

// Reply is an answer as it stands in a chat message.
type Reply struct {
	Hold  string // the end of the id, as written
	Items []ItemAnswer
}

// skipped is what a chat's `skip` writes as the reason.
const skipped = "skipped in chat"

var (
	oneItem   = regexp.MustCompile(`(?s)^\s*([yYnN]|[sS][kK][iI][pP])\s+([0-9a-zA-Z]{3,28})(?:\s+(.+?))?\s*$`)
	manyItems = regexp.MustCompile(`(?s)^\s*([0-9a-zA-Z]{3,28})\s+(\d{1,2}\s+(?:[yYnN]|[sS][kK][iI][pP])\b.*?)\s*$`)
	item      = regexp.MustCompile(`(?s)^\s*(\d{1,2})\s+([yYnN]|[sS][kK][iI][pP])(?:\s+(.+?))?\s*$`)
)

// Names reports whether text has the end of a hold's id in it as a word of its
// own: it was meant as an answer even where ReadReply cannot read it.
func Names(text, id string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }),
		func(w string) bool { return len(w) >= lemma.ShortLen-1 && strings.HasSuffix(id, w) })
}

// ReadReply reads a chat answer: `y 7f3`, `n 7f3 <what is true>`, `skip 7f3`, or
// for several items `7f3 1 y, 2 n <…>, 3 skip`. It must be the whole of what the
// person wrote; everything else is an ordinary message.
func ReadReply(text string) (Reply, bool) {
	text = strings.TrimSpace(text)
	if len(text) > MaxText+100 {
		return Reply{}, false
	}
	// Nearly every message ends here, at its first letters.
	one, m := oneItem.FindStringSubmatch(text), manyItems.FindStringSubmatch(text)
	if one == nil && m == nil || strings.ContainsFunc(text, func(r rune) bool { return r != ' ' && visible(r) != r }) {
		return Reply{}, false
	}
	if m := one; m != nil {
		a, ok := answerOf(m[1], m[3])
		if !ok {
			return Reply{}, false
		}
		a.Item = "1"
		return Reply{Hold: strings.ToLower(m[2]), Items: []ItemAnswer{a}}, true
	}
	r := Reply{Hold: strings.ToLower(m[1])}
	for part := range strings.SplitSeq(m[2], ",") {
		p := item.FindStringSubmatch(part)
		if p == nil {
			// A comma inside a correction belongs to it.
			if n := len(r.Items); n > 0 && r.Items[n-1].Answer == lemma.AnswerCorrect {
				r.Items[n-1].Text += "," + part
				continue
			}
			return Reply{}, false
		}
		a, ok := answerOf(p[2], p[3])
		if !ok {
			return Reply{}, false
		}
		a.Item = p[1]
		r.Items = append(r.Items, a)
	}
	return r, len(r.Items) > 0
}

func answerOf(word, rest string) (ItemAnswer, bool) {
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(word) {
	case "y":
		return ItemAnswer{Answer: lemma.AnswerConfirm, Scope: lemma.ScopeTask}, rest == ""
	case "n":
		return ItemAnswer{Answer: lemma.AnswerCorrect, Text: rest, Scope: lemma.ScopeTask}, rest != ""
	}
	return ItemAnswer{Answer: lemma.AnswerWaive, Text: skipped, Scope: lemma.ScopeTask}, rest == ""
}

// Opening begins every question.
const Opening = "gettier needs "

// maxShown is how much of an action's text a question shows, in bytes.
const maxShown = 400

// Clip shortens an action's text for a message; the whole stands in the hold.
func Clip(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}

// Question is the text that asks for an answer in the chat. It depends on the
// hold alone, so that the very same bytes can be looked for in front of a reply.
func Question(h lemma.Hold, line func(string) string) string {
	var b strings.Builder
	id := short(h.ID)
	b.WriteString(Opening)
	if len(h.Items) == 1 && h.Items[0].Action != nil {
		b.WriteString("an approval")
	} else if len(h.Items) == 1 {
		b.WriteString("one answer")
	} else {
		b.WriteString("answers")
	}
	b.WriteString(" before this goes on (hold " + id + ").\n")
	acts := false
	for _, it := range h.Items {
		num := ""
		if len(h.Items) > 1 {
			num = it.ID + " "
		}
		if a := it.Action; a != nil {
			acts = true
			b.WriteString("  " + num + "Wants:    " + line(Clip(a.Text)) + "\n")
			if a.Cwd != "" {
				b.WriteString("  " + num + "In:       " + line(a.Cwd) + "\n")
			}
			b.WriteString("  " + num + "Because:  " + line(a.Effect+": "+it.Reason) + "\n")
			continue
		}
		b.WriteString("  " + num + "Assumed:  " + line(it.Claim) + "\n")
		for _, t := range it.Tried {
			b.WriteString("  " + num + "Tried:    " + line(t) + "\n")
		}
		if len(it.Tried) == 0 {
			b.WriteString("  " + num + "Tried:    nothing could be measured (" + line(it.Reason) + ")\n")
		}
	}
	switch {
	case acts:
		b.WriteString("Actions are approved in a terminal only:  gettier answer " + id)
		return b.String()
	case h.Class.Rank() >= lemma.Destructive.Rank():
		b.WriteString("What destroys is answered in a terminal only:  gettier answer " + id)
		return b.String()
	case len(h.Items) == 1:
		b.WriteString("Reply  y " + id + "  if that is true ·  n " + id + " <what is true>  ·  skip " + id + "  to go on unverified for this task")
	default:
		b.WriteString("Reply  " + id + " 1 y, 2 n <what is true>, 3 skip  (each number once)")
	}
	b.WriteString("\nor, in a terminal:  gettier answer " + id)
	return b.String()
}
