package daemon

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/config/watch"
	"gettier.dev/gettierd/daemon/action"
	"gettier.dev/gettierd/daemon/connect"
	"gettier.dev/gettierd/daemon/credential"
	"gettier.dev/gettierd/daemon/proxy"
	"gettier.dev/gettierd/daemon/turn"
	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors"
)

// cliUpstream names the endpoint of --upstream.
const cliUpstream = "cli"

// settings is the configuration in force, and what waits for a person. Readers
// take the pointer; a reload makes a new one.
type settings struct {
	d   *Daemon
	key ed25519.PrivateKey // signs config.lock
	cur atomic.Pointer[inForce]
	w   *watch.Watcher

	mu       sync.Mutex // one load at a time
	approved *config.Config
	loaded   *config.Config // the file as it stands, good or the last good
	err      error          // why the newest edit does not count
}

// inForce is one configuration with what was derived from it.
type inForce struct {
	c      *config.Config
	res    config.Resolution
	hash   string // of the file's configuration: what an approval binds
	paths  config.Layout
	turn   turn.Settings
	proxy  proxy.Settings
	rules  *action.Policy
	beside beside
	kept   []place // where checkpoints go
}

func (s *settings) live() *config.Config        { return s.cur.Load().c }
func (s *settings) layout() config.Layout       { return s.cur.Load().paths }
func (s *settings) turnSettings() turn.Settings { return s.cur.Load().turn }
func (s *settings) proxySettings() proxy.Settings {
	return s.cur.Load().proxy
}

// toldTTL is how long a told fact of a scope lasts.
func (s *settings) toldTTL(scope string) time.Duration {
	if scope == "host" {
		return s.live().Ledger.ToldTTL.Host
	}
	return s.live().Ledger.ToldTTL.Project
}

// openConfig loads the configuration for the first time; a bad file is an error
// here, since there is no last good one.
func (d *Daemon) openConfig() error {
	key, err := sensors.LockKey(d.o.Layout.State, d.o.Entropy)
	if err != nil {
		return err
	}
	s := &settings{d: d, key: key, w: watch.New(watch.Options{})}
	d.conf = s
	lock, err := config.ReadLock(d.o.Layout.Lock, key.Public().(ed25519.PublicKey))
	gone := false
	switch {
	case err == nil:
		s.approved = lock.Config
	case errors.Is(err, fs.ErrNotExist):
		// Only where there is no ledger yet is the file as found the baseline: a
		// lock that was deleted beside a ledger approves nothing.
		if _, serr := os.Stat(d.o.Layout.Ledger); serr == nil {
			gone, s.approved = true, config.Default()
			d.warn("config.lock is gone: what loosens the defaults waits for approval (gettier config approve)")
		}
	default:
		return err
	}
	c, warns, err := config.Load(d.o.Layout.Config, d.o.Environ, d.o.Flags)
	if err != nil {
		return err
	}
	for _, w := range warns {
		d.warn(w.String())
	}
	if gone {
		// Without its projects nothing would be measured at all, which is looser
		// than any other reading of a lost lock.
		s.approved = s.approved.WithProjects(c.Projects)
	}
	first := s.approved == nil
	if first {
		s.approved = c.Base()
	}
	s.loaded = c
	if err := s.take(c); err != nil {
		return err // a first start that fails pins nothing: the file can be mended
	}
	if first {
		if err := config.WriteLock(d.o.Layout.Lock, key, c.Base(), lemma.Answerer{UID: os.Getuid(), Via: "first start"}, d.o.Now()); err != nil {
			return fmt.Errorf("pin configuration: %w", err)
		}
	}
	return nil
}

// take puts a loaded configuration in force as far as it may count.
func (s *settings) take(c *config.Config) error {
	res := config.Resolve(s.approved, c, s.d.o.Terminal)
	f := &inForce{c: res.Config, res: res, hash: config.Hash(c.Base()), paths: s.d.o.Layout.With(res.Config)}
	f.turn = turnSettings(res.Config)
	var err error
	if f.rules, err = rulesOf(res.Config); err != nil {
		return err
	}
	if f.beside, err = s.besideOf(res.Config); err != nil {
		return err
	}
	if f.proxy, err = s.proxyOf(res.Config); err != nil {
		return err
	}
	f.kept = s.places(res.Config)
	s.cur.Store(f)
	for _, o := range res.Named {
		s.d.warn(fmt.Sprintf("%s loosens %s to %s until the next start", o.Origin.Name, o.Key, o.Value))
	}
	for _, o := range res.Refused {
		s.d.warn(fmt.Sprintf("%s does not count: it would loosen %s to %s, and only a start in a terminal may do that", o.Origin.Name, o.Key, o.Value))
	}
	if s.d.o.Level != nil {
		return s.d.o.Level.UnmarshalText([]byte(res.Config.Log.Level))
	}
	return nil
}

