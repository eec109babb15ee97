package sensors

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/ledger/lemma"
)

// house is a state directory, a user-level file and one project.
type house struct {
	t     testing.TB
	state string
	user  string
	root  string
	reg   *Registry

	mu     sync.Mutex
	events []lemma.Body
}

func newHouse(t testing.TB) *house {
	t.Helper()
	base := testDir(t)
	h := &house{t: t, state: filepath.Join(base, "state"), user: filepath.Join(base, "config", "sensors.yaml"), root: filepath.Join(base, "shop")}
	for _, d := range []string{h.state, filepath.Dir(h.user), filepath.Join(h.root, ".gettier")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h *house) options() Options {
	return Options{
		StateDir: h.state, Files: []string{h.user}, Projects: []Project{{Name: "shop", Root: h.root}},
		Record: func(b lemma.Body) { h.mu.Lock(); h.events = append(h.events, b); h.mu.Unlock() },
	}
}

func (h *house) open(edit ...func(*Options)) *Registry {
	h.t.Helper()
	o := h.options()
	for _, e := range edit {
		e(&o)
	}
	r, err := Open(o)
	if err != nil {
		h.t.Fatal(err)
	}
	h.reg = r
	return r
}

func (h *house) project() string { return ProjectFile(h.root) }

// write puts sensors into a file by an atomic rename.
func (h *house) write(path, text string) {
	h.t.Helper()
	if err := writeAtomic(path, []byte("version: 1\n"+text)); err != nil {
		h.t.Fatal(err)
	}
}

// drain returns the events so far, one line each.
func (h *house) drain() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, e := range h.events {
		switch e := e.(type) {
		case lemma.RegistryLoaded:
			out = append(out, fmt.Sprintf("loaded %s n=%d pending=%v changed=%v", filepath.Base(filepath.Dir(e.File)), e.Sensors, e.Pending, e.Changed))
		case lemma.RegistryRejected:
			out = append(out, fmt.Sprintf("rejected %s:%d %s", filepath.Base(e.File), e.Line, e.Reason))
		case lemma.RegistryApproved:
			out = append(out, fmt.Sprintf("approved %s %v by %s", filepath.Base(filepath.Dir(e.File)), e.Sensors, e.By.Via))
		}
	}
	h.events = nil
	return out
}

func (h *house) expect(want ...string) {
	h.t.Helper()
	if diff := cmp.Diff(want, h.drain()); diff != "" {
		h.t.Errorf("events (-want +got):\n%s", diff)
	}
}

func (h *house) approve(ids ...string) {
	h.t.Helper()
	if _, err := h.reg.Approve(h.t.Context(), ids, "", lemma.Answerer{Via: "tui"}); err != nil {
		h.t.Fatal(err)
	}
}

// inForce spells a view: id=command, then !id: reason.
func (h *house) inForce(root string) string {
	v := h.reg.View(root)
	var out []string
	for _, s := range v.Sensors {
		var words []string
		for _, w := range s.Argv {
			words = append(words, w.Text)
		}
		out = append(out, s.Qualified()+"="+strings.Join(words, " "))
	}
	for _, id := range []string{"a", "b", "c"} {
		if why, ok := v.Pending[id]; ok {
			out = append(out, "!"+id+": "+why)
		}
	}
	return strings.Join(out, "; ")
}

func (h *house) sees(want string) {
	h.t.Helper()
	if got := h.inForce(h.root); got != want {
		h.t.Errorf("in force: %q, want %q", got, want)
	}
}

func (h *house) state1(id string) State {
	h.t.Helper()
	for _, s := range h.reg.States() {
		if s.ID == id {
			return s
		}
	}
	h.t.Fatalf("no state of %s", id)
	return State{}
}

func sensor(id, command string) string {
	return fmt.Sprintf("  - { id: %s, command: %q, effects: none, extract: [x] }\n", id, command)
}

