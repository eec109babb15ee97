// Package hold keeps open holds: it opens them, takes the one answer that wins,
// tells whoever waits, and lets them expire. It is the only way an answer gets
// in, whatever surface it came from. Who counts as a person is decided before a
// call arrives here; what an answer means for a turn is decided in daemon/gate.
package hold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/verdict"
)

const (
	// TaskTTL is how long an answer with scope task may be found by the next
	// turns of its conversation: as long as its hold could have waited.
	TaskTTL = 24 * time.Hour
	// ProjectTTL is how long an answer with scope project lasts.
	ProjectTTL = 24 * time.Hour
	// noted is the state of actions that are approved with a note.
	noted = "ESCALATE"
	// MaxText bounds what a person writes, in bytes.
	MaxText = 2000
)

// Faults of an answer, by who can mend it.
var (
	ErrNotFound = errors.New("no such hold")
	// ErrIncomplete: an item is missing, unknown, or lacks its text.
	ErrIncomplete = errors.New("the answer is not complete")
	// ErrNoAnswer: there is nothing that could be taken back.
	ErrNoAnswer = errors.New("nothing to take back")
)

// Closed is an answer that came too late. It says who was first, when and where.
type Closed struct{ Hold lemma.Hold }

func (c *Closed) Error() string {
	h := c.Hold
	for _, it := range h.Items {
		if a := it.Answer; a != nil {
			return fmt.Sprintf("hold %s was answered (%s) at %s by %s", short(h.ID), a.Answer, clock(a.At), Who(a.By))
		}
	}
	return fmt.Sprintf("hold %s is %s", short(h.ID), h.State)
}

// Who names an answerer as people read it.
func Who(by lemma.Answerer) string {
	name := by.User
	if name == "" {
		name = fmt.Sprintf("uid %d", by.UID)
	}
	if by.Via != "" {
		name += " via " + by.Via
	}
	if by.TTY != "" {
		name += " on " + strings.TrimPrefix(by.TTY, "/dev/")
	}
	return name
}

func short(id string) string {
	if len(id) > lemma.ShortLen {
		return id[len(id)-lemma.ShortLen:]
	}
	return id
}

func clock(ts string) string {
	if t, err := time.Parse(time.RFC3339Nano, ts); err == nil {
		return t.Local().Format("15:04:05")
	}
	return ts
}

// Store is what the book needs of the ledger.
type Store interface {
	Append(ctx context.Context, drafts ...ledger.Draft) (ledger.Receipt, error)
	Hold(id string) (lemma.Hold, error)
	FactBy(scope, subject, key string) (lemma.Fact, bool)
	Holds(state lemma.HoldState, limit int, cursor string) (ledger.Page[lemma.Hold], error)
}

// Book holds the holds. Its fields are set once, before the first call.
type Book struct {
	Store   Store
	Now     func() time.Time
	Entropy io.Reader
	Redact  func(string) string
	// ToldTTL is how long a told fact of a scope lasts.
	ToldTTL func(scope string) time.Duration

	mu      sync.Mutex // one opening, answer or end at a time: the first wins
	waiting map[string]chan struct{}
}

// Open opens h, or returns an open hold of the same conversation that asks all of
// it already and no more mildly: nobody is asked the same thing twice. before is
// written with it.
func (b *Book) Open(ctx context.Context, h lemma.Hold, before ...ledger.Draft) (lemma.Hold, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	open, err := b.open()
	if err != nil {
		return h, err
	}
	for _, o := range open {
		if o.Scope == h.Scope && o.Conversation == h.Conversation && o.Kind == h.Kind && o.Class.Rank() >= h.Class.Rank() && covers(o, h) {
			if len(before) > 0 {
				if _, err := b.Store.Append(ctx, before...); err != nil {
					return h, fmt.Errorf("record turn: %w", err)
				}
			}
			return o, nil
		}
	}
	if h.ID, err = lemma.NewID(lemma.IDHold, b.Now(), b.Entropy); err != nil {
		return h, err
	}
	h.State, h.OpenedAt = lemma.HoldOpen, lemma.Time(b.Now())
	drafts := append(slices.Clone(before), ledger.Draft{Turn: h.Turn, Body: lemma.HoldOpened{Contract: lemma.Contract, Hold: h}})
	if _, err := b.Store.Append(ctx, drafts...); err != nil {
		return h, fmt.Errorf("open hold: %w", err)
	}
	return h, nil
}

