package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/archive"
	"gettier.dev/gettierd/tui/words"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "the log, its proofs, and copies of it that anybody can check",
		Example: "  gettier audit verify",
		RunE:    needsSubcommand,
	}
	cmd.AddCommand(a.auditVerifyCommand(), a.auditExportCommand(), a.auditImportCommand(), a.auditProofCommand(), a.auditCheckpointCommand())
	return cmd
}

func (a *app) auditExportCommand() *cobra.Command {
	var target, file string
	cmd := &cobra.Command{
		Use:   "export -o PATH",
		Short: "copy the whole log into files that need no gettierd",
		Long: "Writes a directory, or one archive when PATH ends in .tar: a C2SP tlog-tiles log (entries, hash\n" +
			"tiles, checkpoint) with its blobs, its older checkpoints and its public keys. The copy is checked\n" +
			"before it takes its name. What is there already is never written over.",
		Example: "  gettier audit export -o log.tar\n  gettier audit export -o log-copy",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if target == "" {
				return usage("where to? -o PATH, or -o PATH.tar")
			}
			ctx := cmd.Context()
			from, done, err := a.exporter(ctx, file)
			if err != nil {
				return err
			}
			defer done()
			r, err := exportTo(ctx, from, target)
			if err != nil {
				return err
			}
			return a.printCheck(checkOf(r), "written to "+target)
		},
	}
	cmd.Flags().StringVarP(&target, "output", "o", "", "where to write; ending in .tar one archive, else a directory")
	cmd.Flags().StringVar(&file, "ledger", "", "a ledger file that no daemon has open, instead of the running daemon's")
	return cmd
}

// exporter is where an export comes from: the daemon, or a file.
func (a *app) exporter(ctx context.Context, file string) (from func(io.Writer) error, done func(), err error) {
	if file == "" {
		c, err := a.client()
		if err != nil {
			return nil, nil, err
		}
		return func(w io.Writer) error { return c.Export(ctx, w) }, c.Close, nil
	}
	l, err := openLedger(file)
	if err != nil {
		return nil, nil, err
	}
	damaged := func(err error) { newPrinter(a.err).line("left out: %v", err) }
	return func(w io.Writer) error { _, err := l.Export(ctx, w, damaged); return err },
		func() { _ = l.Close() }, nil // nothing was written to it
}

// openLedger opens a file for reading. Whoever else has it open is named.
func openLedger(file string) (*ledger.Ledger, error) {
	l, err := ledger.Open(file, ledger.Options{ReadOnly: true})
	if errors.Is(err, ledger.ErrLocked) {
		return nil, &exit{code: exitRefused, err: err, hint: "a daemon has it open: leave the file out to ask the daemon"}
	}
	if errors.Is(err, ledger.ErrNewer) {
		return nil, &exit{code: exitRefused, err: err}
	}
	return l, err
}

func (a *app) auditImportCommand() *cobra.Command {
	var target, key string
	cmd := &cobra.Command{
		Use:   "import PATH -o LEDGER",
		Short: "make a ledger file from an export",
		Long: "Checks all of the export first, and writes nothing when something does not hold. The file that it\n" +
			"writes is verified before it takes its name. Anybody can read it; the daemon that has the log's key\n" +
			"can go on with it: put it where that daemon's ledger belongs.",
		Example: "  gettier audit import log.tar -o ledger-copy.db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if target == "" {
				return usage("which file shall be written? -o LEDGER")
			}
			bar := a.bar()
			r, err := ledger.Import(cmd.Context(), args[0], target, archive.Options{Key: key, Progress: bar.show})
			bar.end()
			switch {
			case errors.Is(err, ledger.ErrExists):
				return &exit{code: exitRefused, err: err, hint: "name a file that is not there yet"}
			case errors.Is(err, ledger.ErrUnsound) && !r.OK():
				return a.printCheck(checkOf(r), "nothing was written")
			case err != nil:
				return err
			}
			return a.printCheck(checkOf(r), "written to "+target)
		},
	}
	cmd.Flags().StringVarP(&target, "output", "o", "", "the ledger file to make")
	cmd.Flags().StringVar(&key, "key", "", "the public key that must have signed the log")
	return cmd
}

