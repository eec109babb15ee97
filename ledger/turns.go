package ledger

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strings"

	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
	"go.etcd.io/bbolt"
)

// TurnRow is a turn as its entries tell it so far. Stage is the last kind that
// it reached, Rung -1 until a declaration passed. First and Last are sequence
// numbers.
type TurnRow struct {
	Agent         string         `json:"agent"`
	Class         lemma.Class    `json:"class"`
	ClosedAt      string         `json:"closed_at,omitempty"`
	Conversation  string         `json:"conversation"`
	Counts        lemma.Counts   `json:"counts"`
	Decision      lemma.Decision `json:"decision"`
	Entries       int            `json:"entries"`
	Error         string         `json:"error,omitempty"`
	First         uint64         `json:"first"`
	Format        string         `json:"format"`
	Hold          string         `json:"hold,omitempty"` // newest hold that it opened
	ID            string         `json:"id"`
	Key           string         `json:"key"`
	RequestKind   string         `json:"kind"`
	Last          uint64         `json:"last"`
	Mode          lemma.Mode     `json:"mode"`
	Model         string         `json:"model"`
	OpenedAt      string         `json:"opened_at"`
	Prompt        string         `json:"prompt"`
	Rung          int            `json:"rung"`
	Scope         string         `json:"scope"`
	ScopeEvidence string         `json:"scope_evidence"`
	Stage         lemma.Kind     `json:"stage"`
	Status        int            `json:"status"`
	UID           int            `json:"uid"`
	Upstream      string         `json:"upstream"`
	UsageClient   lemma.Usage    `json:"usage_client"`
	UsageOurs     lemma.Usage    `json:"usage_ours"`
}

// Rung is what is known of a model behind an upstream: the rung of the ladder
// that last worked, how many declarations in a row it has carried, and totals.
type Rung struct {
	Rung       int    `json:"rung"`  // -1 until a declaration passed
	Turns      int    `json:"turns"` // declarations since the rung last changed
	Declared   int    `json:"declared"`
	Undeclared int    `json:"undeclared"` // every rung was tried and failed
	Failing    int    `json:"failing"`    // undeclared in a row
	Uses       [5]int `json:"uses"`       // declarations by rung
	At         string `json:"at"`         // of the newest entry that moved it
}

// Block is a sticky block as it was sent: its bytes, and the anchor they follow.
type Block struct {
	Turn   string `json:"turn"`
	Anchor string `json:"anchor"`
	Why    string `json:"why"`
	Text   string `json:"-"`
	Sum    string `json:"blob"`
	Seq    uint64 `json:"-"`
}

func modelKey(upstream, model string) []byte { return part(part(nil, upstream), model) }

func turnEntryKey(turn string, seq uint64) []byte { return append(part(nil, turn), u64(seq)...) }

// row returns the turn's row for changing, nil when there is none.
func (f *fold) row(id string) *TurnRow {
	if r := f.turns[id]; r != nil {
		return r
	}
	r, ok := f.known[id]
	if !ok {
		if r, ok = getJSON[TurnRow](f.s, bTurns, []byte(id)); !ok {
			return nil
		}
	}
	f.touch(&r)
	return &r
}

func (f *fold) touch(r *TurnRow) {
	f.turns[r.ID] = r
	f.order = append(f.order, r.ID)
}

// maxKnown bounds the rows that the writer remembers.
const maxKnown = 1024

// learn takes the rows of a batch that is durable over into what is known.
func learn(known map[string]TurnRow, rows map[string]*TurnRow) map[string]TurnRow {
	if known == nil || len(known)+len(rows) > maxKnown {
		known = map[string]TurnRow{} // they can be read again
	}
	for id, r := range rows {
		if r.ClosedAt != "" {
			delete(known, id)
			continue
		}
		known[id] = *r
	}
	return known
}

