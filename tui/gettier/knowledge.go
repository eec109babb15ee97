package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/tui/words"
)

func (a *app) knowledgeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "knowledge",
		Short: "lasting truths that you keep for models to read",
		Long: "A piece of knowledge is one sentence that nobody measures and that does not run out. Where a prompt\n" +
			"touches its topics or its words, the model is told, as your word. A model cannot change it.",
		Example: "  gettier knowledge list\n  gettier knowledge search 'raise the upload limit'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withKnowledge(cmd, ipc.KnowledgeQuery{}, "no knowledge is kept: gettier knowledge add 'one sentence'")
		},
	}
	cmd.AddCommand(a.knowledgeList(), a.knowledgeShow(), a.knowledgeAdd(), a.knowledgeEdit(), a.knowledgeRemove(), a.knowledgeSearch())
	return cmd
}

func (a *app) knowledgeList() *cobra.Command {
	var q ipc.KnowledgeQuery
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "all that is kept",
		Example: "  gettier knowledge list\n  gettier knowledge list --scope project:shop --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withKnowledge(cmd, q, "no knowledge is kept")
		},
	}
	cmd.Flags().StringVar(&q.Scope, "scope", "", "host or project:NAME")
	return cmd
}

func (a *app) knowledgeSearch() *cobra.Command {
	var q ipc.KnowledgeQuery
	cmd := &cobra.Command{
		Use:     "search WORDS…",
		Short:   "what a prompt of these words would call up",
		Long:    "Ranks as for a prompt: topics first, then categories and shared words; below it what only has the\nwords in it.",
		Example: "  gettier knowledge search 'number the invoices anew'",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Text = strings.Join(args, " ")
			return a.withKnowledge(cmd, q, "nothing is called up")
		},
	}
	cmd.Flags().StringVar(&q.Scope, "scope", "", "host or project:NAME")
	return cmd
}

// withKnowledge prints what a query finds, or the words for nothing.
func (a *app) withKnowledge(cmd *cobra.Command, q ipc.KnowledgeQuery, nothing string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	l, err := c.Knowledge(cmd.Context(), q)
	if err != nil {
		return err
	}
	p := newPrinter(a.out)
	if a.json {
		p.value(l)
		return nil
	}
	if len(l.Items) == 0 {
		p.line("%s", nothing)
		return nil
	}
	ids := make([]string, len(l.Items))
	for i, k := range l.Items {
		ids[i] = k.ID
	}
	rows := [][]string{{"ID", "SCOPE", "FOR", "TOPICS", "TEXT"}}
	for _, k := range l.Items {
		rows = append(rows, []string{lemma.Short(k.ID, ids), k.Scope, readers(k.Sensitivity), strings.Join(k.Topics, ", "), k.Text})
	}
	p.table(rows)
	return nil
}

// readers says in a word whom a piece may reach.
func readers(sensitivity string) string {
	switch sensitivity {
	case "public":
		return "all"
	case "secret":
		return "none"
	}
	return "trusted"
}

func (a *app) knowledgeShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "one piece",
		Example: "  gettier knowledge show 0001",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			k, err := findKnowledge(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(k)
				return nil
			}
			p.line("id           %s", k.ID)
			p.line("scope        %s", k.Scope)
			p.hang("text         ", k.Text)
			p.line("topics       %s", words.Or(strings.Join(k.Topics, ", "), "none"))
			p.line("sensitivity  %s", k.Sensitivity)
			p.line("added        %s", a.stamp(k.CreatedAt))
			if k.ChangedAt != k.CreatedAt {
				p.line("changed      %s", a.stamp(k.ChangedAt))
			}
			return nil
		},
	}
}