// reload reads the file again; a bad one leaves the last good in force.
func (s *settings) reload() {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.cur.Load()
	c, warns, err := config.Load(s.d.o.Layout.Config, s.d.o.Environ, s.d.o.Flags)
	if err == nil {
		for _, w := range warns {
			s.d.warn(w.String())
		}
		err = s.take(c)
	}
	body := lemma.ConfigLoaded{Contract: lemma.Contract, File: s.d.o.Layout.Config, Hash: old.hash, Changed: []string{}}
	if err != nil {
		if s.err != nil && s.err.Error() == err.Error() {
			return // the same fault as before is no news
		}
		s.err = err
		body.Error = err.Error()
		s.d.log.Warn("configuration not taken", "error", err.Error())
		s.d.record(body)
		return
	}
	s.err, s.loaded = nil, c
	now := s.cur.Load()
	tighter, looser, restart := config.Compare(old.c, now.c)
	body.Hash, body.Changed = now.hash, append(append(body.Changed, tighter...), looser...)
	if len(body.Changed) > 0 || now.hash != old.hash {
		s.d.record(body)
	}
	if len(now.res.Pending) > 0 && !slices.Equal(now.res.Pending, old.res.Pending) {
		s.d.record(lemma.ConfigPending{Contract: lemma.Contract, Hash: now.hash, Keys: now.res.Pending})
	}
	if len(restart) > 0 {
		s.d.warn("these settings count from the next start: " + strings.Join(restart, ", "))
	}
	s.apply()
}

// apply tells the rooms that keep something derived from the configuration.
func (s *settings) apply() {
	c := s.live()
	if s.d.sensors != nil {
		s.d.sensors.Configure(s.d.o.Layout.SensorFiles(c), roots(c), c.Sensors.AutoApprove)
	}
}

// watch reloads when the file settles, until ctx ends.
func (s *settings) watch(ctx context.Context) {
	s.w.Set(s.d.o.Layout.Config)
	// The first report may be of an edit that came after the start's own look, so
	// it counts like any other: an unchanged file is no news to reload.
	_ = s.w.Run(ctx, func(watch.Content) { s.reload() }) // it ends with ctx
}

// approve pins the file's configuration, if it still is the one that was seen.
func (s *settings) approve(hash string, by lemma.Answerer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.cur.Load()
	if hash != f.hash {
		return errChanged
	}
	keys := f.res.Pending
	if err := config.WriteLock(s.d.o.Layout.Lock, s.key, s.loaded.Base(), by, s.d.o.Now()); err != nil {
		return fmt.Errorf("pin configuration: %w", err)
	}
	s.approved = s.loaded.Base()
	if err := s.take(s.loaded); err != nil {
		return err
	}
	s.d.record(lemma.ConfigApproved{Contract: lemma.Contract, Hash: hash, Keys: append([]string{}, keys...), By: by})
	s.apply()
	return nil
}

// projects changes the list of projects in the file and pins just that: other
// loosenings go on waiting.
func (s *settings) projects(by lemma.Answerer, change func([]config.Project) ([]config.Project, error)) error {
	s.mu.Lock()
	next, err := change(s.loaded.Projects)
	if err == nil {
		err = config.SetProjects(s.d.o.Layout.Config, next)
	}
	if err != nil {
		s.mu.Unlock()
		return err
	}
	approved := s.approved.WithProjects(next)
	if err := config.WriteLock(s.d.o.Layout.Lock, s.key, approved, by, s.d.o.Now()); err != nil {
		s.mu.Unlock()
		return fmt.Errorf("pin projects: %w", err)
	}
	s.approved = approved
	s.d.record(lemma.ConfigApproved{Contract: lemma.Contract, Hash: config.Hash(approved), Keys: []string{"projects"}, By: by})
	s.mu.Unlock()
	s.reload()
	return nil
}

// errChanged: what is there is no longer what the person saw.
var errChanged = errors.New("it changed since you looked")

func roots(c *config.Config) []sensors.Project {
	out := make([]sensors.Project, len(c.Projects))
	for i, p := range c.Projects {
		out[i] = sensors.Project{Name: p.Name, Root: p.Root}
	}
	return out
}

