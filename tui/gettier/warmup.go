package main

import (
	"github.com/spf13/cobra"

	"gettier.dev/gettierd/tui/words"
)

func (a *app) warmupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "warmup",
		Short: "load the model that measures what an action means",
		Long: "constitution.url and constitution.model name a model of embeddings that measures how near an action's\n" +
			"text lies to what the policy's constitution forbids. Until it is loaded, and again after a change of\n" +
			"the policy, actions go without: no action waits for a cold model. What it finds may ask a person\n" +
			"and never refuses.",
		Example: "  gettier warmup",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			w, err := c.Warmup(cmd.Context())
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(w)
				return nil
			}
			p.line("%s is warm: %s measured", w.Model, words.Count(w.Principles, "principle", "principles"))
			return nil
		},
	}
}
