package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/archive"
	"gettier.dev/gettierd/ledger/verify"
	"gettier.dev/gettierd/tui/words"
)

// verifying is what audit verify was asked for.
type verifying struct {
	independent bool
	key         string
	against     []string
	outside     [][]byte // content of against
}

func (a *app) auditVerifyCommand() *cobra.Command {
	var v verifying
	cmd := &cobra.Command{
		Use:   "verify [PATH]",
		Short: "check a whole log: links, tree, signatures, blobs, folds",
		Long: "Without PATH the running daemon checks its own log. PATH is an export (directory or .tar), a\n" +
			"ledger file that no daemon has open, or a proof. --independent uses a second implementation that\n" +
			"shares no line with the daemon; a ledger is exported to it. Exit 1: it does not hold.",
		Example: "  gettier audit verify\n  gettier audit verify --independent\n  gettier audit verify --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range v.against {
				b, err := os.ReadFile(name)
				if err != nil {
					return &exit{code: exitUsage, err: fmt.Errorf("read checkpoint: %w", err)}
				}
				v.outside = append(v.outside, b)
			}
			ctx := cmd.Context()
			if len(args) == 0 {
				return a.verifyLive(ctx, v)
			}
			return a.verifyPath(ctx, v, args[0])
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&v.independent, "independent", false, "use the second implementation")
	fl.StringVar(&v.key, "key", "", "the public key that must have signed the log (gettier audit checkpoint --keys)")
	fl.StringArrayVar(&v.against, "against", nil, "a checkpoint kept elsewhere that the log must contain")
	return cmd
}

// bar shows how far a check is, on a terminal only.
type bar struct{ p *printer }

func (a *app) bar() bar {
	if p := newPrinter(a.err); p.tty && !a.json {
		return bar{p}
	}
	return bar{}
}

func (b bar) show(done, total uint64) {
	if b.p != nil && total > 0 {
		fmt.Fprintf(b.p.w, "\r%s of %s", words.Thousands(done), words.Count(total, "entry", "entries"))
		b.p.flush()
	}
}

func (b bar) end() {
	if b.p != nil {
		fmt.Fprint(b.p.w, "\r\x1b[K")
		b.p.flush()
	}
}

func (a *app) verifyLive(ctx context.Context, v verifying) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	if v.independent {
		return a.verifyStream(ctx, v, func(w io.Writer) error { return c.Export(ctx, w) })
	}
	bar := a.bar()
	r, err := c.Verify(ctx, func(p ipc.Progress) { bar.show(p.Done, p.Total) })
	bar.end()
	if err != nil {
		return err
	}
	if r.OK && (v.key != "" || len(v.outside) > 0) {
		return a.verifyStream(ctx, v, func(w io.Writer) error { return c.Export(ctx, w) })
	}
	out := check{Verification: r, Problems: []archive.Problem{}}
	if !r.OK {
		out.Count = 1
	}
	return a.printCheck(out, "")
}

// verifyStream checks a log as it is exported.
func (a *app) verifyStream(ctx context.Context, v verifying, from func(io.Writer) error) error {
	bar, began := a.bar(), a.now()
	var out check
	err := piped(from, func(r io.Reader) (err error) {
		out, err = v.stream(ctx, r, bar)
		return err
	})
	bar.end()
	if err != nil {
		return err
	}
	out.DurationMS = a.now().Sub(began).Milliseconds()
	return a.printCheck(out, "")
}

func (v verifying) stream(ctx context.Context, r io.Reader, bar bar) (check, error) {
	if v.independent {
		r, err := verify.Stream(ctx, r, verify.Options{Key: v.key, Outside: v.outside, Progress: bar.show})
		return independentCheck(r), err
	}
	rep, err := archive.Check(ctx, archive.Stream(r), archive.Options{Key: v.key, Outside: v.outside, Progress: bar.show})
	return checkOf(rep), err
}

func independentCheck(r verify.Report) check {
	c := check{
		Verification: ipc.Verification{OK: r.Count == 0, Entries: r.Size, Root: r.Root, Origin: r.Origin, Checkpoints: int(r.Checkpoints), Blobs: int(r.Blobs)},
		Tiles:        r.Tiles, Forgotten: r.Forgotten, Independent: true, Count: r.Count, Problems: []archive.Problem{},
	}
	for _, p := range r.Problems {
		c.Problems = append(c.Problems, archive.Problem(p))
	}
	if p := r.First(); p != nil {
		c.BadSeq, c.What = p.Seq, p.What
	}
	return c
}

// form is what a path holds.
type form int

const (
	formUnknown form = iota
	formExport
	formLedger
	formProof
)

// formOf looks at the first bytes.
func formOf(path string) (form, error) {
	st, err := os.Stat(path)
	if err != nil {
		return formUnknown, &exit{code: exitUsage, err: err}
	}
	if st.IsDir() {
		return formExport, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return formUnknown, err
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return formUnknown, err
	}
	head = head[:n]
	switch {
	case archive.IsProof(head):
		return formProof, nil
	// The magic of bbolt's first page, or of the name's when the page is damaged.
	case len(head) > 20 && bytes.Equal(head[16:20], []byte{0xed, 0xda, 0x0c, 0xed}), strings.HasSuffix(path, ".db"):
		return formLedger, nil
	case len(head) > 262 && string(head[257:262]) == "ustar", strings.HasSuffix(path, ".tar"):
		return formExport, nil
	}
	return formUnknown, nil
}

