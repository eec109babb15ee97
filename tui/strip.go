package tui

import (
	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

// strip is a turn's stages in one short line: route, inject, declare, verify,
// hold, ground, actions. A stage that was not needed has no mark.
type strip [7]byte

// Marks of a stage, the weightiest last.
const (
	markNone byte = iota
	markDone      // ✓
	markGap       // · not declared, not judged, withheld
	markAsk       // ?
	markBad       // ✗
	markDeny      // ⊘
)

var markGlyphs = [...]safe{"─", "✓", "·", "?", "✗", "⊘"}

// stripWidth is its columns: seven marks and what joins them.
const stripWidth = 13

func stripOf(entries []ipc.Entry) (s strip) {
	for _, e := range entries {
		s = s.add(e)
	}
	return s
}

func (s strip) add(e ipc.Entry) strip {
	set := func(stage int, mark byte) { s[stage] = max(s[stage], mark) }
	switch lemma.Kind(e.Kind) {
	case lemma.KTurnOpened:
		set(0, markDone)
	case lemma.KScopeConflict:
		set(0, markBad)
	case lemma.KTurnInjected:
		set(1, markDone)
	case lemma.KTurnDeclared:
		s[2] = markDone
	case lemma.KTurnUndeclared:
		set(2, markGap)
	case lemma.KSensorFailed:
		set(3, markGap)
	case lemma.KClaimJudged:
		var b lemma.ClaimJudged
		if !unmarshal(e, &b) {
			break
		}
		switch b.Verdict {
		case lemma.Contradicted:
			set(3, markBad)
		case lemma.Confirmed, lemma.VerdictTold, lemma.Waived:
			set(3, markDone)
		default:
			set(3, markGap)
		}
	case lemma.KHoldOpened:
		s[4] = markAsk
	case lemma.KHoldAnswered:
		s[4] = markDone
	case lemma.KHoldExpired, lemma.KHoldCancelled:
		s[4] = markDeny
	case lemma.KTurnGrounded:
		set(5, markDone)
	case lemma.KActionDecided:
		var b lemma.ActionDecided
		if !unmarshal(e, &b) {
			break
		}
		switch b.State {
		case "ALLOW":
			if s[6] == markGap {
				s[6] = markNone
			}
			set(6, markDone)
		case "WITHHELD": // the corrected answer has its own calls
			if s[6] == markNone {
				s[6] = markGap
			}
		case "DENY":
			set(6, markDeny)
		default:
			set(6, markAsk)
		}
	}
	return s
}

// draw draws it in stripWidth columns.
func (s strip) draw(m *Model, c *canvas) {
	last := len(s) - 1
	for last >= 0 && s[last] == markNone {
		last--
	}
	for i, k := range s {
		if i > last {
			c.gap(1)
		} else {
			st := m.look.Dim
			switch k {
			case markDone:
				st = m.look.Good
			case markAsk:
				st = m.look.Ask
			case markBad, markDeny:
				st = m.look.Bad
			}
			c.text(markGlyphs[k], st)
		}
		switch {
		case i == len(s)-1:
		case i < last:
			c.text("─", m.look.Dim)
		default:
			c.gap(1)
		}
	}
}
