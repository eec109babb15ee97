package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// DeclareTool is the tool by which a model declares its premises (contract 1).
const DeclareTool = "declare_lemmas"

// DeclareDescription tells the model what the tool is for.
const DeclareDescription = "List the premises about this system, its environment or its requirements that your plan rests on. " +
	"A premise (lemma) is load-bearing when the plan breaks or turns wrong if it is false. " +
	"Name what may differ on this machine: versions, settings, limits, which host or database is in use, how the data really looks, " +
	"what an installed package really exports, how many processes serve a route. " +
	"Leave out what is true of the language or a library everywhere. One claim per lemma; an empty list is allowed."

// DeclareSchema is the JSON schema of a declaration. closed gives the dialect of
// constrained decoding: no further properties anywhere and no size limits, which
// those compilers refuse; the validator holds the limits in any case.
func DeclareSchema(closed bool) []byte {
	limit := func(s string) string {
		if closed {
			return ""
		}
		return s
	}
	end := ""
	if closed {
		end = `,"additionalProperties":false`
	}
	return []byte(`{"type":"object","required":["plan_summary","lemmas"],"properties":{` +
		`"plan_summary":{"type":"string"` + limit(`,"maxLength":500`) + `,"description":"What you are about to do, in at most 500 characters."},` +
		`"lemmas":{"type":"array","items":{"type":"object","required":["claim","provenance","load_bearing"],"properties":{` +
		`"claim":{"type":"string","description":"One factual statement in the present tense that can be checked. Never two facts in one: split them."},` +
		`"provenance":{"type":"string","enum":["measured","told","believed"],"description":"measured: a sensor or tool result of this conversation shows it. told: the user said it. believed: you take it for granted."},` +
		`"load_bearing":{"type":"boolean","description":"Whether the plan fails or turns wrong if the claim is false."},` +
		`"falsifier":{"type":"string","description":"What one would observe if the claim were false, as a sentence."},` +
		`"falsifying_observation":{"type":"object","required":["sensor","key","operator","value"],"properties":{` +
		`"sensor":{"type":"string"},"key":{"type":"string"},` +
		`"operator":{"type":"string","enum":["=","!=","<","<=",">",">=","contains","not_contains"]},` +
		`"value":{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"}]}}` + end +
		`,"description":"The falsifier as a condition on one sensor's reading. It holds when the claim is false."},` +
		`"suggested_sensor":{"type":"string","description":"Id of a registered sensor that could measure it, if you know one."},` +
		`"symbols":{"type":"array"` + limit(`,"maxItems":8`) + `,"items":{"type":"string"},"description":"Dotted API paths that the claim depends on, such as fs.promises.readFile; at most 8."}` +
		`}` + end + `}}}` + end + `}`)
}

// Asked is the text of a declare pass: the instruction, and what was wrong with
// the attempt before.
func (o DeclareOptions) Asked() string {
	if o.Complaint == "" {
		return o.Instruction
	}
	return o.Instruction + "\n\nThe declaration before this one was refused: " + o.Complaint
}

// Declaration takes the declaration's JSON out of an answer to a declare pass.
// On rung 1 it is the only call; on the others a call of any kind is a refusal to
// declare, and the text holds exactly one object with lemmas.
func (a *Answer) Declaration(rung Rung) ([]byte, error) {
	if rung == 1 && len(a.Calls) == 1 && a.Calls[0].Name == DeclareTool {
		if a.Calls[0].Broken {
			return nil, fmt.Errorf("%w: its arguments are no complete JSON object (stop reason %s)", ErrNotCompliant, excerpt(a.Stop))
		}
		return a.Calls[0].Args, nil
	}
	if len(a.Calls) > 0 {
		names := make([]string, 0, 4)
		for _, c := range a.Calls[:min(len(a.Calls), 4)] {
			names = append(names, c.Name)
		}
		return nil, fmt.Errorf("%w: %d tool call(s) came instead: %s", ErrNotCompliant, len(a.Calls), excerpt(strings.Join(names, ", ")))
	}
	found := declarationsIn(a.Text)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("%w: %d declarations came in one answer", ErrNotCompliant, len(found))
	case strings.TrimSpace(a.Text) == "":
		return nil, fmt.Errorf("%w: an empty answer came (stop reason %s)", ErrNotCompliant, excerpt(a.Stop))
	}
	return nil, fmt.Errorf("%w: no complete JSON object with lemmas in: %s (stop reason %s)", ErrNotCompliant, excerpt(a.Text), excerpt(a.Stop))
}

// maxTries bounds how many open braces of a text are tried as the start of an object.
const maxTries = 64

// declarationsIn finds the JSON objects with a member "lemmas" in a text, which
// may wrap them in prose, in a code fence or after a <think> element. An object
// with duplicate names is no candidate.
func declarationsIn(text string) [][]byte {
	if rest, ok := strings.CutPrefix(strings.TrimSpace(text), "<think>"); ok {
		if _, after, ok := strings.Cut(rest, "</think>"); ok {
			text = after
		}
	}
	var found [][]byte
	b := []byte(text)
	for range maxTries {
		i := bytes.IndexByte(b, '{')
		if i < 0 {
			break
		}
		b = b[i:]
		v, err := jsontext.NewDecoder(bytes.NewBuffer(b)).ReadValue()
		if err != nil {
			b = b[1:]
			continue
		}
		if _, ok := Find(MembersOf(v, Span{0, len(v)}), "lemmas"); ok {
			found = append(found, bytes.Clone(v))
		}
		b = b[len(v):]
	}
	return found
}

// excerpt quotes a stretch of foreign text for a message: one line, no controls.
func excerpt(s string) string {
	const most = 80
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) && !unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		n := most
		for n > 0 && s[n]&0xC0 == 0x80 {
			n--
		}
		s = s[:n] + "…"
	}
	return `"` + s + `"`
}

// Unreadable is ErrUnreadable with what was wrong.
func Unreadable(err error) error {
	if errors.Is(err, ErrUnreadable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreadable, err)
}

// Unreadablef is ErrUnreadable with a message.
func Unreadablef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnreadable, fmt.Sprintf(format, args...))
}
