package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/tui/words"
)

func (a *app) forgetCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "forget TURN",
		Short: "drop the request that was kept of a turn",
		Long: "The redacted request goes, its hash and all other entries of the turn stay, and the log records who\n" +
			"had it dropped. Only a person may do this. Exports and backups made before still hold it, and so do\n" +
			"free pages of the ledger's file until they are written over.",
		Example: "  gettier forget last --yes",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			id, err := resolveTurn(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			d, err := c.Turn(cmd.Context(), id)
			if err != nil {
				return err
			}
			// The daemon looks who calls.
			asking := *a
			asking.person = nil
			question := fmt.Sprintf("drop the request of turn %s for good? %s", words.ShortID(id), words.Asked(d.RequestKind, d.Prompt))
			if err := asking.agreed(yes, question); err != nil {
				return err
			}
			f, err := c.ForgetTurn(cmd.Context(), id)
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(f)
				return nil
			}
			p.line("forgotten  the request of turn %s, %s in the ledger", words.ShortID(id), words.Count(int(f.Bytes), "byte", "bytes"))
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}