// covers reports whether o asks every claim of h.
func covers(o, h lemma.Hold) bool {
	for _, it := range h.Items {
		if !slices.ContainsFunc(o.Items, func(x lemma.HoldItem) bool { return x.ClaimID == it.ClaimID && hashOf(x) == hashOf(it) }) {
			return false
		}
	}
	return len(h.Items) > 0
}

// hashOf is the very action of an item, "" of a claim.
func hashOf(it lemma.HoldItem) string {
	if it.Action == nil {
		return ""
	}
	return it.Action.Hash
}

// open lists all open holds.
func (b *Book) open() ([]lemma.Hold, error) {
	var out []lemma.Hold
	for cursor := ""; ; {
		page, err := b.Store.Holds(lemma.HoldOpen, ledger.MaxLimit, cursor)
		if err != nil {
			return nil, fmt.Errorf("list holds: %w", err)
		}
		out = append(out, page.Items...)
		if cursor = page.Next; cursor == "" {
			return out, nil
		}
	}
}

// Find resolves an id or the end of one among open holds, then among all that
// the newest page shows.
func (b *Book) Find(id string) (lemma.Hold, error) {
	if h, err := b.Store.Hold(id); err == nil {
		return h, nil
	}
	if len(id) < 3 {
		return lemma.Hold{}, fmt.Errorf("%w: %q is too short to name one", ErrNotFound, id)
	}
	open, err := b.open()
	if err != nil {
		return lemma.Hold{}, err
	}
	page, err := b.Store.Holds("", ledger.MaxLimit, "")
	if err != nil {
		return lemma.Hold{}, fmt.Errorf("list holds: %w", err)
	}
	for _, list := range [][]lemma.Hold{open, page.Items} {
		var found []lemma.Hold
		for _, h := range list {
			if strings.HasSuffix(h.ID, strings.ToLower(id)) {
				found = append(found, h)
			}
		}
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return lemma.Hold{}, fmt.Errorf("%w: %q is the end of %d ids, give more of it", ErrNotFound, id, len(found))
		}
	}
	return lemma.Hold{}, fmt.Errorf("%w: %q", ErrNotFound, id)
}

// ItemAnswer is a person's word on one item.
type ItemAnswer struct {
	Item   string
	Answer lemma.AnswerKind
	Text   string
	Scope  lemma.AnswerScope
}