func (a *app) auditProofCommand() *cobra.Command {
	var target string
	cmd := &cobra.Command{
		Use:   "proof SEQ",
		Short: "prove that an entry is in the log",
		Long: "Prints a C2SP tlog-proof: the entry, the path to the root, the signed checkpoint. Whoever has the\n" +
			"log's public key checks it without the log: gettier audit verify FILE --key KEY.",
		Example: "  gettier audit proof 0\n  gettier audit proof 0 -o entry-0.tlog-proof",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil {
				return usage("entry %q: name its sequence number", args[0])
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			b, err := c.Proof(cmd.Context(), seq)
			if err != nil {
				return err
			}
			return a.give(target, b)
		},
	}
	cmd.Flags().StringVarP(&target, "output", "o", "", "write to a file instead, which must not be there yet")
	return cmd
}

func (a *app) auditCheckpointCommand() *cobra.Command {
	var target string
	var keys bool
	cmd := &cobra.Command{
		Use:   "checkpoint",
		Short: "the newest signed checkpoint: so many entries, under this root",
		Long: "A copy of it that is kept where gettierd cannot write is what shows a log that was rewritten by\n" +
			"whoever holds its key: gettier audit verify --against FILE.",
		Example: "  gettier audit checkpoint\n  gettier audit checkpoint --keys\n  gettier audit checkpoint -o outside.checkpoint",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			ask := c.Checkpoint
			if keys {
				ask = c.AuditKeys
			}
			b, err := ask(cmd.Context())
			if err != nil {
				return err
			}
			if !keys && !a.json {
				s, err := c.Status(cmd.Context())
				if err != nil {
					return err
				}
				say := newPrinter(a.err)
				if best, ok := newestOutside(s.Outside); ok {
					say.line("newest copy outside: %s", a.outside(best, s.Chain.Size))
				} else {
					say.line("%s", noOutside)
				}
			}
			return a.give(target, b)
		},
	}
	cmd.Flags().StringVarP(&target, "output", "o", "", "write to a file instead, which must not be there yet")
	cmd.Flags().BoolVar(&keys, "keys", false, "the log's public keys instead")
	return cmd
}

// give prints text that is a file's content, or writes the file.
func (a *app) give(target string, b []byte) error {
	if target == "" {
		if a.json {
			newPrinter(a.out).value(struct {
				Text string `json:"text"`
			}{string(b)})
			return nil
		}
		newPrinter(a.out).text(string(b), "")
		return nil
	}
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return &exit{code: exitRefused, err: fmt.Errorf("write %s: it is there already", target)}
	}
	if err != nil {
		return &exit{code: exitUsage, err: err}
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if p := newPrinter(a.out); a.json {
		p.value(struct {
			File string `json:"file"`
		}{target})
	} else {
		p.line("written to %s", target)
	}
	return nil
}

// check is the result of checking a log in any of its forms.
type check struct {
	ipc.Verification
	Tiles       uint64            `json:"tiles,omitempty"`
	Forgotten   uint64            `json:"forgotten,omitempty"`
	Independent bool              `json:"independent"`
	Problems    []archive.Problem `json:"problems"`
	Count       int               `json:"count"`
}

func checkOf(r archive.Report) check {
	c := check{
		Verification: ipc.Verification{OK: r.OK(), Entries: r.Size, Root: r.Root, Origin: r.Origin, Checkpoints: int(r.Checkpoints), Blobs: int(r.Blobs)},
		Tiles:        r.Tiles, Forgotten: r.Forgotten, Problems: r.Problems, Count: r.Count,
	}
	if p, bad := r.First(); bad {
		c.BadSeq, c.What = p.Seq, p.What
	}
	return c
}

// problemsShown is how many problems are printed; --json has all that were kept.
const problemsShown = 8

func (a *app) printCheck(c check, last string) error {
	p := newPrinter(a.out)
	switch {
	case a.json:
		p.value(c)
	case c.OK:
		p.line("intact: %s, root %s", words.Count(c.Entries, "entry", "entries"), c.Root)
		took := ""
		if c.DurationMS > 0 {
			took = ", " + words.Millis(c.DurationMS)
		}
		p.line("%s, %s%s, by %s", words.Count(c.Checkpoints, "signed checkpoint", "signed checkpoints"),
			words.Count(c.Blobs, "blob", "blobs"), took, c.Origin)
	default:
		p.line("DAMAGED at entry %d of %s: %s", c.BadSeq, words.Thousands(c.Entries), c.What)
		for i, q := range c.Problems {
			if i == problemsShown {
				p.line("  … %s more", words.Thousands(uint64(c.Count-i)))
				break
			}
			p.line("  entry %d  %s: %s", q.Seq, q.File, q.What)
		}
	}
	if last != "" && !a.json {
		p.line("%s", strings.TrimSpace(last))
	}
	if !c.OK {
		return &exit{code: exitFound}
	}
	return nil
}
