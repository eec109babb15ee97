// Package daemon is the one place where the rooms are wired together: it opens
// the keys, the ledger, the configuration and the sensor registry, starts the
// proxy and the socket API, reloads, and shuts down in order. It decides
// nothing about requests, premises or answers.
package daemon

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/daemon/apikey"
	"gettier.dev/gettierd/daemon/connect"
	"gettier.dev/gettierd/daemon/hold"
	"gettier.dev/gettierd/daemon/logs"
	"gettier.dev/gettierd/daemon/peer"
	"gettier.dev/gettierd/daemon/proxy"
	"gettier.dev/gettierd/daemon/turn"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/keyfile"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/ledger/redact"
	"gettier.dev/gettierd/sensors"
	"gettier.dev/gettierd/sensors/packs"
)

// Version is the program's version, set by the build.
var Version = "dev"

const (
	// sweepEvery is how often expired facts and silent turns are looked for.
	sweepEvery = 30 * time.Second
	// drainFor is how long a stop waits for answers that are on their way.
	drainFor = 10 * time.Second
	// keepAlive is how often a client's stream says that it lives while it waits;
	// the strictest known client gives up after 300 s of silence.
	keepAlive = 15 * time.Second
)

// Options start a daemon. Clock and entropy come in so that tests can fix them.
type Options struct {
	Layout  config.Layout
	Environ []string
	Flags   map[string]string // configuration keys set on the command line
	// AnswerConn is a connection that only the process which started this private
	// daemon holds: its answers to holds count as a person's. It is refused where
	// the ledger is there already.
	AnswerConn net.Conn
	// CheckLedger looks at a ledger file in another process, which the file may
	// bring down; nil opens it as it is.
	CheckLedger func(ctx context.Context, file string, key ed25519.PublicKey) (ledger.Health, error)
	// Upstream is --upstream: the default of both formats.
	Upstream string
	// Terminal reports that a person started the daemon in a terminal, so that
	// loosening variables of its environment count (13.4).
	Terminal bool
	Log      *slog.Logger
	Level    *slog.LevelVar // follows log.level; may be nil
	Now      func() time.Time
	Entropy  io.Reader
}

// Daemon is a running gettierd.
type Daemon struct {
	o       Options
	log     *slog.Logger
	started time.Time
	ledger  *ledger.Ledger
	redact  *redact.Engine
	conf    *settings
	sensors *sensors.Registry
	runner  *sensors.Runner
	drafts  *sensors.Runner // runs what a person wants to try, approved or not
	holds   *hold.Book
	engine  *turn.Engine
	proxy   *proxy.Server
	keys    apikey.Book
	uses    map[string]apikey.Use // of keys, as they were last kept
	outside *snapshots
	since   uint64 // when the first daemon of this state and boot began, as a process's start

	proxyLn  net.Listener
	socketLn net.Listener
	http     *http.Server
	api      *ipcserver.Server
	answers  *ipcserver.Server // over AnswerConn, or nil

	watchers atomic.Int64 // surfaces that a person looks at
	rotating sync.Mutex   // one change of the log's key at a time
	keeping  sync.Mutex   // one change of knowledge at a time
	mu       sync.Mutex
	warnings []string
}

// Ready is what the daemon prints when it serves.
type Ready struct {
	Ready  bool   `json:"ready"`
	Proxy  string `json:"proxy"`
	Socket string `json:"socket"`
	PID    int    `json:"pid"`
}

// New opens everything and binds the addresses; Run serves. On an error all
// that was opened is closed again.
func New(o Options) (_ *Daemon, err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Entropy == nil {
		o.Entropy = rand.Reader
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = slog.New(logs.New(o.Log.Handler()))
	d := &Daemon{o: o, log: o.Log, started: o.Now(), redact: redact.New()}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.closeAll())
		}
	}()
	if err := os.MkdirAll(o.Layout.State, 0o700); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	if err := d.openConfig(); err != nil {
		return nil, err
	}
	if err := d.newLedger(); err != nil {
		return nil, err
	}
	if err := d.openLedger(); err != nil {
		return nil, err
	}
	if err := d.openKeys(); err != nil {
		return nil, err
	}
	if err := d.openSensors(); err != nil {
		return nil, err
	}
	if err := d.openEngine(); err != nil {
		return nil, err
	}
	if d.since, err = since(filepath.Join(o.Layout.State, "first-start")); err != nil {
		return nil, err
	}
	if err := d.knownClients(); err != nil {
		return nil, err
	}
	if err := d.listen(); err != nil {
		return nil, err
	}
	return d, nil
}