// Answer takes the answer to all items of a hold. The first one wins; a later
// one is *Closed. Confirmations and corrections with scope project become told
// facts; other open holds that ask nothing more are answered along.
func (b *Book) Answer(ctx context.Context, id string, items []ItemAnswer, by lemma.Answerer) (lemma.Hold, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h, err := b.Store.Hold(id)
	if errors.Is(err, ledger.ErrNotFound) {
		return h, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	if err != nil {
		return h, fmt.Errorf("read hold: %w", err)
	}
	now := b.Now()
	if h.State == lemma.HoldOpen && h.ExpiresAt <= lemma.Time(now) {
		if err := b.expire(ctx, h); err != nil {
			return h, err
		}
		h.State = lemma.HoldExpired
	}
	if h.State != lemma.HoldOpen {
		return h, &Closed{h}
	}
	answers, err := b.complete(h, items, by)
	if err != nil {
		return h, err
	}
	drafts := []ledger.Draft{{Turn: h.Turn, Body: lemma.HoldAnsweredBody{Contract: lemma.Contract, Hold: h.ID, Answers: answers}}}
	for i, a := range answers {
		if a.Scope != lemma.ScopeProject || (a.Answer != lemma.AnswerConfirm && a.Answer != lemma.AnswerCorrect) {
			continue
		}
		f, err := b.told(h.Scope, a, h.Items[i])
		if err != nil {
			return h, err
		}
		drafts = append(drafts, ledger.Draft{Turn: h.Turn, Body: lemma.FactWritten{Contract: lemma.Contract, Fact: f}})
		drafts = append(drafts, b.replaced(f)...)
	}
	open, err := b.open()
	if err != nil {
		return h, err
	}
	done := []string{h.ID}
	for _, o := range open {
		if along := b.along(o, h, answers); along != nil {
			drafts = append(drafts, ledger.Draft{Turn: o.Turn, Body: lemma.HoldAnsweredBody{Contract: lemma.Contract, Hold: o.ID, Answers: along}})
			done = append(done, o.ID)
		}
	}
	if _, err := b.Store.Append(ctx, drafts...); err != nil {
		return h, fmt.Errorf("record answer: %w", err)
	}
	for _, d := range done {
		b.wake(d)
	}
	return b.Store.Hold(id)
}

// complete checks that every item is answered in full and makes the answers.
func (b *Book) complete(h lemma.Hold, items []ItemAnswer, by lemma.Answerer) ([]lemma.Answer, error) {
	now := b.Now()
	out := make([]lemma.Answer, len(h.Items))
	seen := map[string]bool{}
	for _, it := range items {
		i := slices.IndexFunc(h.Items, func(x lemma.HoldItem) bool { return x.ID == it.Item })
		switch {
		case i < 0:
			return nil, fmt.Errorf("%w: hold %s has no item %q", ErrIncomplete, short(h.ID), it.Item)
		case seen[it.Item]:
			return nil, fmt.Errorf("%w: item %s is answered twice", ErrIncomplete, it.Item)
		}
		seen[it.Item] = true
		text := strings.TrimSpace(it.Text)
		act := h.Items[i].Action
		switch it.Answer {
		case lemma.AnswerApprove, lemma.AnswerDeny:
			switch {
			case act == nil:
				return nil, fmt.Errorf("%w: item %s is a claim: confirm, correct or waive", ErrIncomplete, it.Item)
			case it.Answer == lemma.AnswerApprove && act.State == noted && text == "":
				return nil, fmt.Errorf("%w: what cannot be read to its end is approved with a note that says why", ErrIncomplete)
			case it.Scope == lemma.ScopeProject:
				return nil, fmt.Errorf("%w: an action is approved or denied for its task or once, not for the project", ErrIncomplete)
			case by.Via == "chat":
				return nil, fmt.Errorf("%w: actions are approved in a terminal only", ErrIncomplete)
			}
		case lemma.AnswerConfirm, lemma.AnswerCorrect, lemma.AnswerWaive:
			if act != nil {
				return nil, fmt.Errorf("%w: item %s is an action: approve or deny", ErrIncomplete, it.Item)
			}
		}
		switch it.Answer {
		case lemma.AnswerApprove, lemma.AnswerDeny, lemma.AnswerConfirm:
		case lemma.AnswerCorrect:
			if text == "" {
				return nil, fmt.Errorf("%w: a correction says what is true", ErrIncomplete)
			}
		case lemma.AnswerWaive:
			if text == "" {
				return nil, fmt.Errorf("%w: a waiver says why", ErrIncomplete)
			}
		default:
			return nil, fmt.Errorf("%w: %q is no answer: confirm, correct or waive a claim, approve or deny an action", ErrIncomplete, it.Answer)
		}
		if len(text) > MaxText || !utf8.ValidString(text) {
			return nil, fmt.Errorf("%w: the text of item %s is longer than %d bytes, or not UTF-8", ErrIncomplete, it.Item, MaxText)
		}
		scope, ttl := it.Scope, TaskTTL
		switch scope {
		case "":
			scope = lemma.ScopeTask
		case lemma.ScopeTask, lemma.ScopeOnce:
		case lemma.ScopeProject:
			ttl = ProjectTTL
			if h.Scope == "host" {
				return nil, fmt.Errorf("%w: hold %s belongs to no project, so its answer cannot have scope project", ErrIncomplete, short(h.ID))
			}
		default:
			return nil, fmt.Errorf("%w: %q is no scope: task, project or once", ErrIncomplete, scope)
		}
		out[i] = lemma.Answer{
			Hold: h.ID, Item: it.Item, ClaimID: h.Items[i].ClaimID, Answer: it.Answer, Text: b.Redact(text), Scope: scope,
			Conversation: h.Conversation, ExpiresAt: lemma.Time(now.Add(ttl)), By: by, At: lemma.Time(now),
		}
	}
	for _, it := range h.Items {
		if !seen[it.ID] {
			return nil, fmt.Errorf("%w: item %s (%s) has no answer", ErrIncomplete, it.ID, it.Claim)
		}
	}
	return out, nil
}

// along answers another open hold of the same scope whose every claim was just
// answered. An answer for once stays with the hold that it was given to.
func (b *Book) along(o, h lemma.Hold, answers []lemma.Answer) []lemma.Answer {
	if o.ID == h.ID || o.Scope != h.Scope {
		return nil
	}
	var out []lemma.Answer
	for _, it := range o.Items {
		if it.Action != nil {
			return nil // what lets an action out was said of that very hold
		}
		i := slices.IndexFunc(answers, func(a lemma.Answer) bool { return a.ClaimID == it.ClaimID && a.Scope != lemma.ScopeOnce })
		if i < 0 {
			return nil
		}
		if answers[i].Scope == lemma.ScopeTask && o.Conversation != h.Conversation {
			return nil // it binds that conversation only
		}
		if answers[i].By.Via == "chat" && o.Class.Rank() >= lemma.Destructive.Rank() {
			return nil // a chat never carries what destroys
		}
		a := answers[i]
		a.Hold, a.Item, a.Conversation = o.ID, it.ID, o.Conversation
		out = append(out, a)
	}
	return out
}

// told makes the fact that a confirmation or correction for the project is.
func (b *Book) told(scope string, a lemma.Answer, it lemma.HoldItem) (lemma.Fact, error) {
	claim := it.Claim
	if a.Answer == lemma.AnswerCorrect {
		claim = a.Text
	}
	return b.fact(scope, claim, a.ClaimID, a.Hold, a.By)
}

func (b *Book) fact(scope, claim, key, ref string, by lemma.Answerer) (lemma.Fact, error) {
	now := b.Now()
	id, err := lemma.NewID(lemma.IDFact, now, b.Entropy)
	if err != nil {
		return lemma.Fact{}, err
	}
	ttl := b.ToldTTL(scope)
	seconds, end := int64(ttl/time.Second), lemma.Time(now.Add(ttl))
	return lemma.Fact{
		ID: id, Scope: scope, Subject: "person", Claim: claim, Key: key, Provenance: lemma.Told, Status: lemma.StatusActive, Sensitivity: "internal",
		Source:     lemma.Source{Kind: "user", Ref: ref, Origin: Who(by), OriginClass: "person"},
		TTLSeconds: &seconds, CreatedAt: lemma.Time(now), ExpiresAt: &end,
	}, nil
}

// visible drops what no sentence needs and a terminal or a reader may fall for:
// control characters and signs that turn the direction of text.
func visible(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == utf8.RuneError:
		return -1
	}
	return r
}

