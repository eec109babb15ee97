package lemma

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a piece of knowledge. It goes into requests, so it is short.
const (
	MaxKnowledgeText   = 400 // bytes
	MaxKnowledgeTopics = 8
	MaxTopic           = 64 // bytes
)

// Knowledge is one lasting truth that a person keeps for models to read: unlike a
// fact nobody measures it and it does not run out (I-49). Topics are the words
// that call it up, beside those of its text.
type Knowledge struct {
	ID          string   `json:"id"`
	Scope       string   `json:"scope"` // host | project:<id>
	Text        string   `json:"text"`
	Topics      []string `json:"topics"`
	Sensitivity string   `json:"sensitivity"` // public | internal | secret; secret is kept and never sent
	CreatedAt   string   `json:"created_at"`
	ChangedAt   string   `json:"changed_at"`
}

// KnowledgeOp is what was done to a piece of knowledge.
type KnowledgeOp string

const (
	KnowledgeAdded   KnowledgeOp = "added"
	KnowledgeEdited  KnowledgeOp = "edited"
	KnowledgeRemoved KnowledgeOp = "removed"
)

// KnowledgeChanged records one change with the whole of what now holds; for a
// removal what held until then.
type KnowledgeChanged struct {
	Contract  string      `json:"contract"`
	Op        KnowledgeOp `json:"op"`
	Knowledge Knowledge   `json:"knowledge"`
	By        Answerer    `json:"by"`
}

// Kind names the entry.
func (KnowledgeChanged) Kind() Kind { return KKnowledgeChanged }

// ErrKnowledge says that a piece of knowledge cannot be kept as it is.
var ErrKnowledge = errors.New("not a piece of knowledge")

// Check holds the bounds of a piece of knowledge: one line of text, few topics, a
// scope and a sensitivity that exist. Ids and times are not looked at.
func (k Knowledge) Check() error {
	if name, project := strings.CutPrefix(k.Scope, "project:"); k.Scope != "host" && (!project || name == "") {
		return fmt.Errorf("%w: the scope %.80q is neither host nor project:NAME", ErrKnowledge, k.Scope)
	}
	if err := oneLine("text", k.Text, MaxKnowledgeText); err != nil {
		return err
	}
	if len(k.Topics) > MaxKnowledgeTopics {
		return fmt.Errorf("%w: %d topics, at most %d", ErrKnowledge, len(k.Topics), MaxKnowledgeTopics)
	}
	for _, t := range k.Topics {
		if err := oneLine("topic", t, MaxTopic); err != nil {
			return err
		}
	}
	switch k.Sensitivity {
	case "public", "internal", "secret":
		return nil
	}
	return fmt.Errorf("%w: the sensitivity %.40q is none of public, internal, secret", ErrKnowledge, k.Sensitivity)
}

func oneLine(what, s string, most int) error {
	switch {
	case strings.TrimSpace(s) == "":
		return fmt.Errorf("%w: the %s is empty", ErrKnowledge, what)
	case len(s) > most:
		return fmt.Errorf("%w: the %s has %d bytes, at most %d", ErrKnowledge, what, len(s), most)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
		return unicode.Is(unicode.C, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
	}):
		return fmt.Errorf("%w: the %s must be one line without control characters", ErrKnowledge, what)
	}
	return nil
}