// openLedger opens the record with its key; the key is made at the first start.
func (d *Daemon) openLedger() error {
	if _, err := secret(filepath.Join(d.o.Layout.Keys, keyfile.Current), ed25519.SeedSize, d.o.Entropy); err != nil {
		return err
	}
	keys, err := keyfile.Read(d.o.Layout.Keys)
	if err != nil {
		return err
	}
	if err := d.soundLedger(d.conf.layout().Ledger, keys.Current.Public().(ed25519.PublicKey)); err != nil {
		return err
	}
	d.ledger, err = ledger.Open(d.conf.layout().Ledger, ledger.Options{
		Key: keys.Current, NextKey: keys.Next, CheckpointFile: filepath.Join(d.o.Layout.Keys, "checkpoint"),
		Now: d.o.Now, Version: Version, Redact: d.redactText,
	})
	if errors.Is(err, ledger.ErrRolledBack) || errors.Is(err, ledger.ErrDamaged) {
		return fmt.Errorf("%w\nNothing was changed. `gettier ledger repair` goes on with what can be proved; %s", err, restoreHint)
	}
	if err != nil {
		return err
	}
	return keyfile.Settle(d.o.Layout.Keys, d.ledger.PublicKey())
}

// restoreHint is what can be done about any ledger that cannot be used.
const restoreHint = "`gettier ledger restore FILE` puts a backup in its place, which it keeps"

// soundLedger refuses a damaged file before this process touches it: bbolt may
// panic in goroutines of its own, or never come back. What else is wrong with a
// file, opening it says.
func (d *Daemon) soundLedger(file string, key ed25519.PublicKey) error {
	if _, err := os.Stat(file); d.o.CheckLedger == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	h, err := d.o.CheckLedger(context.Background(), file, key)
	if err != nil {
		return fmt.Errorf("check ledger: %w", err)
	}
	if !h.Damaged {
		return nil
	}
	next := restoreHint
	if h.Prefix.Size > 0 {
		next = "`gettier ledger repair` goes on with those and keeps the file aside; " + next
	}
	return fmt.Errorf("%s: %s\n%d entries can be proved. Nothing was changed. %s", file, h.Reason, h.Prefix.Size, next)
}

func (d *Daemon) redactText(b []byte) ([]byte, []ledger.Hit) {
	out, hits := d.redact.Bytes(b)
	ours := make([]ledger.Hit, len(hits))
	for i, h := range hits {
		ours[i] = ledger.Hit{Rule: h.Rule, Count: h.Count}
	}
	return out, ours
}

func (d *Daemon) openSensors() error {
	origin, err := secret(filepath.Join(d.o.Layout.Keys, "origin"), 32, d.o.Entropy)
	if err != nil {
		return err
	}
	embedded, err := packs.All()
	if err != nil {
		return err
	}
	c := d.conf.live()
	d.sensors, err = sensors.Open(sensors.Options{
		StateDir: d.o.Layout.State, Files: d.o.Layout.SensorFiles(c), Projects: roots(c), Packs: embedded, AutoApprove: c.Sensors.AutoApprove,
		Record: d.record, Now: d.o.Now, Entropy: d.o.Entropy,
	})
	if err != nil {
		return err
	}
	ro := sensors.RunnerOptions{
		Width: c.Sensors.Width, Now: d.o.Now, Entropy: d.o.Entropy, OriginKey: origin,
		Redact: d.redact.Bytes, Record: d.record, Confine: true,
		RunsAsHold: c.Sensors.RunsAs == "hold", Hide: []string{d.o.Layout.State, d.o.Layout.Keys, d.o.Layout.Socket, d.conf.layout().Ledger},
	}
	d.drafts = sensors.NewRunner(ro)
	ro.Permit = d.sensors.Permit
	d.runner = sensors.NewRunner(ro)
	return nil
}

// measurer is the sensors as a turn sees them.
type measurer struct{ d *Daemon }

func (m measurer) View(root string) *sensors.View { return m.d.sensors.View(root) }

func (m measurer) Run(ctx context.Context, reqs []sensors.Request) []sensors.Reading {
	out := m.d.runner.Run(ctx, reqs)
	m.d.sensors.Noted(out...)
	return out
}

