package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/tui/words"
)

func (a *app) keyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "key", Short: "keys by which others use the proxy, and keys of upstreams that the ledger keeps",
		Example: "  gettier key list",
		RunE:    needsSubcommand,
	}
	cmd.AddCommand(a.keyCreate(), a.keyList(), a.keyRevoke(), a.keyStore(), a.keyForget())
	return cmd
}

func (a *app) keyCreate() *cobra.Command {
	var (
		k       ipc.KeyRequest
		expires string
		uid     int
	)
	cmd := &cobra.Command{
		Use:   "create",
		Short: "make a key for the proxy; it is shown once",
		Long: "Whoever is not this user, or calls from elsewhere, is served with a key only: in X-Gettier-Key,\n" +
			"or in the place of the provider's key, where the upstream has one configured. A key never answers,\n" +
			"approves or changes anything. Only its SHA-256 is kept.\n" +
			"Scopes: proxy lets requests through; facts puts what this machine knows into them.",
		Example: "  gettier key create --name ci\n  gettier key create --name laptop --scope proxy,facts --expires 30d --upstream openai",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			life, err := lifeOf(expires)
			if err != nil {
				return err
			}
			k.ExpiresSeconds = int64(life / time.Second)
			if cmd.Flags().Changed("uid") {
				k.UID = &uid
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			made, err := c.CreateAPIKey(cmd.Context(), k)
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(made)
				return nil
			}
			p.line("%s", made.Secret)
			say := newPrinter(a.err)
			say.line("key %s (%s) for %s, until %s. It is shown this once.", made.ID, made.Name, strings.Join(made.Scopes, ", "), day(made.ExpiresAt))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&k.Name, "name", "", "what to call it")
	f.StringSliceVar(&k.Scopes, "scope", []string{"proxy"}, "what it may do: proxy, facts")
	f.StringVar(&expires, "expires", "90d", "how long it lasts: 90d, 12h, at most 366d")
	f.StringSliceVar(&k.Upstreams, "upstream", nil, "only for these upstreams (default: all)")
	f.StringSliceVar(&k.Projects, "project", nil, "only for requests of these projects (default: all)")
	f.IntVar(&k.PerMinute, "per-minute", 0, "requests a minute (default: any number)")
	f.IntVar(&k.PerDay, "per-day", 0, "requests a day, in UTC (default: any number)")
	f.IntVar(&uid, "uid", 0, "only for this user of the machine (default: whoever has it)")
	_ = cmd.MarkFlagRequired("name") // it is there
	return cmd
}

// lifeOf reads a time to live; days are 24 hours.
func lifeOf(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil || n == 0 {
			return 0, usage("--expires %q is no time: 90d, 12h", s)
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Second {
		return 0, usage("--expires %q is no time: 90d, 12h", s)
	}
	return d, nil
}

// day is the date of a time as the ledger spells it.
func day(ts string) string {
	if len(ts) < 10 {
		return ts
	}
	return ts[:10]
}

func (a *app) keyList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "keys for the proxy, and upstream keys that the ledger keeps",
		Example: "  gettier key list\n  gettier key list --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			keys, err := c.APIKeys(cmd.Context())
			if err != nil {
				return err
			}
			sealed, err := c.SealedKeys(cmd.Context())
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(struct {
					Keys     []ipc.APIKey    `json:"keys"`
					Upstream []ipc.SealedKey `json:"upstream_keys"`
				}{keys.Items, sealed.Items})
				return nil
			}
			if len(keys.Items)+len(sealed.Items) == 0 {
				p.line("no keys: gettier key create, gettier key store-upstream")
				return nil
			}
			var rows [][]string
			for _, k := range keys.Items {
				used := "never used"
				if k.UsedAt != "" {
					used = "used " + day(k.UsedAt)
				}
				rows = append(rows, []string{k.ID, k.Name, k.State, strings.Join(k.Scopes, ","), "until " + day(k.ExpiresAt), used, bounds(k)})
			}
			for _, k := range sealed.Items {
				rows = append(rows, []string{"upstream", k.Name, "sealed", "", "since " + day(k.SealedAt), words.Or(k.UsedBy, "no upstream uses it"), ""})
			}
			p.table(rows)
			return nil
		},
	}
}

// bounds is what a key is restricted to.
func bounds(k ipc.APIKey) string {
	var out []string
	if len(k.Upstreams) > 0 {
		out = append(out, "upstream "+strings.Join(k.Upstreams, ","))
	}
	if len(k.Projects) > 0 {
		out = append(out, "project "+strings.Join(k.Projects, ","))
	}
	if k.UID != nil {
		out = append(out, fmt.Sprintf("uid %d", *k.UID))
	}
	if k.PerMinute > 0 {
		out = append(out, fmt.Sprintf("%d a minute", k.PerMinute))
	}
	if k.PerDay > 0 {
		out = append(out, fmt.Sprintf("%d of %d today", k.Today, k.PerDay))
	}
	return strings.Join(out, " · ")
}

