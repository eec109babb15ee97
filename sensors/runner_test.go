package sensors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/spec"
)

// parse makes the sensors of a registry whose file stands in dir.
func parse(t testing.TB, dir, text string) []*spec.Sensor {
	t.Helper()
	reg, problems := spec.Parse(filepath.Join(dir, "sensors.yaml"), "user", []byte("version: 1\nsensors:\n"+text))
	if problems != nil {
		t.Fatal(spec.Explain("sensors.yaml", []byte("version: 1\nsensors:\n"+text), problems))
	}
	return reg.Sensors
}

func script(t testing.TB, dir, name, body string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func testDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// waitFor polls a condition that another process makes true.
func waitFor(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		case <-tick.C:
		}
	}
}

func runOne(t *testing.T, dir, body, extra string, edit func(*Request)) Reading {
	t.Helper()
	script(t, dir, "probe.sh", body)
	s := parse(t, dir, "- id: probe\n  command: ./probe.sh\n  effects: none\n"+extra)[0]
	q := Request{Sensor: s, Root: dir}
	if edit != nil {
		edit(&q)
	}
	return NewRunner(RunnerOptions{OriginKey: []byte("key")}).Run(t.Context(), []Request{q})[0]
}

func TestRunMeasures(t *testing.T) {
	dir := testDir(t)
	rd := runOne(t, dir, `echo "limit 20m"; echo noise >&2`, "  extract: [limit]\n", nil)
	if reason, failed := Failed(rd); failed {
		t.Fatal(reason, rd.Detail)
	}
	inv := rd.Invocation
	if inv.SensorID != "probe" || inv.File != "user" || inv.RegistryVersion == "" || inv.Cwd != dir || inv.ExitCode != 0 || inv.Sandbox != "none" {
		t.Errorf("%+v", inv)
	}
	if !strings.HasPrefix(inv.ID, "i_") || inv.StartedAt == "" || len(inv.OutputHash) != 64 || inv.OutputBlob != inv.OutputHash || len(inv.OriginMAC) != 64 {
		t.Errorf("%+v", inv)
	}
	if string(rd.Output) != "limit 20m\n" {
		t.Errorf("output %q", rd.Output)
	}
	if len(rd.Evidence.Values) != 1 || rd.Evidence.Values[0].Text != "20m" || rd.Evidence.Invocation != inv.ID {
		t.Errorf("%+v", rd.Evidence)
	}
}

func TestReasons(t *testing.T) {
	for _, tt := range []struct {
		name, body, extra, reason, detail string
		edit                              func(*Request)
	}{
		{name: "exit", body: "echo limit 1m; echo broken >&2; exit 3", reason: ReasonExit, detail: "exit code 3: broken"},
		{name: "signal", body: "kill -9 $$", reason: ReasonSignal, detail: "killed"},
		{name: "timeout", body: "echo limit 1m; exec sleep 60", extra: "  timeout: 1\n", reason: ReasonTimeout, detail: "longer than 1s"},
		{name: "output_cap", body: "while :; do echo limit 1m; done", extra: "  max_output_bytes: 1000\n", reason: ReasonOutputCap, detail: "more than 1000 bytes"},
		{name: "exactly the cap", body: "printf 0123456789", extra: "  max_output_bytes: 10\n"},
		{name: "one byte more", body: "printf 0123456789a", extra: "  max_output_bytes: 10\n", reason: ReasonOutputCap},
		{name: "exit_ok", body: "exit 1", extra: "  exit_ok: [0, 1]\n"},
		{name: "a child keeps the output", body: "setsid sh -c 'touch up; exec sleep 3' & while [ ! -e up ]; do sleep 0.02; done", reason: ReasonTimeout, detail: "a child kept the output open"},
		{name: "no project", body: "true", extra: "  cwd: project\n", reason: ReasonParam, edit: func(q *Request) { q.Root = "" }},
		{name: "agent unknown", body: "true", extra: "  env: [DATABASE_URL]\n  env_from: agent\n", reason: ReasonParam},
		{name: "no parameter of that name", body: "true", reason: ReasonParam, edit: func(q *Request) { q.Params = map[string]string{"p": "1"} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rd := runOne(t, testDir(t), tt.body, "  extract: [limit]\n"+tt.extra, tt.edit)
			reason, failed := Failed(rd)
			if reason != tt.reason || failed != (tt.reason != "") || !strings.Contains(rd.Detail, tt.detail) {
				t.Fatalf("reason %q (%s), want %q (%s)", reason, rd.Detail, tt.reason, tt.detail)
			}
			if failed && len(rd.Evidence.Values) > 0 {
				t.Errorf("a run that failed has evidence: %+v", rd)
			}
			if failed && reason != ReasonExit && (rd.Output != nil || rd.Invocation.OutputHash != "") {
				t.Errorf("output that may be cut is kept: %+v", rd)
			}
			if reason == ReasonExit && (string(rd.Output) != "limit 1m\n" || rd.Invocation.OutputBlob == "") {
				t.Errorf("output for people: %q", rd.Output)
			}
			if failed && (rd.Invocation.ID == "" || rd.Invocation.StartedAt == "") {
				t.Errorf("a failed run is not identified: %+v", rd.Invocation)
			}
		})
	}
}