func (d *Daemon) openEngine() error {
	key, err := secret(filepath.Join(d.o.Layout.Keys, "hmac"), 32, d.o.Entropy)
	if err != nil {
		return err
	}
	hide := func(s string) string { out, _ := d.redact.String(s); return out }
	d.holds = &hold.Book{Store: d.ledger, Now: d.o.Now, Entropy: d.o.Entropy, Redact: hide, ToldTTL: d.conf.toldTTL}
	d.engine = &turn.Engine{
		Store: d.ledger, Holds: d.holds, Sensors: measurer{d}, Settings: d.conf.turnSettings, Now: d.o.Now, Entropy: d.o.Entropy, Key: key,
		Redact:     hide,
		RedactBody: func(b []byte) []byte { out, _ := d.redact.JSON(b); return out },
		Decide:     d.actionGate().decide,
		Attended:   func() bool { return d.watchers.Load() > 0 },
		Log:        d.log,
	}
	transport, err := proxy.NewTransport(nil)
	if err != nil {
		return err
	}
	d.proxy = &proxy.Server{
		Turns: d.engine, Settings: d.conf.proxySettings, Peers: peer.TCP, UID: os.Getuid(), Keys: &d.keys, Now: d.o.Now, HMACKey: key, Transport: transport,
		Policy: "0", Log: d.log,
		Head:      func() (uint64, string) { h := d.ledger.Head(); return h.Size, fmt.Sprintf("%x", h.Root) },
		Connected: d.connected(),
		Conflict: func(named, found string) {
			d.record(lemma.ScopeConflict{Contract: lemma.Contract, Named: named, Found: found})
		},
	}
	return nil
}

// record appends an entry that belongs to no turn. It does not wait for the commit.
func (d *Daemon) record(b lemma.Body) {
	done := d.ledger.Go(ledger.Draft{Body: b})
	select {
	case err := <-done: // refused at once
		if err != nil {
			d.log.Warn("record", "kind", string(b.Kind()), "error", err.Error())
		}
	default:
	}
}

// tellAgain is how long a ruling on the same program, target and outcome is not
// told again, and maxRulings how many are remembered.
const (
	tellAgain  = time.Hour
	maxRulings = 4096
)

// connected records rulings on CONNECT.
func (d *Daemon) connected() func(lemma.Principal, connect.Ruling) {
	type told struct {
		pid     int
		start   uint64
		key     string
		host    string
		port    uint16
		allowed bool
	}
	var mu sync.Mutex
	at := map[told]time.Time{}
	return func(who lemma.Principal, r connect.Ruling) {
		t := told{who.PID, who.Start, who.KeyID, r.Host, r.Port, r.Allowed}
		if who.Command != nil {
			t.pid, t.start = who.Command.PID, who.Command.Start
		}
		now := d.o.Now()
		mu.Lock()
		last, ok := at[t]
		if again := ok && now.Sub(last) < tellAgain && !now.Before(last); again {
			mu.Unlock()
			return
		}
		if len(at) >= maxRulings {
			clear(at) // told once more is no harm
		}
		at[t] = now
		mu.Unlock()
		d.record(lemma.ConnectDecided{Contract: lemma.Contract, Principal: who, Host: r.Host, Port: int(r.Port), Class: string(r.Class), Name: r.Name, Allowed: r.Allowed, Why: clean(r.Why)})
	}
}

// secret reads a key file of n bytes and makes it where it is missing. Its mode
// is 0600 in a directory of 0700; anything wider is an error, not repaired.
func secret(path string, n int, entropy io.Reader) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make key directory: %w", err)
	}
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		b := make([]byte, n)
		if _, err := io.ReadFull(entropy, b); err != nil {
			return nil, fmt.Errorf("make key %s: %w", path, err)
		}
		if err := keep(path, b); err != nil {
			return nil, fmt.Errorf("make key: %w", err)
		}
		return b, nil
	case err != nil:
		return nil, fmt.Errorf("read key: %w", err)
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("read key %s: it is not a regular file", path)
	case st.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("read key %s: others may read it (mode %04o); chmod 600 it if you are sure that nobody did", path, st.Mode().Perm())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	if len(b) != n {
		return nil, fmt.Errorf("read key %s: it has %d bytes, not %d", path, len(b), n)
	}
	return b, nil
}

// keep makes a new file that is whole and on the disk before it has its name, and
// whose name is, too, when keep returns: a ledger must not outlive its key.
func keep(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // under its own name it stays
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	// The directory may be new, and so may the one that it lies in.
	return errors.Join(syncDir(filepath.Dir(path)), syncDir(filepath.Dir(filepath.Dir(path))))
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
