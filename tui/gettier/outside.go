package main

import (
	"time"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/tui/words"
)

// outside says in a line what a place has of the log.
func (a *app) outside(c ipc.OutsideCopy, size uint64) string {
	line := c.Place + "  "
	switch at, err := time.Parse(lemma.TimeFormat, c.Until); {
	case c.Size == 0:
		line += "nothing yet"
	case c.Size == size:
		line += "the whole log"
	case err != nil:
		line += words.Count(c.Size, "entry", "entries")
	default:
		line += words.Count(c.Size, "entry", "entries") + ", until " + words.Span(a.now().Sub(at)) + " ago"
	}
	if c.Error != "" {
		line += "  (" + c.Error + ")"
	}
	return line
}

// noOutside is what follows when there is no copy.
const noOutside = "no copy outside: a log that its key's holder wrote anew would not show (audit.witness)"

// newestOutside is the copy that covers most.
func newestOutside(copies []ipc.OutsideCopy) (best ipc.OutsideCopy, ok bool) {
	for _, c := range copies {
		if c.Size > best.Size {
			best = c
		}
	}
	return best, best.Size > 0
}