func TestProgramsThatCannotRun(t *testing.T) {
	dir := testDir(t)
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	setuid := script(t, dir, "raises", "true")
	if err := os.Chmod(setuid, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ command, reason string }{
		{"no-such-program-here", ReasonNotFound},
		{"./missing", ReasonNotFound},
		{"./plain", ReasonPermission},
		{"./raises", ReasonPermission},
		{dir, ReasonPermission},
	} {
		s := parse(t, dir, fmt.Sprintf("- id: a\n  effects: none\n  command: [%q]\n", tt.command))[0]
		rd := NewRunner(RunnerOptions{}).Run(t.Context(), []Request{{Sensor: s, Root: dir}})[0]
		if reason, _ := Failed(rd); reason != tt.reason {
			t.Errorf("%s: %q (%s), want %q", tt.command, reason, rd.Detail, tt.reason)
		}
	}
	if reason, failed := Failed(Reading{}); !failed || reason == "" {
		t.Error("an empty reading counts as evidence")
	}
}

func alive(pidFile string) (int, bool) {
	b, err := os.ReadFile(pidFile)
	if err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid, err == nil && !ended(pid)
}

// ended counts a zombie as ended: whoever has to reap it may take its time.
func ended(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || bytes.Contains(b, []byte(") Z "))
}

// TestNothingIsLeftBehind: children of the group end with the sensor, whether
// it ends in time, ignores TERM, or its caller goes away.
func TestNothingIsLeftBehind(t *testing.T) {
	for name, body := range map[string]string{
		"ends":         "sleep 60 >/dev/null 2>&1 & echo $! >child.pid",
		"ignores TERM": "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ >child.pid; while :; do sleep 1; done' & wait",
	} {
		t.Run(name, func(t *testing.T) {
			dir := testDir(t)
			began := time.Now()
			rd := runOne(t, dir, body, "  timeout: 1\n", nil)
			if d := time.Since(began); d > 10*time.Second {
				t.Errorf("took %v: %s", d, rd.Reason)
			}
			waitFor(t, "the child's end", func() bool { pid, up := alive(filepath.Join(dir, "child.pid")); return pid > 0 && !up })
		})
	}
	t.Run("the caller goes", func(t *testing.T) {
		dir := testDir(t)
		script(t, dir, "probe.sh", "echo $$ >child.pid; sleep 60")
		s := parse(t, dir, "- id: probe\n  command: ./probe.sh\n  effects: none\n")[0]
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer cancel()
			waitFor(t, "the start", func() bool { _, up := alive(filepath.Join(dir, "child.pid")); return up })
		}()
		rd := NewRunner(RunnerOptions{}).Run(ctx, []Request{{Sensor: s, Root: dir}})[0]
		if reason, _ := Failed(rd); reason != ReasonTimeout || !strings.Contains(rd.Detail, "stopped") {
			t.Errorf("%s (%s)", reason, rd.Detail)
		}
		if _, up := alive(filepath.Join(dir, "child.pid")); up {
			t.Error("the process lives on")
		}
	})
}

