package daemon

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/daemon/apikey"
	"gettier.dev/gettierd/daemon/credential"
	"gettier.dev/gettierd/daemon/hold"
	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/keyfile"
	"gettier.dev/gettierd/ledger/lemma"
)

// openKeys reads the keys of which the ledger knows: to the proxy, and of
// upstreams that are kept sealed.
func (d *Daemon) openKeys() error {
	d.outside = d.newSnapshots()
	if err := d.loadKeys(); err != nil {
		return err
	}
	d.recallUses()
	if c := d.conf.live(); c.Audit.S3.KeyLedger != "" || slices.ContainsFunc(slices.Collect(maps.Keys(c.Upstreams)), func(name string) bool { return c.Upstreams[name].KeyLedger != "" }) {
		if err := d.conf.again(); err != nil {
			return err
		}
	}
	host := d.conf.live().Proxy.BindHost
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	d.warn(fmt.Sprintf("proxy.bind_host is %s: other machines reach the proxy, without encryption; whoever is not this user needs a key of gettier's", host))
	if d.keys.Usable(d.o.Now()) == 0 {
		d.warn("proxy.bind_host: there is no key yet, so nobody else is served (gettier key create)")
	}
	return nil
}

// loadKeys tells the edge which keys there are.
func (d *Daemon) loadKeys() error {
	page, err := d.ledger.APIKeys()
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	keys := make([]apikey.Key, 0, len(page.Items))
	for _, k := range page.Items {
		// A time that cannot be read is zero, and the key has expired.
		expires, _ := time.Parse(time.RFC3339Nano, k.ExpiresAt)
		keys = append(keys, apikey.Key{ID: k.ID, Name: k.Name, SHA256: k.SHA256, Scopes: k.Scopes, Upstreams: k.Upstreams, Projects: k.Projects,
			UID: k.UID, PerMinute: k.PerMinute, PerDay: k.PerDay, Expires: expires, Revoked: k.RevokedAt != ""})
	}
	d.keys.Set(keys)
	return nil
}

// usesFile keeps when keys were last used: on the chain it would be an entry a
// request.
func (d *Daemon) usesFile() string { return filepath.Join(d.o.Layout.State, "key-uses.json") }

// recallUses is a help for people, never a reason not to start.
func (d *Daemon) recallUses() {
	b, err := os.ReadFile(d.usesFile())
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			d.log.Warn("read last uses of keys", "error", err.Error())
		}
		return
	}
	var uses map[string]apikey.Use
	if err := json.Unmarshal(b, &uses); err != nil || len(uses) > apikey.Max {
		d.log.Warn("last uses of keys cannot be read")
		return
	}
	d.keys.Recall(uses)
	d.uses = uses
}