func TestLifeOfASensor(t *testing.T) {
	h := newHouse(t)
	h.write(h.project(), "sensors:\n"+sensor("a", "one"))
	r := h.open()
	h.expect("loaded .gettier n=1 pending=[a] changed=[]")
	h.sees("!a: not approved yet")
	if w := r.View(h.root).Waiting; len(w) != 1 || w[0].ID != "a" {
		t.Errorf("waiting: %v", w)
	}
	if s := h.state1("a"); s.State != Pending || s.InForce || s.Line != 3 {
		t.Errorf("%+v", s)
	}

	h.approve("a")
	h.expect("approved .gettier [a] by tui")
	h.sees("project/shop/a=one")

	// An edit is loaded and compared at once; the approved definition stays.
	h.write(h.project(), "sensors:\n"+sensor("a", "two"))
	r.Reload(t.Context())
	h.expect("loaded .gettier n=1 pending=[] changed=[a]")
	h.sees("project/shop/a=one")
	if s := h.state1("a"); s.State != Changed || !s.InForce || s.Hash == s.Pinned {
		t.Errorf("%+v", s)
	}
	d, err := r.Diff("a")
	if err != nil || !strings.Contains(d.Text, "\n- command: [\"one\"]\n+ command: [\"two\"]\n  effects: \"none\"\n") || !strings.Contains(d.Text, "  timeout: 10\n") {
		t.Errorf("%v\n%s", err, d.Text)
	}

	// Taking a sensor out of the file does not take it out of force.
	h.write(h.project(), "sensors: []\n")
	r.Reload(t.Context())
	h.expect("loaded .gettier n=0 pending=[] changed=[a]")
	h.sees("project/shop/a=one")
	if err := os.RemoveAll(filepath.Dir(h.project())); err != nil {
		t.Fatal(err)
	}
	r.Reload(t.Context())
	h.expect("loaded .gettier n=0 pending=[] changed=[a]")
	h.sees("project/shop/a=one")
	if s := h.state1("a"); s.State != Removed || !s.InForce || s.Sensor == nil {
		t.Errorf("%+v", s)
	}

	// A person can.
	h.approve("project/shop/a")
	h.expect("approved .gettier [a] by tui")
	h.sees("")
	r.Reload(t.Context())
	h.expect()
}

func TestApprovalIsBoundToWhatWasSeen(t *testing.T) {
	h := newHouse(t)
	h.write(h.project(), "sensors:\n"+sensor("a", "one"))
	r := h.open()
	seen := h.state1("a").Hash[:12]
	h.write(h.project(), "sensors:\n"+sensor("a", "rm -rf x"))
	r.Reload(t.Context())
	if _, err := r.Approve(t.Context(), []string{"a@" + seen}, "", lemma.Answerer{}); err == nil || !strings.Contains(err.Error(), "changed since") {
		t.Errorf("approved what nobody saw: %v", err)
	}
	for _, ids := range [][]string{nil, {"zzz"}, {"a@" + seen, "zzz"}} {
		if _, err := r.Approve(t.Context(), ids, "", lemma.Answerer{}); err == nil {
			t.Errorf("Approve(%q) succeeds", ids)
		}
	}
	if _, err := r.Approve(t.Context(), []string{"a"}, h.user, lemma.Answerer{}); err == nil {
		t.Error("approved in another file than named")
	}
	h.sees("!a: not approved yet")
	h.approve("a@" + h.state1("a").Hash[:12])
	h.sees("project/shop/a=rm -rf x")
}

func TestNearestShadows(t *testing.T) {
	h := newHouse(t)
	h.write(h.user, "sensors:\n"+sensor("a", "mine")+sensor("b", "mine"))
	h.write(h.project(), "sensors:\n"+sensor("a", "theirs"))
	h.open()
	h.approve("user/a", "b")
	h.sees("user/a=mine; user/b=mine; !a: not approved yet")
	h.approve("project/shop/a")
	h.sees("project/shop/a=theirs; user/b=mine")
	if got := h.inForce(""); got != "user/a=mine; user/b=mine" {
		t.Errorf("without a project: %q", got)
	}
	if got := h.inForce("/another/root"); got != "user/a=mine; user/b=mine" {
		t.Errorf("in another root: %q", got)
	}
}

