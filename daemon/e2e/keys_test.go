package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
)

// TestE2EKeys: another user of the machine is served with a key of gettier's and
// with nothing else; the key goes no further than the daemon, and only a person
// makes or ends one. The log changes its own key in between.
func TestE2EKeys(t *testing.T) {
	t.Parallel()
	attr := nobody(t)
	up := newRecorder(t, believer)
	h := newHouse(t, plan{env: []string{"PROVIDER=" + "sk-" + "provider"}, config: "upstreams:\n" +
		"  keyed: {base_url: \"" + up.URL + "\", format: openai, key_env: PROVIDER}\n" +
		"  bare: {base_url: \"" + up.URL + "\", format: openai}\n" +
		"  claude: {base_url: \"" + up.URL + "\", format: anthropic, key_env: PROVIDER}\n" +
		"default_upstream: {openai: keyed, anthropic: claude}\n"})
	for _, call := range []string{"key create --name x", "key revoke x", "key store-upstream x", "key forget-upstream x", "ledger rotate-key"} {
		if out, errs, code := h.gettier(strings.Fields(call)...); code != 4 {
			t.Errorf("a program called %s: exit %d\n%s%s", call, code, out, errs)
		}
	}
	tm := h.newTerminal()
	person := func(command string) string {
		t.Helper()
		screen, code := tm.typed("gettier " + command + " --socket " + h.socket)
		if code != "0" {
			t.Fatalf("%s: exit %s\n%s", command, code, screen)
		}
		return screen
	}
	make := func(name, more string) string {
		t.Helper()
		file := filepath.Join(h.dir, name+".key")
		person("key create --name " + name + more + " >" + file)
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	wide, narrow := make("wide", ""), make("narrow", " --upstream bare --uid 4242")
	if !strings.HasPrefix(wide, "gt_live_") || len(wide) != 51 {
		t.Fatalf("the key is %q", wide)
	}
	a := h.agent("/", attr)
	hi := func(tg tongue) string { return tg.body(false, false, tg.user("what is a closure?")) }
	for _, c := range []struct {
		name   string
		path   string
		tg     tongue
		header []string
		status int
		auth   string // what the provider got
	}{
		{"none", "", chatTongue, []string{"Authorization", "Bearer x"}, 401, ""},
		{"unknown", "", chatTongue, []string{"X-Gettier-Key", wide[:50] + "!"}, 401, ""},
		{"its own header", "/bare", chatTongue, []string{"X-Gettier-Key", wide, "Authorization", "Bearer mine"}, 200, "Bearer mine"},
		{"as the provider's", "", chatTongue, []string{"Authorization", "Bearer " + wide}, 200, "Bearer sk-" + "provider"},
		{"as the provider's, none there", "/bare", chatTongue, []string{"Authorization", "Bearer " + wide}, 401, ""},
		{"as Anthropic's", "", messagesTongue, []string{"X-Api-Key", wide}, 200, ""},
		{"not its upstream, not its user", "", chatTongue, []string{"X-Gettier-Key", narrow}, 403, ""},
	} {
		before := len(up.all())
		r := a.post(t, c.path+c.tg.path, hi(c.tg), c.header...)
		if r.status != c.status {
			t.Errorf("%s: %d %s", c.name, r.status, r.body)
		}
		if c.status != 200 && (!strings.Contains(r.body, `"error"`) || strings.Contains(r.body, "gt_live_") || len(up.all()) != before) {
			t.Errorf("%s: %s, and %d requests went on", c.name, r.body, len(up.all())-before)
		}
		if c.status == 200 && c.auth != "" && up.all()[before].header.Get("Authorization") != c.auth {
			t.Errorf("%s: the provider got %q", c.name, up.all()[before].header.Get("Authorization"))
		}
	}
	for _, x := range up.all() {
		for name, values := range x.header {
			if strings.Contains(strings.Join(values, " "), "gt_live_") || strings.HasPrefix(name, "X-Gettier-") {
				t.Errorf("the provider got %s: %s", name, values)
			}
		}
	}
	// Who asked is the key, and it knows nothing of this machine.
	keyed := 0
	for _, e := range find[lemma.TurnOpened](t, h.entries()) {
		if strings.HasPrefix(e.Principal.KeyID, "k_") {
			keyed++
		}
	}
	if n := len(find[lemma.TurnInjected](t, h.entries())); keyed != 3 || n != 0 {
		t.Errorf("%d turns of a key, %d blocks", keyed, n)
	}
	if r, err := a.do(http.MethodGet, "/healthz", "", "X-Gettier-Key", wide); err != nil || r.status != 200 {
		t.Errorf("healthz: %d %v", r.status, err)
	}

	// A key has its minute and its day; a refusal comes before the provider.
	slow := make("slow", " --per-minute 1 --per-day 5")
	for _, want := range []int{200, 429} {
		before := len(up.all())
		r := a.post(t, chatTongue.path, hi(chatTongue), "Authorization", "Bearer "+slow)
		after, _ := strconv.Atoi(r.header.Get("Retry-After"))
		if r.status != want || want == 429 && (after < 1 || after > 60 || len(up.all()) != before || !strings.Contains(r.body, "requests a minute")) {
			t.Errorf("a slow key: %d, not %d, retry after %d\n%s", r.status, want, after, r.body)
		}
	}
	if out := h.must("key", "list"); !strings.Contains(out, "1 a minute · 1 of 5 today") {
		t.Errorf("key list:\n%s", out)
	}

	// The log's own key changes; a kill right behind it changes nothing.
	person("ledger rotate-key")
	h.kill()
	h.start()
	h.verified()
	export := filepath.Join(h.dir, "log.tar")
	h.must("audit", "export", "-o", export)
	h.must("audit", "verify", export, "--independent")
	for _, entry := range []string{"log.next", "checkpoint.new"} {
		if _, err := os.Stat(filepath.Join(h.state, "keys", entry)); err == nil {
			t.Errorf("%s is left", entry)
		}
	}
	if r := a.post(t, chatTongue.path, hi(chatTongue), "X-Gettier-Key", wide); r.status != 200 {
		t.Errorf("after a restart: %d %s", r.status, r.body)
	}
	person("key revoke wide")
	if r := a.post(t, chatTongue.path, hi(chatTongue), "X-Gettier-Key", wide); r.status != 401 || !strings.Contains(r.body, "revoked") {
		t.Errorf("after its end: %d %s", r.status, r.body)
	}
	// For this user as well: a key that does not count is no key.
	if r := h.agent(h.project).post(t, chatTongue.path, hi(chatTongue), "X-Gettier-Key", wide); r.status != 401 {
		t.Errorf("our own, with a key that was revoked: %d", r.status)
	}
	if out := h.must("key", "list"); !strings.Contains(out, "revoked") || !strings.Contains(out, "uid 4242") || strings.Contains(out, "gt_live_") {
		t.Errorf("key list:\n%s", out)
	}
}