// Tell records a fact that a person states of their own accord.
func (b *Book) Tell(ctx context.Context, scope, claim string, by lemma.Answerer) (lemma.Fact, error) {
	claim = strings.Join(strings.Fields(strings.Map(visible, claim)), " ")
	if claim == "" || len(claim) > MaxText || !utf8.ValidString(claim) {
		return lemma.Fact{}, fmt.Errorf("%w: a fact is one sentence of at most %d bytes", ErrIncomplete, MaxText)
	}
	claim = b.Redact(claim)
	f, err := b.fact(scope, claim, verdict.TextID(nil, claim), RefTell, by)
	if err != nil {
		return f, err
	}
	if _, err := b.Store.Append(ctx, ledger.Draft{Body: lemma.FactWritten{Contract: lemma.Contract, Fact: f}}); err != nil {
		return f, fmt.Errorf("record fact: %w", err)
	}
	return f, nil
}

// Done returns a channel that closes when the hold is no longer open.
func (b *Book) Done(id string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h, err := b.Store.Hold(id); err == nil && h.State != lemma.HoldOpen {
		gone := make(chan struct{})
		close(gone)
		return gone
	}
	if b.waiting == nil {
		b.waiting = map[string]chan struct{}{}
	}
	if b.waiting[id] == nil {
		b.waiting[id] = make(chan struct{})
	}
	return b.waiting[id]
}

// wake tells those who wait; the lock is held.
func (b *Book) wake(id string) {
	if ch := b.waiting[id]; ch != nil {
		close(ch)
		delete(b.waiting, id)
	}
}

func (b *Book) expire(ctx context.Context, h lemma.Hold) error {
	if _, err := b.Store.Append(ctx, ledger.Draft{Turn: h.Turn, Body: lemma.HoldExpiredBody{Contract: lemma.Contract, Hold: h.ID}}); err != nil {
		return fmt.Errorf("expire hold: %w", err)
	}
	b.wake(h.ID)
	return nil
}

// Expire ends the holds whose time is up.
func (b *Book) Expire(ctx context.Context, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	open, err := b.open()
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range open {
		if h.ExpiresAt <= lemma.Time(now) {
			errs = append(errs, b.expire(ctx, h))
		}
	}
	return errors.Join(errs...)
}