func (a *app) keyRevoke() *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "end a key, by its id or name",
		Example: "  gettier key revoke ci",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.RevokeAPIKey(cmd.Context(), args[0]); err != nil {
				return err
			}
			if !a.json {
				newPrinter(a.out).line("revoked %s", args[0])
			}
			return nil
		},
	}
}

// secretMax bounds a key that is read, in bytes; the daemon's bound is the same.
const secretMax = 8 << 10

// hidden closes our memory before a key is read; show opens it again.
func (a *app) hidden() (show func() error, err error) {
	if a.hide == nil {
		return func() error { return nil }, nil
	}
	return a.hide()
}

func (a *app) keyStore() *cobra.Command {
	return &cobra.Command{
		Use:   "store-upstream NAME",
		Short: "keep a provider's key in the ledger, encrypted",
		Long: "Reads the key from the terminal without showing it, or from standard input, and seals it with age\n" +
			"for this installation's identity (keys/seal in the state directory, or ledger.seal_keyring).\n" +
			"An upstream uses it by upstreams.X.key_ledger: NAME.",
		Example: "  gettier key store-upstream openai",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			// First the daemon looks at us; then nobody does, and we read the key.
			if err := c.MaySeal(cmd.Context()); err != nil {
				return err
			}
			show, err := a.hidden()
			if err != nil {
				return err
			}
			secret, err := a.readSecret("key of " + args[0] + ": ")
			if err != nil {
				return err
			}
			k, err := c.SealKey(cmd.Context(), args[0], ipc.SealRequest{Secret: secret})
			var p *ipc.Problem
			if errors.As(err, &p) && p.Status == 403 {
				// It took longer than the daemon keeps a silent connection: it has to
				// look again.
				if err := show(); err != nil {
					return err
				}
				k, err = c.SealKey(cmd.Context(), args[0], ipc.SealRequest{Secret: secret})
			}
			if err != nil {
				return err
			}
			out := newPrinter(a.out)
			if a.json {
				out.value(k)
				return nil
			}
			out.line("sealed %s for %s", k.Name, k.Recipient)
			if k.UsedBy == "" {
				out.line("use it: upstreams.NAME.key_ledger: %s in gettierd.yaml", k.Name)
			}
			return nil
		},
	}
}

// readSecret reads one line that no screen shows.
func (a *app) readSecret(prompt string) (string, error) {
	if f, ok := a.in.(*os.File); ok && term.IsTerminal(f.Fd()) {
		p := newPrinter(a.err)
		p.w.WriteString(prompt)
		p.flush()
		b, err := term.ReadPassword(f.Fd())
		p.line("")
		if err != nil {
			return "", fmt.Errorf("read key: %w", err)
		}
		return string(b), nil
	}
	b, err := io.ReadAll(io.LimitReader(bufio.NewReader(a.in), secretMax+1))
	if err != nil {
		return "", fmt.Errorf("read key: %w", err)
	}
	s := strings.TrimSpace(string(b))
	switch {
	case s == "":
		return "", usage("there is no key on standard input")
	case len(b) > secretMax:
		return "", usage("what is on standard input is too long for a key")
	}
	return s, nil
}

func (a *app) keyForget() *cobra.Command {
	return &cobra.Command{
		Use:     "forget-upstream NAME",
		Short:   "stop using an upstream key that the ledger keeps",
		Long:    "The sealed bytes stay in the log, which forgets nothing: withdraw the key at the provider as well.",
		Example: "  gettier key forget-upstream openai",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.ForgetKey(cmd.Context(), args[0]); err != nil {
				return err
			}
			if !a.json {
				newPrinter(a.out).line("forgot %s", args[0])
			}
			return nil
		},
	}
}

func (a *app) ledgerRotateKey() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate-key",
		Short: "give the log its next signing key",
		Long: "The change is an entry that the old and the new key sign; the log keeps its name, and who has an older\n" +
			"public key follows it from there. The old private key is destroyed. A copy of the ledger from before\n" +
			"can be read and checked after that, but not continued: take a new backup.",
		Example: "  gettier ledger rotate-key",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			r, err := c.RotateLogKey(cmd.Context())
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(r)
				return nil
			}
			p.line("entry %d announces the new key; checkpoints from there on are signed with it:", r.Seq)
			p.line("%s", r.Key)
			p.line("take a new backup: those from before can be read and checked, not gone on with")
			return nil
		},
	}
}