func (a *app) verifyPath(ctx context.Context, v verifying, path string) error {
	kind, err := formOf(path)
	if err != nil {
		return err
	}
	switch kind {
	case formProof:
		return a.verifyProof(ctx, v, path)
	case formLedger:
		return a.verifyLedger(ctx, v, path)
	case formExport:
		return a.verifyExport(ctx, v, path)
	}
	return usage("%s is neither an export, a ledger nor a proof", path)
}

func (a *app) verifyExport(ctx context.Context, v verifying, path string) error {
	bar, began := a.bar(), a.now()
	var out check
	var err error
	if v.independent {
		var r verify.Report
		r, err = verify.Path(ctx, path, verify.Options{Key: v.key, Outside: v.outside, Progress: bar.show})
		out = independentCheck(r)
	} else {
		var in archive.Reader
		var closer io.Closer
		if in, closer, err = archive.Open(path); err == nil {
			var r archive.Report
			r, err = archive.Check(ctx, in, archive.Options{Key: v.key, Outside: v.outside, Progress: bar.show})
			out, err = checkOf(r), errors.Join(err, closer.Close())
		}
	}
	bar.end()
	if err != nil {
		return err
	}
	out.DurationMS = a.now().Sub(began).Milliseconds()
	return a.printCheck(out, "")
}

func (a *app) verifyLedger(ctx context.Context, v verifying, path string) error {
	l, err := openLedger(path)
	if errors.Is(err, ledger.ErrDamaged) {
		return a.printCheck(check{Verification: ipc.Verification{What: err.Error()}, Count: 1, Problems: []archive.Problem{}}, "")
	}
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }() // nothing was written to it
	export := func(w io.Writer) error { _, err := l.Export(ctx, w, func(error) {}); return err }
	if v.independent {
		return a.verifyStream(ctx, v, export)
	}
	bar, began := a.bar(), a.now()
	r, err := l.Verify(ctx, bar.show)
	bar.end()
	if err != nil {
		return err
	}
	if r.OK() && (v.key != "" || len(v.outside) > 0) {
		return a.verifyStream(ctx, v, export)
	}
	out := check{
		Verification: ipc.Verification{OK: r.OK(), Entries: r.Size, Root: r.Root, Origin: r.Origin, Checkpoints: int(r.Checkpoints), Blobs: int(r.Blobs),
			DurationMS: a.now().Sub(began).Milliseconds()},
		Forgotten: r.Forgotten, Count: r.Count, Problems: []archive.Problem{},
	}
	for _, p := range r.Problems {
		out.Problems = append(out.Problems, archive.Problem{Seq: p.Seq, File: p.Where, What: p.What})
	}
	if p, bad := r.First(); bad {
		out.BadSeq, out.What = p.Seq, p.What
	}
	return a.printCheck(out, "")
}

// proved is what a proof shows.
type proved struct {
	OK          bool   `json:"ok"`
	Seq         uint64 `json:"seq"`
	Kind        string `json:"kind,omitempty"`
	Size        uint64 `json:"size"`
	Root        string `json:"root,omitempty"`
	Key         string `json:"key,omitempty"`
	What        string `json:"what,omitempty"`
	Independent bool   `json:"independent"`
}

// verifyProof checks a proof against --key, else against the running daemon's
// keys: a proof does not bring the key, or it would prove nothing.
func (a *app) verifyProof(ctx context.Context, v verifying, path string) error {
	if len(v.outside) > 0 {
		return usage("--against is for a whole log; a proof stands under its own checkpoint")
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st.Size() > 1<<20 {
		return usage("%s is too large for a proof", path)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	keys := []string{v.key}
	if v.key == "" {
		c, err := a.client()
		if err != nil {
			return err
		}
		defer c.Close()
		b, err := c.AuditKeys(ctx)
		if err != nil {
			return &exit{code: exitReach, err: err, hint: "name the log's public key with --key, or start the daemon that has it: gettier up"}
		}
		keys = strings.Fields(string(b))
	}
	out := proved{Independent: v.independent}
	for _, key := range keys {
		if out = v.prove(file, key); out.OK {
			break
		}
	}
	p := newPrinter(a.out)
	switch {
	case a.json:
		p.value(out)
	case out.OK:
		p.line("proved: entry %d (%s) is in the log of %s entries, root %s", out.Seq, out.Kind, words.Thousands(out.Size), out.Root)
		p.line("by %s", out.Key)
	default:
		p.line("NOT PROVED: %s", out.What)
	}
	if !out.OK {
		return &exit{code: exitFound}
	}
	return nil
}

func (v verifying) prove(file []byte, key string) proved {
	out := proved{Key: key, Independent: v.independent}
	var err error
	if v.independent {
		var e verify.Entry
		var c verify.Checkpoint
		e, c, err = verify.Proof(file, key)
		out.Seq, out.Kind, out.Size, out.Root = e.Seq, e.Kind, c.Size, fmt.Sprintf("%x", c.Root)
	} else {
		var p archive.Proof
		if p, err = archive.ParseProof(file); err == nil {
			e, c, cerr := p.Check(key)
			out.Seq, out.Kind, out.Size, out.Root, err = e.Seq, e.Kind, c.Size, fmt.Sprintf("%x", c.Root), cerr
		}
	}
	if out.OK = err == nil; err != nil {
		out.What = err.Error()
	}
	return out
}