// turn folds what an entry says of its turn.
func (f *fold) turn(e chain.Entry, value lemma.Body) error {
	if b, ok := value.(lemma.ChainRecovered); ok {
		if err := f.recovered(e, b); err != nil {
			return err
		}
	}
	if e.Turn == "" {
		return nil
	}
	f.key = binary.BigEndian.AppendUint64(part(f.key[:0], e.Turn), e.Seq)
	if err := f.s.put(bTurnEntries, f.key, []byte{}); err != nil {
		return err
	}
	r := f.row(e.Turn)
	if b, ok := value.(lemma.TurnOpened); ok && r == nil {
		r = &TurnRow{
			ID: e.Turn, Conversation: b.Conversation, Key: b.Key, Scope: b.Scope, ScopeEvidence: b.ScopeEvidence,
			Class: b.Class, RequestKind: b.RequestKind, Format: b.Format, Upstream: b.Upstream, Model: b.Model,
			Agent: b.Principal.Agent, UID: b.Principal.UID, Prompt: b.Prompt, OpenedAt: e.TS, Rung: -1, First: e.Seq,
		}
		f.touch(r)
		if err := f.s.put(bTurnsOpen, []byte(r.ID), []byte{}); err != nil {
			return err
		}
		// Side requests stay outside conversations.
		if r.Conversation != "" && !strings.HasPrefix(r.RequestKind, "side:") {
			if err := f.s.put(bConversations, append(part(nil, r.Conversation), u64(e.Seq)...), []byte(r.ID)); err != nil {
				return err
			}
		}
	}
	if r == nil {
		return nil
	}
	r.Stage, r.Last, r.Entries = lemma.Kind(e.Kind), e.Seq, r.Entries+1
	switch b := value.(type) {
	case lemma.TurnClassified:
		r.Class = lemma.MaxClass(r.Class, b.Class)
	case lemma.TurnInjected:
		return f.injected(e, r, b)
	case lemma.TurnDeclared:
		r.Rung = b.Rung
		r.UsageOurs = r.UsageOurs.Add(b.Usage)
		return f.model(e, r, &b, nil)
	case lemma.TurnUndeclared:
		r.UsageOurs = r.UsageOurs.Add(b.Usage)
		return f.model(e, r, nil, &b)
	case lemma.HoldOpened:
		r.Hold = b.Hold.ID
	case lemma.GateDecided:
		counts := b.Counts
		counts.Allowed, counts.Denied, counts.Held = r.Counts.Allowed, r.Counts.Denied, r.Counts.Held
		r.Decision, r.Mode, r.Counts = b.Decision, b.Mode, counts
		r.Class = lemma.MaxClass(r.Class, b.Class)
	case lemma.ActionDecided:
		switch b.State {
		case "ALLOW":
			r.Counts.Allowed++
		case "DENY":
			r.Counts.Denied++
		case "REQUIRE_CONFIRM", "ESCALATE":
			r.Counts.Held++
		}
	case lemma.TurnClosed:
		r.ClosedAt, r.Status, r.Error = e.TS, b.Status, b.Error
		r.UsageClient, r.UsageOurs = b.UsageClient, b.UsageOurs
		if b.Decision != "" {
			r.Decision = b.Decision
		}
		return f.s.del(bTurnsOpen, []byte(r.ID))
	}
	return nil
}

// recovered ends turns whose daemon died: nobody drives them any more.
func (f *fold) recovered(e chain.Entry, b lemma.ChainRecovered) error {
	for _, t := range b.Turns {
		r := f.row(t.Turn)
		if r == nil || r.ClosedAt != "" {
			continue
		}
		r.ClosedAt, r.Error = e.TS, "stopped at "+string(r.Stage)
		if r.Decision == "" {
			r.Decision = lemma.DecError
		}
		if err := f.s.del(bTurnsOpen, []byte(r.ID)); err != nil {
			return err
		}
	}
	return nil
}

func (f *fold) injected(e chain.Entry, r *TurnRow, b lemma.TurnInjected) error {
	conversation := b.Conversation
	if conversation == "" {
		conversation = r.Conversation
	}
	if conversation == "" {
		return nil
	}
	return putJSON(f.s, bBlocks, append(part(nil, conversation), u64(e.Seq)...), Block{Turn: r.ID, Anchor: b.Anchor, Why: b.Why, Sum: b.BlockBlob})
}

func (f *fold) model(e chain.Entry, r *TurnRow, d *lemma.TurnDeclared, u *lemma.TurnUndeclared) error {
	key := modelKey(r.Upstream, r.Model)
	m, ok := getJSON[Rung](f.s, bModels, key)
	if !ok {
		m.Rung = -1
	}
	switch {
	case d != nil && d.Rung >= 0 && d.Rung < len(m.Uses):
		if m.Rung != d.Rung {
			m.Rung, m.Turns = d.Rung, 0
		}
		m.Turns++
		m.Declared++
		m.Uses[d.Rung]++
		m.Failing = 0
	case u != nil && len(u.Tried) > 0: // a pass that was not made says nothing of the model
		m.Undeclared++
		m.Failing++
	default:
		return nil
	}
	m.At = e.TS
	return putJSON(f.s, bModels, key, m)
}