// keepUses writes when keys were last used, if that changed.
func (d *Daemon) keepUses() {
	uses := d.keys.Uses()
	if maps.EqualFunc(uses, d.uses, func(a, b apikey.Use) bool { return a.At.Equal(b.At) && a.Requests == b.Requests }) {
		return
	}
	b, err := json.Marshal(uses)
	if err == nil {
		err = os.WriteFile(d.usesFile()+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(d.usesFile()+".new", d.usesFile())
	}
	if err != nil {
		d.log.Warn("keep last uses of keys", "error", err.Error())
		return
	}
	d.uses = uses
}

// RotateLogKey changes the key that signs the log. The next one is on the disk
// before the log names it, and the old one goes when it has.
func (b backend) RotateLogKey(ctx context.Context, by lemma.Answerer) (ipc.KeyRotation, error) {
	d := b.d
	d.rotating.Lock()
	defer d.rotating.Unlock()
	next, err := keyfile.Begin(d.o.Layout.Keys, d.o.Entropy)
	if err != nil {
		return ipc.KeyRotation{}, err
	}
	r, err := d.ledger.RotateKey(ctx, next, hold.Who(by))
	if err != nil {
		// What failed may be on the disk all the same: the next key stays where it
		// is, and the next start sees which of the two the log wants.
		return ipc.KeyRotation{}, err
	}
	if err := keyfile.Settle(d.o.Layout.Keys, d.ledger.PublicKey()); err != nil {
		d.warn("the old log key could not be destroyed yet, the next start tries again: " + err.Error())
	}
	lines, err := d.ledger.Keys().Verifiers()
	if err != nil {
		return ipc.KeyRotation{}, err
	}
	return ipc.KeyRotation{Seq: r.First, Key: lines[len(lines)-1]}, nil
}

func (b backend) apiKeyOf(k ledger.APIKey) ipc.APIKey {
	out := ipc.APIKey{ID: k.ID, Name: k.Name, Scopes: k.Scopes, Upstreams: k.Upstreams, Projects: k.Projects, UID: k.UID,
		PerMinute: k.PerMinute, PerDay: k.PerDay, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, RevokedAt: k.RevokedAt, State: "usable"}
	if u := b.d.keys.Used(k.ID, b.d.o.Now()); !u.At.IsZero() {
		out.UsedAt, out.Today = lemma.Time(u.At), u.Requests
	}
	switch {
	case k.RevokedAt != "":
		out.State = "revoked"
	case k.ExpiresAt <= lemma.Time(b.d.o.Now()):
		out.State = "expired"
	}
	return out
}

func (b backend) APIKeys(context.Context) (ipc.List[ipc.APIKey], error) {
	page, err := b.d.ledger.APIKeys()
	return listOf(page, b.apiKeyOf), known(err)
}

func (b backend) CreateAPIKey(ctx context.Context, k ipc.KeyRequest, by lemma.Answerer) (ipc.NewAPIKey, error) {
	d := b.d
	life := apikey.DefaultLife
	if k.ExpiresSeconds != 0 {
		life = time.Duration(min(k.ExpiresSeconds, int64(apikey.MaxLife/time.Second)+1)) * time.Second
	}
	if err := b.mayCreate(k, life); err != nil {
		return ipc.NewAPIKey{}, err
	}
	secret, err := apikey.New(d.o.Entropy)
	if err != nil {
		return ipc.NewAPIKey{}, err
	}
	sum := apikey.Sum(secret)
	now := d.o.Now()
	body := lemma.KeyCreated{
		Contract: lemma.Contract, ID: "k_" + sum[:12], Name: k.Name, SHA256: sum, Scopes: slices.Compact(slices.Sorted(slices.Values(k.Scopes))),
		Upstreams: append([]string{}, k.Upstreams...), Projects: append([]string{}, k.Projects...), UID: k.UID, PerMinute: k.PerMinute, PerDay: k.PerDay,
		CreatedAt: lemma.Time(now), ExpiresAt: lemma.Time(now.Add(life)), By: hold.Who(by),
	}
	if _, err := d.ledger.Append(ctx, ledger.Draft{Body: body}); err != nil {
		return ipc.NewAPIKey{}, err
	}
	if err := d.loadKeys(); err != nil {
		return ipc.NewAPIKey{}, err
	}
	return ipc.NewAPIKey{APIKey: b.apiKeyOf(ledger.APIKey{KeyCreated: body}), Secret: secret}, nil
}

// mayCreate refuses a key that would be good for nothing, or for what no key may.
func (b backend) mayCreate(k ipc.KeyRequest, life time.Duration) error {
	no := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ipcserver.ErrInvalid, fmt.Sprintf(format, args...))
	}
	if life <= 0 || life > apikey.MaxLife {
		return no("a key lasts more than nothing and at most %d days", apikey.MaxLife/(24*time.Hour))
	}
	for _, s := range k.Scopes {
		if !slices.Contains(apikey.Scopes, s) {
			return no("there is no scope %q, only %s: a key never answers, approves or operates", s, strings.Join(apikey.Scopes, " and "))
		}
	}
	if !slices.Contains(k.Scopes, apikey.ScopeProxy) {
		return no("without the scope %s it would be good for nothing", apikey.ScopeProxy)
	}
	set := b.d.conf.proxySettings()
	for _, name := range k.Upstreams {
		if _, ok := set.Upstreams[name]; !ok {
			return no("there is no upstream %q", name)
		}
	}
	for _, name := range k.Projects {
		if _, err := b.d.root(name); err != nil {
			return err
		}
	}
	if k.UID != nil && *k.UID < 0 {
		return no("%d is no uid", *k.UID)
	}
	if k.PerMinute < 0 || k.PerMinute > config.MaxPerMinute || k.PerDay < 0 {
		return no("a key takes up to %d requests a minute; 0 bounds neither the minute nor the day", config.MaxPerMinute)
	}
	page, err := b.d.ledger.APIKeys()
	if err != nil {
		return err
	}
	if len(page.Items) >= apikey.Max {
		return no("there are %d keys already", len(page.Items))
	}
	for _, o := range page.Items {
		if o.Name == k.Name && b.apiKeyOf(o).State == "usable" {
			return fmt.Errorf("%w: a key of the name %s is in use; revoke it first, or take another name", ipcserver.ErrConflict, k.Name)
		}
	}
	return nil
}