func TestEnvironmentIsScrubbed(t *testing.T) {
	dir := testDir(t)
	own := map[string]string{"PATH": ".:/usr/bin::/bin:bin", "HOME": "/home/x", "LANG": "C", "PGHOST": "daemon", "API_SECRET": "no", "LD_PRELOAD": "no"}
	look := func(n string) (string, bool) { v, ok := own[n]; return v, ok }
	agent := func(n string) (string, bool) { return "agent", n == "PGHOST" }
	for _, tt := range []struct {
		extra string
		want  string
	}{
		{"", "HOME=/home/x\nLANG=C\nPATH=/usr/bin:/bin\n"},
		{"  env: [PGHOST, ABSENT]\n", "HOME=/home/x\nLANG=C\nPATH=/usr/bin:/bin\nPGHOST=daemon\n"},
		{"  env: [PGHOST, ABSENT]\n  env_from: agent\n", "HOME=/home/x\nLANG=C\nPATH=/usr/bin:/bin\nPGHOST=agent\n"},
	} {
		s := parse(t, dir, "- id: a\n  command: /usr/bin/env\n  effects: none\n"+tt.extra)[0]
		rd := NewRunner(RunnerOptions{Env: look}).Run(t.Context(), []Request{{Sensor: s, Root: dir, Env: agent}})[0]
		if diff := cmp.Diff(tt.want, string(rd.Output)); diff != "" {
			t.Errorf("%s %s", rd.Reason, diff)
		}
	}
}

func TestOwnSessionAndNoInput(t *testing.T) {
	dir := testDir(t)
	rd := runOne(t, dir, `cat; if read -r line; then echo got; fi; if [ -t 0 ] || sh -c ': </dev/tty' 2>/dev/null; then echo tty; fi; echo end`, "", nil)
	if string(rd.Output) != "end\n" {
		t.Errorf("%q %s", rd.Output, rd.Detail)
	}
}

func TestParametersAreOneArgument(t *testing.T) {
	dir := testDir(t)
	script(t, dir, "args.sh", `for a in "$@"; do echo "[$a]"; done`)
	s := parse(t, dir, "- id: a\n  command: ./args.sh {{p}} --x={{p}}\n  effects: none\n  params:\n    p: { type: string, pattern: '.*' }\n")[0]
	rd := NewRunner(RunnerOptions{}).Run(t.Context(), []Request{{Sensor: s, Root: dir, Params: map[string]string{"p": "a b; $(id) `id` 'q' *"}}})[0]
	want := "[a b; $(id) `id` 'q' *]\n[--x=a b; $(id) `id` 'q' *]\n"
	if string(rd.Output) != want {
		t.Errorf("%q %s", rd.Output, rd.Detail)
	}
}

// TestWidthAndAlone runs processes that report whom they overlap with.
func TestWidthAndAlone(t *testing.T) {
	dir := testDir(t)
	script(t, dir, "probe.sh", `mkdir run.$1; ls -d run.* | tr '\n' ' '; sleep 0.1; rmdir run.$1`)
	var text strings.Builder
	for i := range 10 {
		effects := "none"
		if i%4 == 1 {
			effects = "mutates"
		}
		fmt.Fprintf(&text, "- id: s%d\n  command: ./probe.sh %s%d\n  effects: %s\n", i, effects, i, effects)
	}
	var reqs []Request
	for _, s := range parse(t, dir, text.String()) {
		reqs = append(reqs, Request{Sensor: s, Root: dir})
	}
	most := 0
	for _, rd := range NewRunner(RunnerOptions{Width: 3}).Run(t.Context(), reqs) {
		if reason, failed := Failed(rd); failed {
			t.Fatal(reason, rd.Detail)
		}
		with := strings.Fields(string(rd.Output))
		most = max(most, len(with))
		if strings.Contains(string(rd.Output), "mutates") && len(with) != 1 {
			t.Errorf("%s did not run alone: %q", rd.Sensor.ID, rd.Output)
		}
	}
	if most > 3 || most < 2 {
		t.Errorf("at most %d ran together, want 2 or 3", most)
	}
}

