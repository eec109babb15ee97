package main

import (
	"context"
	"fmt"
	"strings"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/tui/story"
	"gettier.dev/gettierd/tui/words"
)

// request prints the request that a turn began with, as the ledger keeps it: the
// very bytes, unless a person looks on.
func (a *app) request(ctx context.Context, c *ipc.Client, d ipc.TurnDetail) error {
	sum, why := story.Request(d)
	if sum == "" {
		return &exit{code: exitFound, err: fmt.Errorf("turn %s has no request: %s", words.ShortID(d.ID), why)}
	}
	b, err := c.Blob(ctx, sum)
	if err != nil {
		return err
	}
	if _, person := terminal(a.out); person {
		newPrinter(a.out).text(string(b), "")
		return nil
	}
	_, err = a.out.Write(b)
	return err
}

// story prints a turn: the words are tui/story's, and the TUI shows the same.
func (a *app) story(ctx context.Context, c *ipc.Client, d ipc.TurnDetail, evidence bool) error {
	p := newPrinter(a.out)
	if a.json {
		p.value(d)
		return nil
	}
	o := story.Options{Stamp: a.stamp}
	if evidence {
		o.Evidence = func(sum string) []byte {
			b, err := c.Blob(ctx, sum)
			if err != nil {
				return []byte("not kept: " + err.Error())
			}
			return b
		}
	}
	for _, l := range story.Head(d, o) {
		p.hang("", l)
	}
	stage := ""
	for _, l := range story.Tell(d, o) {
		at, name := "", ""
		if l.Stage != stage {
			stage, name = l.Stage, l.Stage
			if l.Since >= 0 {
				at = "+" + words.Thousands(l.Since.Milliseconds())
			}
		}
		p.hang(fmt.Sprintf("%-8s %8s  ", name, at), l.Text)
	}
	for _, l := range story.Foot(d) {
		p.line("%s", l)
	}
	if !evidence && story.HasEvidence(d) {
		p.line("what the sensors printed: gettier turns %s --evidence", strings.ToLower(d.ID[max(0, len(d.ID)-6):]))
	}
	return nil
}
