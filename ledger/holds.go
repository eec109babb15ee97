package ledger

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/lemma"
	"go.etcd.io/bbolt"
)

func holdStateKey(h lemma.Hold) []byte { return append(part(nil, string(h.State)), h.ID...) }

func (f *fold) putHold(old *lemma.Hold, h lemma.Hold) error {
	if old != nil {
		if err := f.s.del(bHoldsByState, holdStateKey(*old)); err != nil {
			return err
		}
	}
	if err := putJSON(f.s, bHolds, []byte(h.ID), h); err != nil {
		return err
	}
	return f.s.put(bHoldsByState, holdStateKey(h), []byte{})
}

// holdOpened adds a hold; an id that is known stays as it was.
func (f *fold) holdOpened(h lemma.Hold) error {
	if f.s.get(bHolds, []byte(h.ID)) != nil {
		return nil
	}
	h.State = lemma.HoldOpen
	return f.putHold(nil, h)
}

// holdAnswered closes an open hold; the first answer wins. Answers that reach
// further than this turn are filed under the hold's scope and their claim.
func (f *fold) holdAnswered(e chain.Entry, b lemma.HoldAnsweredBody) error {
	old, ok := getJSON[lemma.Hold](f.s, bHolds, []byte(b.Hold))
	if !ok || old.State != lemma.HoldOpen {
		return nil
	}
	h := old
	h.State = lemma.HoldAnswered
	h.Items = slices.Clone(old.Items)
	for i, a := range b.Answers {
		at := slices.IndexFunc(h.Items, func(it lemma.HoldItem) bool { return it.ID == a.Item })
		if at < 0 {
			continue
		}
		if a.ClaimID == "" {
			a.ClaimID = h.Items[at].ClaimID
		}
		if a.Conversation == "" {
			a.Conversation = h.Conversation
		}
		h.Items[at].Answer = &a
		// What is given once to an action waits for the next time it comes.
		once := a.Scope == lemma.ScopeOnce && h.Items[at].Action != nil
		if a.Scope != lemma.ScopeTask && a.Scope != lemma.ScopeProject && !once || a.ClaimID != h.Items[at].ClaimID {
			continue // an answer binds the claim that was asked, and nothing else
		}
		key := part(part(nil, h.Scope), a.ClaimID)
		key = binary.BigEndian.AppendUint32(append(key, u64(e.Seq)...), uint32(i))
		if err := putJSON(f.s, bAnswers, key, a); err != nil {
			return err
		}
	}
	return f.putHold(&old, h)
}

// revokedKey stands for an answer that was taken back. No scope begins with its
// first part, so it is no answer's key.
func revokedKey(hold, item string) []byte { return part(part(nil, "revoked"), hold+"/"+item) }

// answerRevoked ends answers; those that are not there, or ended before, stay as
// they are.
func (f *fold) answerRevoked(e chain.Entry, b lemma.AnswerRevoked) error {
	h, ok := getJSON[lemma.Hold](f.s, bHolds, []byte(b.Hold))
	if !ok {
		return nil
	}
	items := slices.Clone(h.Items)
	for i, it := range items {
		if it.Answer == nil || it.Answer.RevokedAt != "" || !slices.Contains(b.Items, it.ID) {
			continue
		}
		a := *it.Answer
		a.RevokedAt = e.TS
		items[i].Answer = &a
		if err := f.s.put(bAnswers, revokedKey(h.ID, it.ID), u64(e.Seq)); err != nil {
			return err
		}
	}
	old := h
	h.Items = items
	return f.putHold(&old, h)
}

// usedKey stands for an approval that was given once and has let its action out.
// No scope begins with its first part, so it is no answer's key.
func usedKey(hold, item string) []byte { return part(part(nil, "used"), hold+"/"+item) }

// approvalUsed notes what an action left by.
func (f *fold) approvalUsed(e chain.Entry, b lemma.ActionDecided) error {
	hold, item, ok := strings.Cut(b.Approval, "/")
	if !ok || b.State != "ALLOW" {
		return nil
	}
	return f.s.put(bAnswers, usedKey(hold, item), u64(e.Seq))
}