func TestIdenticalRunsAreShared(t *testing.T) {
	dir := testDir(t)
	script(t, dir, "probe.sh", `echo run >>runs; while [ ! -e go ]; do sleep 0.02; done; echo "v $1"`)
	text := "- id: a\n  command: ./probe.sh {{p}}\n  effects: %s\n  extract: [v]\n  params:\n    p: { type: identifier, default: x }\n"
	s := parse(t, dir, fmt.Sprintf(text, "none"))[0]
	r := NewRunner(RunnerOptions{Width: 8})
	gone, cancel := context.WithCancel(t.Context())
	first := make(chan Reading, 1) // its one reading
	go func() { first <- r.Run(gone, []Request{{Sensor: s, Root: dir}})[0] }()
	waitFor(t, "the first start", func() bool { b, _ := os.ReadFile(filepath.Join(dir, "runs")); return len(b) > 0 })
	rest := make(chan []Reading, 1)
	go func() {
		rest <- r.Run(t.Context(), []Request{{Sensor: s, Root: dir}, {Sensor: s, Root: dir}, {Sensor: s, Root: dir, Params: map[string]string{"p": "y"}}})
	}()
	waitFor(t, "the other parameter's start", func() bool { b, _ := os.ReadFile(filepath.Join(dir, "runs")); return len(b) == 8 })
	waitFor(t, "three who wait", func() bool {
		r.flights.mu.Lock()
		defer r.flights.mu.Unlock()
		n := 0
		for _, f := range r.flights.open {
			n += f.waiting
		}
		return n == 4
	})
	cancel() // who came first leaves; the run goes on for the others
	if rd := <-first; rd.Reason != ReasonTimeout {
		t.Errorf("who left got %q", rd.Reason)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got := <-rest
	if got[0].Invocation.ID != got[1].Invocation.ID || got[0].Invocation.ID == got[2].Invocation.ID || got[0].Reason != "" {
		t.Errorf("%q %q %q, %s", got[0].Invocation.ID, got[1].Invocation.ID, got[2].Invocation.ID, got[0].Detail)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "runs")); len(b) != 8 {
		t.Errorf("%d runs, want 2", len(b)/4)
	}
}

func TestSecretsDoNotLeave(t *testing.T) {
	dir := testDir(t)
	secret := "ghp_" + "x9Kq2LmV7tRz" + "4WpB8sYc1NdF" + "6GhJ3aEuT5oi"
	rd := runOne(t, dir, "echo 'token "+secret+"'; echo 'limit 20m'; echo 'url postgres://u:"+"hunter2hunter2"+"@db/x'", "  extract: [token, limit, url]\n", nil)
	all := fmt.Sprintf("%+v", rd)
	if strings.Contains(all, secret) || strings.Contains(all, "hunter2") || strings.Contains(string(rd.Output), secret) {
		t.Errorf("a secret is left: %s", all)
	}
	if len(rd.Hits) == 0 || rd.Invocation.OriginMAC != "" {
		t.Errorf("hits %v, mac %q", rd.Hits, rd.Invocation.OriginMAC)
	}
	v := map[string]spec.Value{}
	for _, x := range rd.Evidence.Values {
		v[x.Key] = x
	}
	if v["token"].Problem == "" || v["url"].Problem == "" || v["limit"].Problem != "" || v["limit"].Text != "20m" {
		t.Errorf("a masked value must settle nothing, another one stays: %+v", v)
	}
}

func TestEnvValuesAreMasked(t *testing.T) {
	dir := testDir(t)
	rd := runOne(t, dir, `echo NODE_ENV=production; echo DB_NAME=shop; echo '["A_B=c d","X=1"]'; echo workers=4`,
		"  redact: [env_values]\n  redact_allow: [NODE_ENV]\n  extract: [NODE_ENV, DB_NAME, workers]\n", nil)
	want := "NODE_ENV=production\nDB_NAME=[redacted:env_value]\n[\"A_B=[redacted:env_value]\",\"X=[redacted:env_value]\"]\nworkers=4\n"
	if string(rd.Output) != want {
		t.Errorf("%s", rd.Output)
	}
	for _, v := range rd.Evidence.Values {
		if masked := v.Key == "DB_NAME"; masked != (v.Problem == "missing_value") || masked == (v.Text != "[redacted:env_value]") {
			t.Errorf("%+v", v)
		}
	}
}

