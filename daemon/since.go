package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"gettier.dev/gettierd/daemon/peer"
	"gettier.dev/gettierd/ledger/lemma"
)

// Who is older than the daemon was started by no agent that it serves. A restart
// must not make an agent's detached process old enough, nor forget who has
// talked to the proxy: what is known of this boot outlives the daemon.

// firstStart is when the first daemon of this state began since the machine was
// booted, as a process's start.
type firstStart struct {
	Boot  string `json:"boot"`
	Start uint64 `json:"start"`
}

// since reads path, or writes it when there is none of this boot.
func since(path string) (uint64, error) {
	self, err := peer.Find(os.Getpid())
	if errors.Is(err, peer.ErrUnsupported) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("find own process: %w", err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0, fmt.Errorf("read boot id: %w", err)
	}
	now := firstStart{Boot: strings.TrimSpace(string(boot)), Start: self.Start}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("read first start: %w", err)
	}
	var old firstStart
	if json.Unmarshal(data, &old) == nil && old.Boot == now.Boot && old.Start <= now.Start {
		return old.Start, nil
	}
	if data, err = json.Marshal(now); err != nil {
		return 0, fmt.Errorf("encode first start: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		return 0, fmt.Errorf("write first start: %w", err)
	}
	return now.Start, nil
}

// knownEntries is how far back clients are looked for at the start.
const knownEntries = 20_000

// knownClients gives the proxy those of its clients from before a restart that
// are still there.
func (d *Daemon) knownClients() error {
	end := d.ledger.Head().Size
	from := uint64(0)
	if end > knownEntries {
		from = end - knownEntries
	}
	seen := map[lemma.Asker]bool{}
	for from < end {
		entries, err := d.ledger.Entries(from, 1000)
		if err != nil {
			return fmt.Errorf("look for earlier clients: %w", err)
		}
		if len(entries) == 0 {
			return nil
		}
		for _, e := range entries {
			from = e.Seq + 1
			if lemma.Kind(e.Kind) != lemma.KTurnOpened {
				continue
			}
			var b lemma.TurnOpened
			if err := json.Unmarshal(e.Body, &b); err != nil {
				return fmt.Errorf("read entry %d: %w", e.Seq, err)
			}
			askers := []lemma.Asker{{PID: b.Principal.PID, Start: b.Principal.Start}}
			if c := b.Principal.Command; c != nil {
				askers = append(askers, *c)
			}
			for _, who := range askers {
				if who.PID == 0 || seen[who] {
					continue
				}
				seen[who] = true
				if p, err := peer.Find(who.PID); err == nil && p.Start == who.Start {
					d.proxy.Remember(p)
				}
			}
		}
	}
	return nil
}