// Approvals lists what persons said to actions filed under an id, newest first
// and at most maxApprovals: for the task in this conversation, or once and not
// used yet. Whether one covers an action is not ruled here.
func (l *Ledger) Approvals(scope, conversation, claimID string, now time.Time) (found []lemma.Answer) {
	prefix := answersEnd(scope, claimID)
	_ = l.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketNames[bAnswers])
		c := b.Cursor()
		for k, raw := lastWith(c, prefix); k != nil && len(found) < maxApprovals; k, raw = prevWith(c, prefix) {
			var a lemma.Answer
			if len(k) != len(prefix)+12 || json.Unmarshal(raw, &a) != nil || a.Answer != lemma.AnswerApprove && a.Answer != lemma.AnswerDeny {
				continue
			}
			if a.Conversation == "" || a.Conversation != conversation || a.Scope != lemma.ScopeTask && a.Scope != lemma.ScopeOnce {
				continue
			}
			if a.Scope == lemma.ScopeOnce && b.Get(usedKey(a.Hold, a.Item)) != nil || b.Get(revokedKey(a.Hold, a.Item)) != nil {
				continue
			}
			end, err := time.Parse(time.RFC3339Nano, a.ExpiresAt)
			if err != nil || !now.Before(end) {
				continue
			}
			found = append(found, a)
		}
		return nil
	})
	return found
}

// maxApprovals bounds what is looked through for one action.
const maxApprovals = 64

// answersEnd is the key under which stands the entry that ended all confirmations
// and corrections of a claim before it. It is the prefix of their own keys.
func answersEnd(scope, claimID string) []byte { return part(part(nil, scope), claimID) }

func (f *fold) holdEnds(id string, state lemma.HoldState) error {
	old, ok := getJSON[lemma.Hold](f.s, bHolds, []byte(id))
	if !ok || old.State != lemma.HoldOpen {
		return nil
	}
	h := old
	h.State = state
	return f.putHold(&old, h)
}

// Holds lists holds of a state, all when it is empty, newest first.
func (l *Ledger) Holds(state lemma.HoldState, limit int, cursor string) (Page[lemma.Hold], error) {
	keep := func(raw []byte) (h lemma.Hold, ok bool) { return h, json.Unmarshal(raw, &h) == nil }
	if state == "" {
		return list(l, bHolds, bHolds, [][]byte{nil}, limit, cursor, keep)
	}
	return list(l, bHoldsByState, bHolds, [][]byte{part(nil, string(state))}, limit, cursor, keep)
}

// Hold returns one hold with its answers, or ErrNotFound.
func (l *Ledger) Hold(id string) (lemma.Hold, error) { return one[lemma.Hold](l, bHolds, []byte(id)) }

// Answers returns the newest answer to a claim that still holds at now: one with
// scope project binds in its scope, one with scope task in its conversation.
// Confirmations and corrections end with the told fact that a person withdrew, all
// of them where they were taken back.
// Approvals and denials of actions bind their action only and are not found here.
func (l *Ledger) Answers(scope, conversation, claimID string, now time.Time) (found lemma.Answer, ok bool) {
	prefix := answersEnd(scope, claimID)
	_ = l.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketNames[bAnswers])
		ended, withdrawn := fromU64(b.Get(prefix))
		c := b.Cursor()
		for k, raw := lastWith(c, prefix); k != nil; k, raw = prevWith(c, prefix) {
			var a lemma.Answer
			if len(k) != len(prefix)+12 || json.Unmarshal(raw, &a) != nil {
				continue
			}
			switch a.Answer {
			case lemma.AnswerWaive:
			case lemma.AnswerConfirm, lemma.AnswerCorrect:
				if seq, _ := fromU64(k[len(prefix) : len(prefix)+8]); withdrawn && seq < ended {
					continue
				}
			default:
				continue
			}
			if a.Scope == lemma.ScopeTask && (a.Conversation == "" || a.Conversation != conversation) || b.Get(revokedKey(a.Hold, a.Item)) != nil {
				continue
			}
			// No readable end, no answer: an answer never binds for ever by mistake.
			end, err := time.Parse(time.RFC3339Nano, a.ExpiresAt)
			if err != nil || !now.Before(end) {
				continue
			}
			found, ok = a, true
			return nil
		}
		return nil
	})
	return found, ok
}