func TestSecretSensorsTellPresenceOnly(t *testing.T) {
	dir := testDir(t)
	rd := runOne(t, dir, `echo "pw swordfish"`, "  sensitivity: secret\n  extract: [pw, other]\n", nil)
	if strings.Contains(fmt.Sprintf("%+v", rd), "swordfish") || rd.Output != nil || rd.Invocation.OutputHash != "" || rd.Invocation.OriginMAC != "" {
		t.Errorf("%+v", rd)
	}
	if v := rd.Evidence.Values; len(v) != 2 || v[0].Text != "true" || v[1].Text != "false" || v[0].Type != spec.Bool {
		t.Errorf("%+v", v)
	}
}

// TestFailuresDoNotTellSecrets: what a failing program says is redacted like
// any output, and of a secret sensor nothing is repeated.
func TestFailuresDoNotTellSecrets(t *testing.T) {
	for extra, want := range map[string]string{
		"  redact: [env_values]\n": "exit code 1: bad DB_NAME=[redacted:env_value]",
		"  sensitivity: secret\n":  "exit code 1",
	} {
		rd := runOne(t, testDir(t), `echo bad DB_NAME=swordfish >&2; exit 1`, extra, nil)
		if rd.Detail != want || strings.Contains(fmt.Sprintf("%+v %s", rd, rd.Output), "swordfish") {
			t.Errorf("%q, output %q", rd.Detail, rd.Output)
		}
	}
}

func TestPermitIsAskedForAllButDrafts(t *testing.T) {
	dir := testDir(t)
	script(t, dir, "probe.sh", "echo ran >>runs")
	s := parse(t, dir, "- id: a\n  command: ./probe.sh\n  effects: none\n")[0]
	var asked atomic.Int32
	r := NewRunner(RunnerOptions{Permit: func(*spec.Sensor, string, string) error { asked.Add(1); return errors.New("probe.sh changed") }})
	rd := r.Run(t.Context(), []Request{{Sensor: s, Root: dir}})[0]
	if rd.Reason != ReasonPermission || !strings.Contains(rd.Detail, "pending: probe.sh changed") {
		t.Errorf("%s (%s)", rd.Reason, rd.Detail)
	}
	if rd := r.Run(t.Context(), []Request{{Sensor: s, Root: dir, Draft: true}})[0]; rd.Reason != "" {
		t.Errorf("%s (%s)", rd.Reason, rd.Detail)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "runs")); string(b) != "ran\n" || asked.Load() != 1 {
		t.Errorf("runs %q, asked %d", b, asked.Load())
	}
}

