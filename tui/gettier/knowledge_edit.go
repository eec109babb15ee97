package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/tui/sheet"
	"gettier.dev/gettierd/tui/words"
)

func (a *app) knowledgeEdit() *cobra.Command {
	return &cobra.Command{
		Use:   "edit [ID]",
		Short: "all of it, or one piece, in your editor",
		Long: "Opens $VISUAL, else $EDITOR, on a page of YAML. What cannot be read is shown where it stands, and the\n" +
			"editor opens again on your own text; what somebody else changed meanwhile is put beside yours. Nothing\n" +
			"is written before all of the page is good, and when you give up the page stays where it lies.",
		Example: "  gettier knowledge edit\n  gettier knowledge edit 0001",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			editor := a.editor()
			if len(editor) == 0 {
				return usage("neither VISUAL nor EDITOR is set: say which editor to open")
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			e := &edition{a: a, c: c, editor: editor}
			if len(args) == 1 {
				k, err := findKnowledge(cmd.Context(), c, args[0])
				if err != nil {
					return err
				}
				e.only = k.ID
			}
			return e.run(cmd)
		},
	}
}

// editor is the person's editor with its arguments.
func (a *app) editor() []string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if v, _ := lookup(a.env, name); strings.TrimSpace(v) != "" {
			return strings.Fields(v)
		}
	}
	return nil
}

// edition is one editing: what stood there when the page was printed, and where
// the page lies.
type edition struct {
	a      *app
	c      *ipc.Client
	editor []string
	only   string // id of the one piece, "" = all
	file   string
	base   map[string]lemma.Knowledge
}

// run edits until the page is good and taken, or the person gives up by leaving
// it as it is.
func (e *edition) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	now, err := e.read(ctx)
	if err != nil {
		return err
	}
	e.base = now
	dir, err := os.MkdirTemp("", "gettier-knowledge-")
	if err != nil {
		return fmt.Errorf("make page: %w", err)
	}
	e.file = filepath.Join(dir, "knowledge.yaml")
	page := sheet.Print(rowsOf(now), "", nil)
	for {
		edited, err := e.edit(ctx, page)
		if err != nil {
			return e.kept(err)
		}
		if bytes.Equal(edited, page) {
			if e.first(page) {
				return e.nothing()
			}
			return e.kept(&exit{code: exitFound, err: errors.New("the page was left as it is; nothing was changed")})
		}
		rows, ok, err := sheet.Parse(edited)
		var faults sheet.Faults
		switch {
		case errors.As(err, &faults):
			explained := faults.Explain(edited)
			newPrinter(e.a.err).text(explained, "")
			page = above(edited, "Not taken yet. Mend it and save; leave without saving to give up.\n"+explained)
			continue
		case err != nil:
			return e.kept(err)
		case !ok:
			return e.kept(&exit{code: exitFound, err: errors.New("the page is empty, so nothing was changed; write knowledge: [] to remove all")})
		}
		changes, page2, err := e.changes(ctx, rows)
		if err != nil {
			return e.kept(err)
		}
		if page2 != nil {
			page = page2
			continue
		}
		if len(changes) == 0 {
			return e.nothing()
		}
		if len(changes) > ipc.MaxKnowledgeChanges {
			page = above(edited, fmt.Sprintf("Not taken: %d changes at once, at most %d.", len(changes), ipc.MaxKnowledgeChanges))
			continue
		}
		err = e.a.changeKnowledge(cmd, e.c, changes, e.base)
		var p *ipc.Problem
		switch {
		case err == nil:
			e.drop()
			return nil
		case errors.As(err, &p) && (p.Status == 409 || p.Status == 422 || p.Status == 404):
			newPrinter(e.a.err).text(p.Detail, "")
			page = above(edited, "Not taken: "+p.Detail)
			if p.Status == 409 { // changed between our look and the write: look again
				if _, merged, err := e.changes(ctx, rows); err == nil && merged != nil {
					page = merged
				}
			}
		default:
			return e.kept(err)
		}
	}
}

// first reports whether page is the one that was printed first: then leaving it
// is no giving up.
func (e *edition) first(page []byte) bool {
	return bytes.Equal(page, sheet.Print(rowsOf(e.base), "", nil))
}

// read is the knowledge in question as it is now, by id.
func (e *edition) read(ctx context.Context) (map[string]lemma.Knowledge, error) {
	l, err := e.c.Knowledge(ctx, ipc.KnowledgeQuery{})
	if err != nil {
		return nil, err
	}
	out := map[string]lemma.Knowledge{}
	for _, k := range l.Items {
		if e.only == "" || k.ID == e.only {
			out[k.ID] = k
		}
	}
	return out, nil
}

func rowsOf(ks map[string]lemma.Knowledge) []sheet.Row {
	rows := make([]sheet.Row, 0, len(ks))
	for _, k := range ks {
		rows = append(rows, rowOf(k))
	}
	slices.SortFunc(rows, func(a, b sheet.Row) int { return strings.Compare(a.ID, b.ID) })
	return rows
}

func rowOf(k lemma.Knowledge) sheet.Row {
	return sheet.Row{ID: k.ID, Scope: k.Scope, Text: k.Text, Topics: k.Topics, Sensitivity: k.Sensitivity}
}