func TestBadFileNeverReplacesAGoodOne(t *testing.T) {
	h := newHouse(t)
	h.write(h.user, "sensors:\n"+sensor("a", "one"))
	r := h.open()
	h.approve("a")
	h.drain()
	for _, bad := range []string{"sensors:\n  - { id: a, command: 'ls | wc' }\n", "sensors: [", ""} {
		if bad == "" {
			if err := os.WriteFile(h.user, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		} else {
			h.write(h.user, bad)
		}
		r.Reload(t.Context())
		r.Reload(t.Context()) // the same content is no second event
		got := h.drain()
		if len(got) != 1 || !strings.HasPrefix(got[0], "rejected sensors.yaml:") {
			t.Errorf("events after %q: %q", bad, got)
		}
		h.sees("user/a=one")
		if f := r.Files()[1]; len(f.Problems) == 0 || f.Version == "" || f.Sensors != 1 {
			t.Errorf("%+v", f)
		}
		if s := r.States()[0]; s.State != Broken || s.ID != "" || s.Reason == "" {
			t.Errorf("%+v", s)
		}
	}
	h.write(h.user, "sensors:\n"+sensor("a", "one"))
	r.Reload(t.Context())
	h.expect("loaded config n=1 pending=[] changed=[]")
	if f := r.Files()[1]; len(f.Problems) > 0 {
		t.Errorf("%+v", f)
	}
}

// TestBrokenAtStart: with nothing good in memory, the approvals still are.
func TestBrokenAtStart(t *testing.T) {
	h := newHouse(t)
	h.write(h.user, "sensors:\n"+sensor("a", "one"))
	h.open()
	h.approve("a")
	h.write(h.user, "sensors: [\n")
	h.drain()
	h.open()
	if got := h.drain(); len(got) != 1 || !strings.HasPrefix(got[0], "rejected") {
		t.Errorf("%q", got)
	}
	h.sees("user/a=one")
}

func TestJudgeExamplesAreRunAtLoad(t *testing.T) {
	h := newHouse(t)
	text := "sensors:\n  - id: a\n    command: x\n    effects: none\n    extract: [{ name: limit, kv: limit, type: bytes }]\n    judge:\n" +
		"      - when: '(?i)accepts (?P<n>\\d+ ?MB)'\n        key: limit\n        operator: \">=\"\n        value: \"{{n}}\"\n        examples:\n" +
		"          - { claim: it accepts 10 MB, measured: 20m, verdict: %s }\n"
	h.write(h.user, fmt.Sprintf(text, "contradicted"))
	h.open()
	if got := h.drain(); len(got) != 1 || !strings.HasPrefix(got[0], "rejected sensors.yaml:13 ") {
		t.Errorf("%q", got)
	}
	h.write(h.user, fmt.Sprintf(text, "confirmed"))
	h.reg.Reload(t.Context())
	h.expect("loaded config n=1 pending=[a] changed=[]")
}

func TestAutoApproveIsForTheOwnFileOnly(t *testing.T) {
	h := newHouse(t)
	h.write(h.user, "sensors:\n"+sensor("a", "one"))
	h.write(h.project(), "sensors:\n"+sensor("b", "theirs"))
	r := h.open(func(o *Options) { o.AutoApprove = true })
	h.expect("loaded .gettier n=1 pending=[b] changed=[]", "approved config [a] by auto_approve", "loaded config n=1 pending=[] changed=[]")
	h.sees("user/a=one; !b: not approved yet")
	h.write(h.user, "sensors:\n"+sensor("a", "two"))
	r.Reload(t.Context())
	h.sees("user/a=two; !b: not approved yet")
	if err := os.Remove(h.user); err != nil { // no edit: whoever did it takes nothing away
		t.Fatal(err)
	}
	r.Reload(t.Context())
	h.sees("user/a=two; !b: not approved yet")
	h.write(h.user, "sensors: []\n")
	r.Reload(t.Context())
	h.sees("!b: not approved yet")
}

func TestScriptsArePinned(t *testing.T) {
	h := newHouse(t)
	path := script(t, h.root, "check.sh", "echo x 1")
	data := filepath.Join(h.root, "data.txt")
	if err := os.WriteFile(data, []byte("x 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.write(h.project(), "sensors:\n"+sensor("a", "sh check.sh")+sensor("b", "cat data.txt"))
	r := h.open()
	h.approve("a", "b")
	both := "project/shop/a=sh check.sh; project/shop/b=cat data.txt"
	h.sees(both)
	v := r.View(h.root)
	run := NewRunner(RunnerOptions{Permit: r.Permit})
	if rd := run.Run(t.Context(), []Request{{Sensor: v.Sensors[0], Root: h.root}})[0]; rd.Reason != "" || rd.Evidence.Values[0].Text != "1" {
		t.Fatalf("%s %s", rd.Reason, rd.Detail)
	}

	// Data may change, that is what is measured; a script may not. The view
	// that was taken before does not help.
	if err := os.WriteFile(data, []byte("x 2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.sees(both)
	script(t, h.root, "check.sh", "echo x 2; touch stolen")
	h.sees("project/shop/b=cat data.txt; !a: check.sh changed since the approval")
	if s := h.state1("a"); s.State != Pending || s.InForce {
		t.Errorf("%+v", s)
	}
	rd := run.Run(t.Context(), []Request{{Sensor: v.Sensors[0], Root: h.root}})[0]
	if rd.Reason != ReasonPermission || !strings.Contains(rd.Detail, "check.sh changed") {
		t.Errorf("%s %s", rd.Reason, rd.Detail)
	}
	if _, err := os.Stat(filepath.Join(h.root, "stolen")); err == nil {
		t.Error("the changed script ran")
	}
	h.approve("a")
	h.sees(both)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	h.sees("project/shop/b=cat data.txt; !a: check.sh is gone since the approval")
}

// TestScriptsOfTheOwnDirectory: a person's own script is pinned once, whatever
// projects come later; a script of the same name in a project is another one.
func TestScriptsOfTheOwnDirectory(t *testing.T) {
	h := newHouse(t)
	script(t, filepath.Dir(h.user), "mine.sh", "echo x 1")
	h.write(h.user, "sensors:\n  - { id: a, command: sh mine.sh, cwd: config, effects: none, extract: [x] }\n"+sensor("b", "sh theirs.sh"))
	r := h.open(func(o *Options) { o.Projects = nil })
	h.approve("a", "b")
	script(t, h.root, "theirs.sh", "echo x 1")
	r.Configure([]string{h.user}, []Project{{Name: "shop", Root: h.root}}, false)
	h.sees("user/a=sh mine.sh; !b: theirs.sh is new since the approval")
	if got := h.inForce(""); got != "user/a=sh mine.sh; user/b=sh theirs.sh" {
		t.Errorf("%q", got)
	}
	h.approve("b")
	script(t, filepath.Dir(h.user), "mine.sh", "echo x 2")
	h.sees("user/b=sh theirs.sh; !a: " + filepath.Join(filepath.Dir(h.user), "mine.sh") + " changed since the approval")
}

func TestSteeringFilesArePinned(t *testing.T) {
	h := newHouse(t)
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(h.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("Makefile", "x:\n\techo x 1\n")
	put("tools/probe.py", "print('x 1')\n")
	put("mod.py", "print('x 1')\n")
	h.write(h.project(), "sensors:\n"+sensor("a", "make x")+sensor("b", "python3 tools/probe.py")+sensor("c", "python3 -m mod"))
	h.open()
	h.approve("a", "b", "c")
	h.sees("project/shop/a=make x; project/shop/b=python3 tools/probe.py; project/shop/c=python3 -m mod")
	put("Makefile", "x:\n\techo x 2\n")
	put("tools/json.py", "") // would be imported instead of the library's
	put("os.py", "")
	h.sees("!a: Makefile changed since the approval; !b: tools/json.py is new since the approval; !c: os.py is new since the approval")
}

func TestPremisesAndMatchingArePinnedToo(t *testing.T) {
	h := newHouse(t)
	text := "sensors:\n" + sensor("a", "one") + "matching: { db.target: [%q] }\npremises:\n" +
		"  - { id: p, on_action: { program: prisma }, claim: c, sensor: a, key: x, operator: \"=\", value: %s }\n" +
		"  - { id: q, on_action: { program: prisma }, claim: c, sensor: nowhere, key: x, operator: \"=\", value: v }\n"
	h.write(h.project(), fmt.Sprintf(text, "target database", "local"))
	r := h.open()
	h.expect("loaded .gettier n=1 pending=[a premise:p premise:q matching] changed=[]")
	if v := r.View(h.root); len(v.Premises) != 0 || len(v.Matching) != 0 || v.Inactive["p"] == "" || v.Pending["matching"] == "" {
		t.Errorf("%+v", v)
	}
	h.approve("premise:p", "premise:q", "matching")
	if v := r.View(h.root); len(v.Premises) != 0 || !strings.Contains(v.Inactive["p"], "not approved yet") || !strings.Contains(v.Inactive["q"], "not registered") {
		t.Errorf("a premise is active without its sensor: %+v", v)
	}
	h.approve("a")
	h.write(h.project(), fmt.Sprintf(text, "the", "remote"))
	r.Reload(t.Context())
	v := r.View(h.root)
	if len(v.Premises) != 1 || v.Premises[0].Value != "local" || v.Matching["db.target"][0] != "target database" {
		t.Errorf("%+v", v)
	}
	h.write(h.project(), "sensors: []\n")
	r.Reload(t.Context())
	if v := r.View(h.root); len(v.Premises) != 1 || len(v.Sensors) != 1 {
		t.Errorf("an edit took a premise out of force: %+v", v)
	}
}

func TestUserFilesShareTheirLevel(t *testing.T) {
	h := newHouse(t)
	second := filepath.Join(filepath.Dir(h.user), "more.yaml")
	h.write(h.user, "sensors:\n"+sensor("a", "one"))
	h.write(second, "sensors:\n"+sensor("a", "two")+sensor("b", "two"))
	r := h.open(func(o *Options) { o.Files = append(o.Files, second) })
	if _, err := r.Approve(t.Context(), []string{"a"}, "", lemma.Answerer{}); err == nil || !strings.Contains(err.Error(), "stands in 2 files") {
		t.Errorf("%v", err)
	}
	if _, err := r.Approve(t.Context(), []string{"a", "b"}, second, lemma.Answerer{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Approve(t.Context(), []string{"a"}, h.user, lemma.Answerer{}); err != nil {
		t.Fatal(err)
	}
	h.sees("user/a=one; user/b=two; !a: the id is taken by " + h.user)
	r.Configure([]string{second}, nil, false)
	if got := h.inForce(""); got != "user/a=two; user/b=two" {
		t.Errorf("%q", got)
	}
}

func TestLockIsSignedAndNeverGoesBack(t *testing.T) {
	h := newHouse(t)
	h.write(h.user, "sensors:\n"+sensor("a", "one"))
	r := h.open()
	h.approve("a")
	path := filepath.Join(h.state, "sensors.lock")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h.write(h.user, "sensors:\n"+sensor("a", "two"))
	r.Reload(t.Context())
	h.approve("a")
	h.drain()
	for name, content := range map[string][]byte{
		"older": old, "edited": []byte(strings.Replace(string(old), `"one"`, `"evil"`, 1)), "empty": {}, "gone": nil,
	} {
		if content == nil {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Reload(t.Context())
		if got := h.drain(); len(got) != 1 || !strings.HasPrefix(got[0], "rejected sensors.lock:1 ") {
			t.Errorf("%s: %q", name, got)
		}
		h.sees("user/a=two")
		if s := r.States()[0]; s.State != Broken || !strings.HasSuffix(s.File, "sensors.lock") {
			t.Errorf("%s: %+v", name, s)
		}
	}
	// An approval by a person writes a sound one again.
	h.write(h.user, "sensors:\n"+sensor("a", "three"))
	r.Reload(t.Context())
	h.approve("a")
	h.open()
	h.sees("user/a=three")
	// Another installation's lock is not this one's.
	other := newHouse(t)
	sound, _ := os.ReadFile(path)
	if err := os.WriteFile(filepath.Join(other.state, "sensors.lock"), sound, 0o600); err != nil {
		t.Fatal(err)
	}
	other.user = h.user
	other.open()
	other.sees("!a: not approved yet")
}

func TestKeyMustBePrivate(t *testing.T) {
	h := newHouse(t)
	h.open()
	path := filepath.Join(h.state, "keys", "lock")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode(), err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(h.options()); err == nil || !strings.Contains(err.Error(), "0600") {
		t.Errorf("a key that all can read is used: %v", err)
	}
}

func TestApproveAllOffline(t *testing.T) {
	h := newHouse(t)
	script(t, h.root, "check.sh", "echo x 1")
	h.write(h.project(), "sensors:\n"+sensor("a", "sh check.sh")+sensor("b", "true"))
	link := filepath.Join(filepath.Dir(h.root), "link")
	if err := os.Symlink(h.root, link); err != nil {
		t.Fatal(err)
	}
	names, err := ApproveAll(h.state, ProjectFile(link), "project/shop")
	if err != nil || len(names) != 2 {
		t.Fatal(names, err)
	}
	h.open()
	h.sees("project/shop/a=sh check.sh; project/shop/b=true")
	h.drain()
	// A running daemon takes an approval that another process made.
	h.write(h.project(), "sensors:\n"+sensor("c", "true"))
	if _, err := ApproveAll(h.state, h.project(), "project/shop"); err != nil {
		t.Fatal(err)
	}
	h.reg.Reload(t.Context())
	h.expect("approved .gettier [c] by cli", "loaded .gettier n=1 pending=[] changed=[a b]")
	h.sees("project/shop/c=true; project/shop/a=sh check.sh; project/shop/b=true")
	h.write(h.project(), "sensors: [")
	if _, err := ApproveAll(h.state, h.project(), "project/shop"); err == nil || !strings.Contains(err.Error(), "^") {
		t.Errorf("a faulty file: %v", err)
	}
}

func TestLastReadingShows(t *testing.T) {
	h := newHouse(t)
	h.write(h.user, "sensors:\n"+sensor("a", "echo x 7"))
	r := h.open()
	h.approve("a")
	rds := NewRunner(RunnerOptions{Permit: r.Permit}).Run(t.Context(), []Request{{Sensor: r.View("").Sensors[0]}})
	r.Noted(rds...)
	if s := h.state1("a"); s.Last == nil || s.Last.Evidence.Values[0].Text != "7" || s.Last.Invocation.Cwd != filepath.Dir(h.user) {
		t.Errorf("%+v", s.Last)
	}
}
