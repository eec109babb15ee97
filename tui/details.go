package tui

import (
	"gettier.dev/gettierd/tui/words"
)

// detailParas is everything there is to a hold, out the outputs by item.
func (s *holds) detailParas(m *Model, h *hold, out map[string][]byte) []para {
	look := m.look
	ps := []para{
		{prefix: "plan      ", pst: look.Dim, text: first2(h.plan, "not said")},
		{prefix: "asked by  ", pst: look.Dim, text: join(" · ", h.who, tidy(h.Model))},
		{prefix: "turn      ", pst: look.Dim, text: tidy(h.Turn)},
		{prefix: "hold      ", pst: look.Dim, text: tidy(h.ID) + ", opened " + m.stamp(h.OpenedAt) + ", expires " + m.stamp(h.ExpiresAt)},
	}
	for i, it := range h.items {
		ps = append(ps, para{}, para{text: "claim " + safe(words.Thousands(i+1)) + " of " + safe(words.Thousands(len(h.items))), st: look.Strong})
		if it.action() {
			for k, l := range it.acts {
				prefix := safe("          ")
				if k == 0 {
					prefix = "wants     "
				}
				ps = append(ps, para{prefix: prefix, pst: look.Dim, text: l, st: look.Strong})
			}
			ps = append(ps, para{prefix: "in        ", pst: look.Dim, text: it.where},
				para{prefix: "effect    ", pst: look.Dim, text: join(": ", tidy(it.Action.Effect), it.reason), st: look.Ask},
				para{prefix: "decision  ", pst: look.Dim, text: tidy(it.Action.DecisionID) + ", action " + tidy(it.Action.Hash)})
			for _, f := range it.Action.Findings {
				ps = append(ps, para{prefix: "finding   ", pst: look.Dim, text: tidy(f)})
			}
		} else {
			ps = append(ps, para{prefix: "assumes   ", pst: look.Dim, text: it.claim},
				para{prefix: "verdict   ", pst: look.Dim, text: join(": ", tidy(string(it.Verdict)), it.reason), st: look.Ask})
		}
		for _, t := range it.tried {
			ps = append(ps, para{prefix: "tried     ", pst: look.Dim, text: t})
		}
		if it.EvidenceExcerpt != "" {
			ps = append(ps, para{prefix: "evidence  ", pst: look.Dim, text: tidy(it.EvidenceExcerpt)})
		}
		if b, ok := out[it.ID]; ok {
			for k, l := range tidyLines(string(b)) {
				prefix := safe("          ")
				if k == 0 {
					prefix = "output    "
				}
				ps = append(ps, para{prefix: prefix, pst: look.Dim, text: "│ " + l, raw: true})
			}
		}
	}
	return ps
}
