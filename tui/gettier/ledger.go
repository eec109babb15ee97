package main

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/daemon/peer"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/keyfile"
	"gettier.dev/gettierd/sensors"
	"gettier.dev/gettierd/tui/words"
)

func (a *app) ledgerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ledger", Short: "the ledger's file: look at it, put a copy back, save what is left",
		Example: "  gettier ledger check",
		RunE:    needsSubcommand,
	}
	cmd.AddCommand(a.ledgerCheck(), a.ledgerBackup(), a.ledgerRestore(), a.ledgerRepair(), a.ledgerRebuild(), a.ledgerSize(), a.ledgerRotateKey())
	return cmd
}

// ledgerFile is the file that a command is about: the flag's, else the daemon's.
func (a *app) ledgerFile(flag string) (file, keys string, err error) {
	l, err := a.layout()
	if err != nil {
		return "", "", err
	}
	if flag != "" {
		return flag, l.Keys, nil
	}
	c, err := a.inForce(l)
	if err != nil {
		return "", "", fmt.Errorf("find the ledger: %w", err)
	}
	return l.With(c).Ledger, l.Keys, nil
}

// inForce is the configuration that a daemon started now would follow, without
// its command line: a changed ledger.path counts once it was approved.
func (a *app) inForce(l config.Layout) (*config.Config, error) {
	c, _, err := config.Load(l.Config, a.env, nil)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(l.Lock); errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(l.Ledger); err == nil {
			return config.Resolve(config.Default(), c, false).Config, nil // as the daemon does when its lock is gone
		}
		return c, nil
	}
	key, err := sensors.LockKey(l.State, rand.Reader)
	if err != nil {
		return nil, err
	}
	lock, err := config.ReadLock(l.Lock, key.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	return config.Resolve(lock.Config, c, false).Config, nil
}

// logKey reads this installation's log key, and the one that is to follow it; it
// is never made here. Nobody else reads our memory from then on: no daemon has to
// look at who runs these commands.
func (a *app) logKey(keys string) (k keyfile.Keys, err error) {
	if _, err := a.hidden(); err != nil {
		return k, err
	}
	k, err = keyfile.Read(keys)
	if errors.Is(err, os.ErrNotExist) {
		return k, &exit{code: exitRefused, err: errors.New("there is no log key here"), hint: "name the state directory that it lies in with --state"}
	}
	return k, err
}

func (a *app) ledgerCheck() *cobra.Command {
	var key string
	var full, here bool
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "look at a ledger file that no daemon has open",
		Long: "Looks at the file in a process of its own, since a wrecked file may bring that down, and changes\n" +
			"nothing. Of a damaged file it says how many entries can still be proved.",
		Example: "  gettier ledger check\n  gettier ledger check copy.db --full",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, keys, err := a.ledgerFile(strings.Join(args, ""))
			if err != nil {
				return err
			}
			pub, err := hex.DecodeString(key)
			if err != nil || len(pub) != 0 && len(pub) != ed25519.PublicKeySize {
				return usage("--key is a public key of 32 bytes in hex")
			}
			o := ledger.InspectOptions{Full: full}
			if len(pub) > 0 {
				o.Key = pub
			} else if own, err := a.logKey(keys); err == nil && len(args) == 0 {
				o.Key = own.Current.Public().(ed25519.PublicKey) // the daemon's own ledger is its key's
			}
			if here {
				return ledger.InspectChild(cmd.Context(), a.out, file, o)
			}
			h, err := inspect(cmd.Context(), a.lookAt, file, o)
			if err != nil {
				return err
			}
			return a.printHealth(file, h, o.Key != nil)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "the log's public key in hex (default: this installation's for its own ledger, else the one that the file names)")
	cmd.Flags().BoolVar(&full, "full", false, "every entry, blob and fold, too")
	cmd.Flags().BoolVar(&here, "here", false, "")
	_ = cmd.Flags().MarkHidden("here") // it is there
	return cmd
}

// inspect looks at a file, with look in another process.
func inspect(ctx context.Context, look func(context.Context, string, ledger.InspectOptions) (ledger.Health, error), file string, o ledger.InspectOptions) (ledger.Health, error) {
	if look == nil {
		return ledger.Inspect(ctx, file, o), nil
	}
	return look(ctx, file, o)
}

// lookInChild runs this program again to look at a file.
func lookInChild(ctx context.Context, file string, o ledger.InspectOptions) (h ledger.Health, err error) {
	self, err := os.Executable()
	if err != nil {
		return h, fmt.Errorf("find this program: %w", err)
	}
	args := []string{"ledger", "check", "--here", "--key", hex.EncodeToString(o.Key)}
	if o.Full {
		args = append(args, "--full")
	}
	return ledger.InspectElsewhere(ctx, exec.Command(self, append(args, "--", file)...), file, o)
}

func (a *app) printHealth(file string, h ledger.Health, asked bool) error {
	p := newPrinter(a.out)
	if a.json {
		p.value(h)
	} else {
		switch {
		case h.Sound && h.Size == 0:
			p.line("no entries  %s", file)
		case h.Sound:
			p.line("sound  %d entries  %s", h.Size, file)
		case h.Damaged:
			p.line("damaged  %s", file)
			p.line("  %s", h.Reason)
			if asked {
				p.line("  %d entries can be proved, %d are linked", h.Prefix.Size, h.Prefix.Linked)
			} else {
				p.line("  %d entries are linked; how many can be proved shows with the log's --key", h.Prefix.Linked)
			}
			if h.Prefix.Size > 0 {
				p.line("  keep them, and the damaged file: gettier ledger repair")
			}
		default:
			p.line("not to be used  %s", file)
			p.line("  %s", h.Reason)
		}
	}
	if h.Sound {
		return nil
	}
	return &exit{code: exitFound}
}

