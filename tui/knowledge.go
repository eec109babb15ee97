package tui

import (
	"context"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/tui/words"
)

// knowledge shows what persons keep for models: nothing measures it and it does
// not run out, so it is a text beside the facts and no row among them.
func (m *Model) knowledge() tea.Cmd {
	p := &pager{title: "knowledge"}
	p.set([]para{{text: "…", st: m.look.Dim}})
	m.pager = p
	return m.ask(callLimit, func(ctx context.Context) then {
		l, err := m.d.Knowledge(ctx, ipc.KnowledgeQuery{})
		return func(m *Model) tea.Cmd {
			if err != nil {
				p.set([]para{{text: "could not be read: " + reason(err), st: m.look.Bad}})
				return nil
			}
			p.set(m.knowledgeParas(l.Items))
			return nil
		}
	})
}

func (m *Model) knowledgeParas(items []lemma.Knowledge) []para {
	dim := m.look.Dim
	if len(items) == 0 {
		return []para{{text: "nothing is kept for models to read. Write some: gettier knowledge add", st: dim}}
	}
	var ps []para
	for _, k := range items {
		goes := tidy(k.Sensitivity)
		if k.Sensitivity == "secret" {
			goes = "secret, never sent"
		}
		ps = append(ps, para{text: tidy(k.Text), st: m.look.Strong})
		if len(k.Topics) > 0 {
			ps = append(ps, para{prefix: "  called by  ", pst: dim, text: tidy(strings.Join(k.Topics, ", "))})
		}
		ps = append(ps,
			para{prefix: "  where      ", pst: dim, text: join(" · ", scopeWord(k.Scope), goes)},
			para{prefix: "  since      ", pst: dim, text: join(" · ", m.stamp(k.ChangedAt), tidy(words.ShortID(k.ID)))},
			para{})
	}
	return append(ps, para{text: "change it: gettier knowledge edit", st: dim})
}