// changes compares the rows with what the person saw and with what is there now.
// Where both changed the same piece it returns another page instead, on which the
// other's words stand beside the person's.
func (e *edition) changes(ctx context.Context, rows []sheet.Row) (out []ipc.KnowledgeChange, page []byte, err error) {
	now, err := e.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	notes, gone := map[string]string{}, map[string]bool{}
	kept := map[string]bool{}
	var unknown []string
	for i, r := range rows {
		kept[r.ID] = true
		was, had := e.base[r.ID]
		is, have := now[r.ID]
		change := ipc.KnowledgeChange{ID: r.ID, Was: is.ChangedAt, Scope: r.Scope, Text: r.Text, Topics: r.Topics, Sensitivity: r.Sensitivity}
		switch {
		case r.ID == "":
			out = append(out, change)
		case !had && !have:
			unknown = append(unknown, r.ID)
		case !have && r.Same(was):
			gone[r.ID] = true // somebody removed what this person left alone
		case !have:
			notes[fmt.Sprint(i)] = "removed meanwhile. It has no id now, so that saving adds it again; take it out to leave it removed."
			rows[i].ID = ""
		case r.Same(is):
		case had && r.Same(was): // somebody else's change stays
			rows[i] = rowOf(is)
		case had && was.ChangedAt != is.ChangedAt:
			notes[fmt.Sprint(i)] = fmt.Sprintf("changed meanwhile (%s). It says now:\n%s", is.ChangedAt, inOneLine(is))
		default:
			out = append(out, change)
		}
	}
	for id, was := range e.base {
		is, have := now[id]
		switch {
		case kept[id] || !have:
		case was.ChangedAt != is.ChangedAt:
			notes[id] = "you took it out, and it was changed meanwhile; take it out again to remove it"
			rows = append(rows, rowOf(is))
		default:
			out = append(out, ipc.KnowledgeChange{ID: id, Was: is.ChangedAt, Remove: true})
		}
	}
	if len(unknown) > 0 {
		return nil, sheet.Print(rows, "Not taken: no piece has the id "+strings.Join(unknown, ", ")+"; a new piece has none.", nil), nil
	}
	if len(notes) > 0 {
		for _, r := range rowsOf(now) {
			if _, had := e.base[r.ID]; !had && !kept[r.ID] {
				rows = append(rows, r) // new meanwhile: not there, it would count as taken out
			}
		}
		e.base = now
		return nil, e.conflicts(rows, notes, gone), nil
	}
	// An edit takes back to front whatever the map's order was.
	slices.SortStableFunc(out, func(a, b ipc.KnowledgeChange) int { return strings.Compare(a.ID, b.ID) })
	return out, nil, nil
}

// conflicts prints the rows again, each with its note.
func (e *edition) conflicts(rows []sheet.Row, notes map[string]string, gone map[string]bool) []byte {
	byRow := map[string]string{}
	var head []string
	left := rows[:0:0]
	for i, r := range rows {
		if gone[r.ID] && r.ID != "" {
			continue
		}
		note := notes[fmt.Sprint(i)]
		if note == "" {
			note = notes[r.ID]
		}
		if note != "" && r.ID != "" {
			byRow[r.ID] = note
		} else if note != "" {
			head = append(head, fmt.Sprintf("%q was %s", r.Text, note))
		}
		left = append(left, r)
	}
	newPrinter(e.a.err).line("%s changed meanwhile; the page shows both", words.Count(len(notes), "piece was", "pieces were"))
	return sheet.Print(left, strings.Join(append([]string{"Not taken yet: somebody changed the same. Yours stands below; save it to have it so."}, head...), "\n"), byRow)
}

func inOneLine(k lemma.Knowledge) string {
	return fmt.Sprintf("%s [%s] %s, %s", k.Scope, strings.Join(k.Topics, ", "), k.Sensitivity, k.Text)
}

// mark begins the lines that above writes, so that the next time they are
// replaced and not repeated.
const mark = "#! "

// above puts a note over a page, in place of the one before.
func above(page []byte, note string) []byte {
	var b bytes.Buffer
	for l := range strings.Lines(note) {
		b.WriteString(strings.TrimRight(mark+l, " \n") + "\n")
	}
	for l := range bytes.Lines(page) {
		if !bytes.HasPrefix(l, []byte(strings.TrimSpace(mark))) {
			b.Write(l)
		}
	}
	return b.Bytes()
}

// edit writes the page, waits for the editor and reads the page again.
func (e *edition) edit(ctx context.Context, page []byte) ([]byte, error) {
	if err := os.WriteFile(e.file, page, 0o600); err != nil {
		return nil, fmt.Errorf("write page: %w", err)
	}
	cmd := exec.CommandContext(ctx, e.editor[0], append(slices.Clone(e.editor[1:]), e.file)...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = e.a.env, e.a.in, e.a.out, e.a.err
	if e.a.json {
		cmd.Stdout = e.a.err // standard output is for the answer
	}
	if err := cmd.Run(); err != nil {
		return nil, &exit{code: exitReach, err: fmt.Errorf("the editor %s: %w", e.editor[0], err)}
	}
	f, err := os.Open(e.file)
	if err != nil {
		return nil, fmt.Errorf("read page: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, sheet.Max+1)) // one byte too many is a fault of the page
	if err != nil {
		return nil, fmt.Errorf("read page: %w", err)
	}
	return b, nil
}

// nothing ends an editing without a change.
func (e *edition) nothing() error {
	e.drop()
	p := newPrinter(e.a.out)
	if e.a.json {
		p.value(ipc.KnowledgeChanged{Items: []lemma.Knowledge{}})
		return nil
	}
	p.line("nothing was changed")
	return nil
}

// kept says where the page lies when the person's work was not taken.
func (e *edition) kept(err error) error {
	newPrinter(e.a.err).line("your page is kept: %s", e.file)
	return err
}

func (e *edition) drop() { _ = os.RemoveAll(filepath.Dir(e.file)) } // a temporary directory; what is left harms nobody