func TestWorktree(t *testing.T) {
	base := testDir(t)
	root, tree, other := filepath.Join(base, "root"), filepath.Join(base, "tree"), filepath.Join(base, "other")
	for _, d := range []string{filepath.Join(root, ".git", "worktrees", "t"), filepath.Join(root, "sub"), filepath.Join(tree, "deep"), filepath.Join(other, ".git")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		filepath.Join(tree, ".git"):                             "gitdir: " + filepath.Join(root, ".git", "worktrees", "t") + "\n",
		filepath.Join(root, ".git", "worktrees", "t", "gitdir"): filepath.Join(tree, ".git") + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := parse(t, root, "- id: a\n  command: pwd\n  cwd: worktree\n  effects: none\n")[0]
	for _, tt := range []struct{ cwd, want string }{
		{filepath.Join(root, "sub"), root}, {root, root}, {filepath.Join(tree, "deep"), tree}, {other, ""}, {base, ""}, {"", ""},
	} {
		rd := NewRunner(RunnerOptions{}).Run(t.Context(), []Request{{Sensor: s, Root: root, Cwd: tt.cwd}})[0]
		if got := strings.TrimSpace(string(rd.Output)); got != tt.want || (tt.want == "") != (rd.Reason == ReasonParam) {
			t.Errorf("from %s: %q (%s %s), want %q", tt.cwd, got, rd.Reason, rd.Detail, tt.want)
		}
	}
	// A tree that only claims to belong to the project does not.
	if err := os.WriteFile(filepath.Join(root, ".git", "worktrees", "t", "gitdir"), []byte("/elsewhere/.git\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if rd := NewRunner(RunnerOptions{}).Run(t.Context(), []Request{{Sensor: s, Root: root, Cwd: tree}})[0]; rd.Reason != ReasonParam {
		t.Errorf("a foreign work tree is measured: %q", rd.Output)
	}
}

func TestRunsAs(t *testing.T) {
	other, err := user.Lookup("nobody")
	if err != nil || other.Uid == strconv.Itoa(os.Getuid()) {
		t.Skip("there is no user nobody here, or it runs this test")
	}
	text := "- id: a\n  command: [sh, -c, 'id -u; echo $HOME']\n  effects: none\n  cwd: /\n  runs_as: "
	run := func(name string) Reading {
		return NewRunner(RunnerOptions{}).Run(t.Context(), []Request{{Sensor: parse(t, "/", text+name+"\n")[0]}})[0]
	}
	rd := run("nobody")
	if os.Geteuid() != 0 { // a person's own daemon measures as itself, and says so
		if rd.Reason != "" || rd.Invocation.Sandbox != "none,runs_as:self" {
			t.Errorf("%s %s %q", rd.Reason, rd.Detail, rd.Invocation.Sandbox)
		}
		return
	}
	if want := other.Uid + "\n" + other.HomeDir + "\n"; string(rd.Output) != want || rd.Invocation.Sandbox != "none" {
		t.Errorf("%q (%s), want %q", rd.Output, rd.Detail, want)
	}
	if rd := run("no-such-user-here"); rd.Reason != ReasonRunsAs {
		t.Errorf("%s %s", rd.Reason, rd.Detail)
	}
}

func TestThreeFailuresBackOff(t *testing.T) {
	dir := testDir(t)
	script(t, dir, "probe.sh", `echo run >>runs; [ -e good ]`)
	s := parse(t, dir, "- id: a\n  command: ./probe.sh\n  effects: none\n")[0]
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var events []lemma.Body
	r := NewRunner(RunnerOptions{Now: func() time.Time { return now }, Record: func(b lemma.Body) { events = append(events, b) }})
	try := func(draft bool) Reading {
		return r.Run(t.Context(), []Request{{Sensor: s, Root: dir, Draft: draft}})[0]
	}
	runs := func() int { b, _ := os.ReadFile(filepath.Join(dir, "runs")); return len(b) / 4 }
	for range 5 {
		if reason, failed := Failed(try(false)); reason != ReasonExit || !failed {
			t.Errorf("%q", reason)
		}
	}
	if rd := try(false); runs() != 3 || len(events) != 1 || !strings.HasPrefix(rd.Detail, "backed off after 3 failures, tried again in 1m0s: exit code 1") {
		t.Errorf("%d runs, %v, %s", runs(), events, rd.Detail)
	}
	if try(true); runs() != 4 {
		t.Error("a person's try is not held back")
	}
	now = now.Add(backOffFor)
	if err := os.WriteFile(filepath.Join(dir, "good"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if rd := try(false); rd.Reason != "" || try(false).Reason != "" || runs() != 6 {
		t.Errorf("%s, %d runs", rd.Detail, runs())
	}
}

func TestBinds(t *testing.T) {
	dir := testDir(t)
	script(t, dir, "a.js", "")
	s := parse(t, dir, "- id: a\n  command: x {{p}}\n  effects: none\n  params: { p: { type: path, allow: '*.js' } }\n")[0]
	for claim, want := range map[string]bool{"a.js is small": true, "b.ts is small": false, "": false} {
		if got := Binds(Request{Sensor: s, Root: dir, Claim: claim}); got != want {
			t.Errorf("%q: %v", claim, got)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	s := parse(b, b.TempDir(), "- id: a\n  command: \"true\"\n  effects: none\n")[0]
	r := NewRunner(RunnerOptions{})
	for b.Loop() {
		if rd := r.Run(b.Context(), []Request{{Sensor: s, Root: "/"}})[0]; rd.Reason != "" {
			b.Fatal(rd.Detail)
		}
	}
}
