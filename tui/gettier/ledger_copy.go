package main

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/tui/words"
)

func (a *app) ledgerBackup() *cobra.Command {
	var target string
	cmd := &cobra.Command{
		Use:   "backup -o FILE",
		Short: "copy the ledger while the daemon runs",
		Long: "The daemon copies the ledger as of now; appends go on meanwhile. The copy is verified in full, every\n" +
			"entry, blob and fold, before it gets its name. The keys are not in it: keep those, too.",
		Example: "  gettier ledger backup -o ledger-copy.db",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if target == "" {
				return usage("-o names the file to write")
			}
			taken := &exit{code: exitRefused, err: fmt.Errorf("%s is there already", target), hint: "name another file: a backup is never written over"}
			if _, err := os.Lstat(target); err == nil {
				return taken
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			work, err := os.MkdirTemp(filepath.Dir(target), "."+filepath.Base(target)+".")
			if err != nil {
				return &exit{code: exitUsage, err: fmt.Errorf("write %s: %w", target, err)}
			}
			defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
			part := filepath.Join(work, "ledger.db")
			if err := writeTar(func(w io.Writer) error { return c.Backup(cmd.Context(), w) }, part); err != nil {
				return err
			}
			h, err := inspect(cmd.Context(), a.lookAt, part, ledger.InspectOptions{Full: true})
			if err != nil {
				return err
			}
			if !h.Sound || h.Size == 0 {
				return &exit{code: exitFound, err: fmt.Errorf("the copy does not hold: %s", h.Reason), hint: "look at the ledger itself: gettier audit verify"}
			}
			// A rename takes the place of a file that came meanwhile; a link does not.
			if err := os.Link(part, target); errors.Is(err, os.ErrExist) {
				return taken
			} else if err != nil {
				return fmt.Errorf("write %s: %w", target, err)
			}
			if a.json {
				newPrinter(a.out).value(h)
				return nil
			}
			p := newPrinter(a.out)
			p.line("verified  %d entries  %s", h.Size, target)
			p.line("  root %s", h.Root)
			return nil
		},
	}
	cmd.Flags().StringVarP(&target, "output", "o", "", "the file to write")
	return cmd
}

func (a *app) ledgerRebuild() *cobra.Command {
	var yes, write bool
	cmd := &cobra.Command{
		Use:   "rebuild [FILE]",
		Short: "fold the chain anew and compare with what is stored",
		Long: "The daemon must be down. Facts, holds, turns and all else that follows from the entries is folded a\n" +
			"second time and compared byte by byte; the first difference is named by bucket and key. --write puts\n" +
			"the new folds in the place of the stored ones, which is a person's call. The chain is never changed.",
		Example: "  gettier ledger rebuild\n  gettier ledger rebuild --write --yes",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, keys, err := a.ledgerFile(strings.Join(args, ""))
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if !write {
				h, err := inspect(cmd.Context(), a.lookAt, path, ledger.InspectOptions{Full: true})
				if err != nil {
					return err
				}
				switch {
				case !h.Sound && !h.Damaged: // locked, another's, newer
					return &exit{code: exitRefused, err: errors.New(h.Reason), hint: "a running daemon has it open: gettier down, or gettier audit verify, which compares, too"}
				case a.json:
					p.value(h)
				case h.Sound:
					p.line("the same  %d entries folded anew  %s", h.Size, path)
				default:
					p.line("not the same  %s", path)
					p.line("  %s", h.Reason)
				}
				if !h.Sound {
					return &exit{code: exitFound}
				}
				return nil
			}
			key, err := a.logKey(keys)
			if err != nil {
				return err
			}
			if err := a.agreed(yes, "put new folds in the place of those of "+filepath.Base(path)+"?"); err != nil {
				return err
			}
			h, err := inspect(cmd.Context(), a.lookAt, path, ledger.InspectOptions{Key: key.Current.Public().(ed25519.PublicKey)})
			if err != nil {
				return err
			}
			if h.Damaged {
				return &exit{code: exitFound, err: errors.New(h.Reason), hint: "the chain itself is damaged: gettier ledger repair"}
			}
			n, err := ledger.Rebuild(cmd.Context(), path, ledger.Options{
				Key: key.Current, NextKey: key.Next, CheckpointFile: filepath.Join(keys, "checkpoint"), Version: facts().Version, Now: a.now,
			})
			switch {
			case errors.Is(err, ledger.ErrLocked):
				return &exit{code: exitRefused, err: err, hint: "stop the daemon first: gettier down"}
			case err != nil:
				return err
			}
			if a.json {
				p.value(map[string]uint64{"folded": n})
				return nil
			}
			p.line("written  %d entries folded anew  %s", n, path)
			return nil
		},
	}
	cmd.Flags().BoolVar(&write, "write", false, "replace the stored folds")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) ledgerSize() *cobra.Command {
	return &cobra.Command{
		Use:     "size",
		Short:   "what the ledger takes of the disk, and how fast it grows",
		Long:    "Bytes of each bucket, the entries of the last 24 hours, and how much a day like that adds.",
		Example: "  gettier ledger size",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			s, err := c.LedgerSize(cmd.Context())
			if err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(s)
				return nil
			}
			var rows [][]string
			for _, b := range s.Buckets {
				if b.Keys > 0 {
					rows = append(rows, []string{b.Name, words.Thousands(b.Keys), kilobytes(b.Bytes)})
				}
			}
			p.table(rows)
			p.line("%s  %s in use, %s on disk, room for %s more", words.Thousands(s.Entries)+" entries", kilobytes(s.Used), kilobytes(s.Bytes), kilobytes(int64(min(s.Room, 1<<62))))
			p.line("last 24 hours  %s entries; such a day adds %s", words.Thousands(s.Day), kilobytes(s.PerDay))
			p.line("%s", s.File)
			return nil
		},
	}
}

// kilobytes tells a size in thousands of bytes.
func kilobytes(n int64) string { return words.Thousands(n/1000) + " kB" }