func (a *app) knowledgeAdd() *cobra.Command {
	var ch ipc.KnowledgeChange
	cmd := &cobra.Command{
		Use:     "add TEXT",
		Short:   "keep one sentence",
		Long:    "Keeps a sentence for the project you stand in, or for this machine with --scope host. Where a prompt\ntouches one of its topics, or its words, the model is told.",
		Example: "  gettier knowledge add 'invoices are numbered by a database sequence' --scope project:shop --topic invoice",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			if ch.Scope == "" {
				name, err := a.project(cmd, c)
				if err != nil {
					return err
				}
				if name == "" {
					return usage("this directory is in no registered project; add --scope host, or gettier project add")
				}
				ch.Scope = "project:" + name
			}
			ch.Text = args[0]
			return a.changeKnowledge(cmd, c, []ipc.KnowledgeChange{ch}, nil)
		},
	}
	f := cmd.Flags()
	f.StringVar(&ch.Scope, "scope", "", "host or project:NAME (default: the project you stand in)")
	f.StringArrayVar(&ch.Topics, "topic", nil, "a word, a phrase, a directory or a category (db.target) that calls it up; again for more")
	f.StringVar(&ch.Sensitivity, "sensitivity", "internal", "public, internal (trusted upstreams only) or secret (never sent)")
	return cmd
}

func (a *app) knowledgeRemove() *cobra.Command {
	return &cobra.Command{
		Use:     "rm ID…",
		Aliases: []string{"remove"},
		Short:   "keep it no longer",
		Long:    "Removes pieces; the log goes on saying that they were there. Blocks that were sent stay as they are.",
		Example: "  gettier knowledge rm 0001",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			var changes []ipc.KnowledgeChange
			seen := map[string]bool{}
			for _, id := range args {
				k, err := findKnowledge(cmd.Context(), c, id)
				if err != nil {
					return err
				}
				if !seen[k.ID] {
					changes = append(changes, ipc.KnowledgeChange{ID: k.ID, Was: k.ChangedAt, Remove: true})
				}
				seen[k.ID] = true
			}
			return a.changeKnowledge(cmd, c, changes, nil)
		},
	}
}

// changeKnowledge makes the changes and prints each; before is what stood there,
// to tell what did not change.
func (a *app) changeKnowledge(cmd *cobra.Command, c *ipc.Client, changes []ipc.KnowledgeChange, before map[string]lemma.Knowledge) error {
	out, err := c.ChangeKnowledge(cmd.Context(), ipc.KnowledgeEdit{Changes: changes})
	if err != nil {
		return err
	}
	p := newPrinter(a.out)
	if a.json {
		p.value(out)
		return nil
	}
	for i, k := range out.Items {
		what := "changed"
		switch ch := changes[min(i, len(changes)-1)]; {
		case ch.Remove:
			what = "removed"
		case ch.ID == "":
			what = "added"
		case before[k.ID].ChangedAt == k.ChangedAt:
			continue
		}
		p.line("%-7s  %s  %s  %s", what, k.ID[max(len(k.ID)-lemma.ShortLen, 0):], k.Scope, k.Text)
	}
	return nil
}

// findKnowledge takes an id or the end of one.
func findKnowledge(ctx context.Context, c *ipc.Client, id string) (lemma.Knowledge, error) {
	if len(id) < lemma.ShortLen-1 {
		return lemma.Knowledge{}, usage("%q is too short to name a piece: give at least %d characters of its id", id, lemma.ShortLen-1)
	}
	l, err := c.Knowledge(ctx, ipc.KnowledgeQuery{})
	if err != nil {
		return lemma.Knowledge{}, err
	}
	var found []lemma.Knowledge
	for _, k := range l.Items {
		if strings.HasSuffix(k.ID, strings.ToLower(id)) {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 0:
		return lemma.Knowledge{}, &exit{code: exitFound, err: fmt.Errorf("no piece of knowledge is named %q", id), hint: "gettier knowledge list shows the ids"}
	case 1:
		return found[0], nil
	}
	return lemma.Knowledge{}, usage("%q is the end of %d ids; give more of it", id, len(found))
}

// knowledgeBeside is the knowledge that stands below a list of facts: on its last
// page, and where nothing else was asked for.
func knowledgeBeside(ctx context.Context, c *ipc.Client, q ipc.FactQuery, l ipc.List[lemma.Fact]) ([]lemma.Knowledge, error) {
	if l.NextCursor != "" || (q.Status != "" && q.Status != string(lemma.StatusActive)) || (q.Provenance != "" && q.Provenance != string(lemma.Told)) {
		return nil, nil
	}
	k, err := c.Knowledge(ctx, ipc.KnowledgeQuery{Scope: q.Scope, Text: q.Text})
	return k.Items, err
}