// TurnFilter chooses turns; empty members choose all.
type TurnFilter struct {
	Conversation string
	Scope        string
	Decision     lemma.Decision
	Model        string
	Agent        string
	Open         bool // only turns that have not ended
}

// Turns lists turns, newest first. Side requests stand outside conversations and
// are not found by one.
func (l *Ledger) Turns(limit int, cursor string, q TurnFilter) (Page[TurnRow], error) {
	keep := func(raw []byte) (r TurnRow, ok bool) {
		if json.Unmarshal(raw, &r) != nil {
			return r, false
		}
		return r, (q.Conversation == "" || r.Conversation == q.Conversation) && (q.Scope == "" || r.Scope == q.Scope) &&
			(q.Decision == "" || r.Decision == q.Decision) && (q.Model == "" || r.Model == q.Model) && (q.Agent == "" || r.Agent == q.Agent) && (!q.Open || r.ClosedAt == "")
	}
	switch {
	case q.Open:
		return list(l, bTurnsOpen, bTurns, [][]byte{nil}, limit, cursor, keep)
	case q.Conversation != "":
		return list(l, bConversations, bTurns, [][]byte{part(nil, q.Conversation)}, limit, cursor, keep)
	}
	return list(l, bTurns, bTurns, [][]byte{nil}, limit, cursor, keep)
}

// Turn returns one turn, or ErrNotFound.
func (l *Ledger) Turn(id string) (TurnRow, error) { return one[TurnRow](l, bTurns, []byte(id)) }

// conversationDepth is how far back OpenTurn looks.
const conversationDepth = 64

// LastTurn returns the newest turn of a conversation.
func (l *Ledger) LastTurn(conversation string) (TurnRow, bool) {
	return l.newestTurn(conversation, 1, func(TurnRow) bool { return true })
}

// OpenTurn returns the newest turn of a conversation that has not ended.
func (l *Ledger) OpenTurn(conversation string) (TurnRow, bool) {
	return l.newestTurn(conversation, conversationDepth, func(r TurnRow) bool { return r.ClosedAt == "" })
}

func (l *Ledger) newestTurn(conversation string, depth int, keep func(TurnRow) bool) (found TurnRow, ok bool) {
	prefix := part(nil, conversation)
	_ = l.view(func(tx *bbolt.Tx) error {
		s := newTxState(tx)
		c := s.bucket(bConversations).Cursor()
		for k, id := lastWith(c, prefix); k != nil && depth > 0; k, id = prevWith(c, prefix) {
			depth--
			if r, have := getJSON[TurnRow](s, bTurns, id); have && keep(r) {
				found, ok = r, true
				return nil
			}
		}
		return nil
	})
	return found, ok
}

// Blocks returns the sticky blocks of a conversation in the order they were
// sent. A block whose text was pruned is left out.
func (l *Ledger) Blocks(conversation string) ([]Block, error) {
	prefix := part(nil, conversation)
	type stored struct {
		Block
		sum  [32]byte
		data []byte
	}
	var found []stored
	err := l.view(func(tx *bbolt.Tx) error {
		s := newTxState(tx)
		c := s.bucket(bBlocks).Cursor()
		for k, raw := c.Seek(prefix); k != nil && strings.HasPrefix(string(k), string(prefix)); k, raw = c.Next() {
			seq, ok := fromU64(k[len(prefix):])
			if !ok {
				continue
			}
			b := stored{Block: Block{Seq: seq}}
			if json.Unmarshal(raw, &b.Block) != nil {
				continue
			}
			if b.sum, ok = parseSum(b.Sum); !ok {
				continue
			}
			if data := s.get(bBlobs, b.sum[:]); data != nil {
				b.data = append([]byte(nil), data...)
				found = append(found, b)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]Block, 0, len(found))
	for _, b := range found {
		text, err := l.cod.unpack(b.sum, b.data)
		if err != nil {
			return nil, err
		}
		b.Sum = hex.EncodeToString(b.sum[:])
		b.Text = string(text)
		out = append(out, b.Block)
	}
	return out, nil
}

// ModelRung returns what is known of a model. A model never seen has Rung -1.
func (l *Ledger) ModelRung(upstream, model string) (m Rung) {
	m.Rung = -1
	_ = l.view(func(tx *bbolt.Tx) error {
		if v, ok := getJSON[Rung](newTxState(tx), bModels, modelKey(upstream, model)); ok {
			m = v
		}
		return nil
	})
	return m
}