func (b backend) RevokeAPIKey(ctx context.Context, id string, by lemma.Answerer) error {
	page, err := b.d.ledger.APIKeys()
	if err != nil {
		return err
	}
	var named []ledger.APIKey // by id, or by a name that is in use once
	for _, k := range page.Items {
		if k.ID == id || k.Name == id && k.RevokedAt == "" {
			named = append(named, k)
		}
	}
	switch {
	case len(named) == 0:
		return fmt.Errorf("%w: no key is %q", ipcserver.ErrNotFound, id)
	case len(named) > 1:
		return fmt.Errorf("%w: %q names %d keys; give the id", ipcserver.ErrConflict, id, len(named))
	case named[0].RevokedAt != "":
		return fmt.Errorf("%w: it was revoked at %s", ipcserver.ErrConflict, named[0].RevokedAt)
	}
	if _, err := b.d.ledger.Append(ctx, ledger.Draft{Body: lemma.KeyRevoked{Contract: lemma.Contract, ID: named[0].ID, By: hold.Who(by)}}); err != nil {
		return err
	}
	return b.d.loadKeys()
}

// identity is where what opens sealed keys is.
func (d *Daemon) identity() credential.Identity {
	return credential.Identity{File: filepath.Join(d.o.Layout.Keys, "seal"), Keyring: d.conf.live().Ledger.SealKeyring}
}

// sealedKey opens the upstream key of this name. While the configuration is read
// for the first time there is no ledger; openKeys reads it again.
func (d *Daemon) sealedKey(name string) (string, error) {
	if d.ledger == nil {
		return "", nil
	}
	k, err := d.ledger.SealedKey(name)
	if err != nil {
		return "", err
	}
	sealed, err := hex.DecodeString(k.Sealed)
	if err != nil {
		return "", fmt.Errorf("unseal key %s: it is not as it was written", name)
	}
	return d.identity().Unseal(sealed, os.Getenv)
}

func (b backend) sealedOf(k lemma.KeySealed) ipc.SealedKey {
	out := ipc.SealedKey{Name: k.Name, SealedAt: k.SealedAt, Recipient: k.Recipient}
	var by []string
	for name, u := range b.d.conf.live().Upstreams {
		if u.KeyLedger == k.Name {
			by = append(by, name)
		}
	}
	slices.Sort(by)
	out.UsedBy = strings.Join(by, ", ")
	return out
}

func (b backend) SealedKeys(context.Context) (ipc.List[ipc.SealedKey], error) {
	page, err := b.d.ledger.SealedKeys()
	return listOf(page, b.sealedOf), known(err)
}

func (b backend) SealKey(ctx context.Context, name, secret string, by lemma.Answerer) (ipc.SealedKey, error) {
	d := b.d
	if page, err := d.ledger.SealedKeys(); err != nil {
		return ipc.SealedKey{}, err
	} else if len(page.Items) >= ledger.GrantsMax {
		return ipc.SealedKey{}, fmt.Errorf("%w: there are %d keys already", ipcserver.ErrInvalid, len(page.Items))
	}
	id := d.identity()
	if err := id.Make(); err != nil {
		return ipc.SealedKey{}, err
	}
	sealed, recipient, err := id.Seal(secret, os.Getenv)
	if errors.Is(err, credential.ErrForm) || errors.Is(err, credential.ErrNone) {
		return ipc.SealedKey{}, fmt.Errorf("%w: %w", ipcserver.ErrInvalid, err)
	}
	if err != nil {
		return ipc.SealedKey{}, err
	}
	body := lemma.KeySealed{Contract: lemma.Contract, Name: name, Recipient: recipient, Sealed: hex.EncodeToString(sealed), SealedAt: lemma.Time(d.o.Now()), By: hold.Who(by)}
	if _, err := d.ledger.Append(ctx, ledger.Draft{Body: body}); err != nil {
		return ipc.SealedKey{}, err
	}
	return b.sealedOf(body), d.conf.again()
}

func (b backend) ForgetKey(ctx context.Context, name string, by lemma.Answerer) error {
	if _, err := b.d.ledger.SealedKey(name); err != nil {
		return known(err)
	}
	if _, err := b.d.ledger.Append(ctx, ledger.Draft{Body: lemma.KeyRevoked{Contract: lemma.Contract, ID: ledger.SealedID(name), By: hold.Who(by)}}); err != nil {
		return err
	}
	return b.d.conf.again()
}