func turnSettings(c *config.Config) turn.Settings {
	return turn.Settings{
		Modes: map[lemma.Class]lemma.Mode{
			lemma.Explore: c.Gate.Classes.Explore, lemma.Edit: c.Gate.Classes.Edit,
			lemma.Change: c.Gate.Classes.Change, lemma.Destructive: c.Gate.Classes.Destructive,
		},
		Watch: c.Gate.Mode == "watch", HoldOnUnverifiable: c.Gate.HoldOnUnverifiable, AnnotateGaps: c.Gate.AnnotateGaps,
		HoldsPerHour: c.Gate.Budget.PerHour, HoldsPerDay: c.Gate.Budget.PerDay, HoldTTL: c.Gate.HoldTTL, ClientWait: c.Gate.ClientWait,
		DeclareAtPrompt: c.Declare.At != "action", DeclareAtAction: c.Declare.At != "prompt",
		DeclareMaxTokens: c.Declare.MaxTokens, DeclareMaxPerTurn: c.Declare.MaxPerTurn, DeclareReuse: c.Declare.Reuse, Enforce: c.Action.Enforce,
		InjectMaxBytes: c.Inject.MaxBytes, FailOpenExplore: c.Ledger.FailOpenExplore, KeepAlive: keepAlive,
		WaitAlways: c.Origin("gate.client_wait").Kind != "default",
	}
}

// proxyOf derives the edge's settings: upstreams with their keys read, projects.
func (s *settings) proxyOf(c *config.Config) (proxy.Settings, error) {
	out := proxy.Settings{
		MaxBody: c.Proxy.MaxBody, MaxInflight: c.Proxy.MaxInflightBytes, Limit: c.Proxy.Limit, Upstreams: map[string]proxy.Upstream{},
		Default: map[wire.Format]string{wire.Chat: c.DefaultUpstream.OpenAI, wire.Responses: c.DefaultUpstream.OpenAI, wire.Messages: c.DefaultUpstream.Anthropic},
		ChatGPT: config.ChatGPTName,
	}
	if k := c.Connect; k.Enabled {
		out.Connect = &connect.Rules{AIVendors: k.AIVendors, Allow: k.Allow, Deny: k.Deny, MarketplaceAllow: k.MarketplaceAllow}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		u := c.Upstreams[name]
		base, err := url.Parse(u.BaseURL)
		if err != nil {
			return out, fmt.Errorf("upstreams.%s.base_url: %w", name, err)
		}
		up := proxy.Upstream{Name: name, Base: base, Headers: u.Headers, Format: u.Format, Trusted: u.Trusted, Observe: u.Mode == "observe", Timeout: u.Timeout}
		if up.Key, err = s.upstreamKey(name, u); err != nil {
			return out, fmt.Errorf("upstreams.%s: %w", name, err)
		}
		if u.CAFile != "" {
			pem, err := os.ReadFile(u.CAFile)
			if err != nil {
				return out, fmt.Errorf("upstreams.%s.ca_file: %w", name, err)
			}
			if up.Transport, err = proxy.NewTransport(pem); err != nil {
				return out, fmt.Errorf("upstreams.%s.ca_file: %w", name, err)
			}
		}
		out.Upstreams[name] = up
	}
	if s.d.o.Upstream != "" {
		base, err := url.Parse(s.d.o.Upstream)
		if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
			return out, fmt.Errorf("--upstream %q: want http://HOST[:PORT] or https://HOST", s.d.o.Upstream)
		}
		out.Upstreams[cliUpstream] = proxy.Upstream{Name: cliUpstream, Base: base, Format: "any", Trusted: base.Scheme == "https" || config.Loopback(base.Hostname())}
		out.Default = map[wire.Format]string{wire.Chat: cliUpstream, wire.Responses: cliUpstream, wire.Messages: cliUpstream}
	}
	for _, p := range c.Projects {
		out.Projects = append(out.Projects, proxy.Project{Name: p.Name, Root: p.Root})
	}
	return out, nil
}

// upstreamKey reads the key of an upstream from the place that it names.
func (s *settings) upstreamKey(name string, u config.Upstream) (string, error) {
	if u.KeyLedger != "" {
		key, err := s.d.sealedKey(u.KeyLedger)
		if errors.Is(err, ledger.ErrNotFound) {
			s.d.warn(fmt.Sprintf("upstreams.%s.key_ledger: no key is kept under %s (gettier key store-upstream %s)", name, u.KeyLedger, u.KeyLedger))
			return "", nil
		}
		return key, err
	}
	key, err := credential.Read(credential.Source{Env: u.KeyEnv, File: u.KeyFile, Keyring: u.KeyKeyring, Age: u.KeyAge, AgeIdentity: u.KeyAgeIdentity}, os.Getenv)
	if u.KeyEnv != "" && errors.Is(err, credential.ErrNone) {
		s.d.warn(fmt.Sprintf("upstreams.%s.key_env: the variable %s is not set", name, u.KeyEnv))
		return "", nil
	}
	return key, err
}

// again puts the loaded configuration in force once more, after something that
// it points at has changed.
func (s *settings) again() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(s.loaded)
}