// ownPerson reports whether a person gave this command. While no daemon runs
// nobody else can say so.
func ownPerson() error {
	self, err := peer.Find(os.Getpid())
	if err == nil {
		_, err = peer.Person(self, self.Start)
	}
	if errors.Is(err, peer.ErrUnsupported) {
		return nil
	}
	return err
}

// agreed asks before a ledger gives way, which is a person's call. Without a
// terminal on standard input --yes must be said.
func (a *app) agreed(yes bool, question string) error {
	if a.person != nil {
		var no *peer.Refusal
		if err := a.person(); errors.As(err, &no) {
			return &exit{code: exitRefused, err: fmt.Errorf("only a person may do this: %s", no.Why), hint: no.Hint}
		} else if err != nil {
			return fmt.Errorf("look who calls: %w", err)
		}
	}
	if yes {
		return nil
	}
	if _, ok := terminal(a.in); !ok {
		return &exit{code: exitRefused, err: errors.New("nobody is there to ask"), hint: "add --yes if you mean it"}
	}
	p := newPrinter(a.err)
	p.w.WriteString(question + " [y/N] ")
	p.flush()
	s, err := bufio.NewReader(io.LimitReader(a.in, 1024)).ReadString('\n')
	if err != nil || strings.ToLower(strings.TrimSpace(s)) != "y" {
		return &exit{code: exitRefused, err: errors.New("nothing was changed")}
	}
	return nil
}

func (a *app) ledgerRestore() *cobra.Command {
	var yes, older bool
	var target string
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "put a copy of the ledger in its place, after checking all of it",
		Long: "The daemon must be down. The copy is verified in full before anything is written. The ledger that\n" +
			"is there is moved aside, never written over, and the restored one records where it came from. A\n" +
			"request that was forgotten since the copy is forgotten in the restored ledger, too.",
		Example: "  gettier ledger restore copy.db --yes",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, keys, err := a.ledgerFile(target)
			if err != nil {
				return err
			}
			key, err := a.logKey(keys)
			if err != nil {
				return err
			}
			if err := a.agreed(yes, "put this copy in the ledger's place?"); err != nil {
				return err
			}
			o := ledger.RestoreOptions{Older: older, Options: ledger.Options{Key: key.Current, NextKey: key.Next, CheckpointFile: filepath.Join(keys, "checkpoint"), Version: facts().Version, Now: a.now}}
			o.Check = func(ctx context.Context, file string) (ledger.Health, error) {
				return inspect(ctx, a.lookAt, file, ledger.InspectOptions{Key: key.Current.Public().(ed25519.PublicKey), Full: true})
			}
			r, err := ledger.Restore(cmd.Context(), args[0], path, o)
			switch {
			case errors.Is(err, ledger.ErrLocked):
				return &exit{code: exitRefused, err: err, hint: "stop the daemon first: gettier down"}
			case errors.Is(err, ledger.ErrOlder):
				return &exit{code: exitRefused, err: err, hint: "add --older to go back; the newer file is kept aside"}
			case errors.Is(err, ledger.ErrUnfit):
				return &exit{code: exitRefused, err: err}
			case errors.Is(err, ledger.ErrDamaged):
				return &exit{code: exitFound, err: err}
			case err != nil:
				return err
			}
			return a.printReplaced(r, "restored")
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&older, "older", false, "also when the copy lacks entries that the ledger had")
	cmd.Flags().StringVar(&target, "ledger", "", "the ledger's file, when it is not in the state directory")
	return cmd
}

func (a *app) ledgerRepair() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "repair [FILE]",
		Short: "go on with what can be proved of a damaged ledger",
		Long: "The daemon must be down. Entries are kept as far as they follow each other and a signed checkpoint\n" +
			"vouches for them; blobs are kept that match their hash. The damaged file is moved aside, and the new\n" +
			"one records what was lost.",
		Example: "  gettier ledger repair --yes",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, keys, err := a.ledgerFile(strings.Join(args, ""))
			if err != nil {
				return err
			}
			key, err := a.logKey(keys)
			if err != nil {
				return err
			}
			if err := a.agreed(yes, "go on with what can be proved of "+filepath.Base(path)+"?"); err != nil {
				return err
			}
			r, p, err := ledger.Repair(cmd.Context(), path, ledger.Options{Key: key.Current, NextKey: key.Next, CheckpointFile: filepath.Join(keys, "checkpoint"), Version: facts().Version, Now: a.now})
			switch {
			case errors.Is(err, ledger.ErrLocked):
				return &exit{code: exitRefused, err: err, hint: "stop the daemon first: gettier down"}
			case errors.Is(err, ledger.ErrDamaged):
				return &exit{code: exitFound, err: err, hint: "the file was left as it is; a backup can be put back: gettier ledger restore FILE"}
			case err != nil:
				return err
			}
			return a.printReplaced(r, fmt.Sprintf("kept %d,", p.Size))
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) printReplaced(r ledger.Replaced, what string) error {
	p := newPrinter(a.out)
	if a.json {
		p.value(r)
		return nil
	}
	p.line("%s  %d entries now, %d had been seen", what, r.Size, r.Had)
	for _, f := range r.Aside {
		p.line("  moved aside  %s", f)
	}
	if r.Forgotten > 0 {
		p.line("  %s that you had forgotten did not come back with it", words.Count(r.Forgotten, "request", "requests"))
	}
	return nil
}
