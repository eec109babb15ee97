package sensors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain lets a test start this binary as a daemon that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("GETTIER_TEST_MEASURE"); dir != "" {
		measureFor(dir)
		return
	}
	if addrs := os.Getenv("GETTIER_TEST_DIAL"); addrs != "" {
		dialAll(strings.Fields(addrs))
		return
	}
	os.Exit(m.Run())
}

// measureFor runs the sensor of a directory under a sandbox, as a daemon would.
func measureFor(dir string) {
	s, err := readSmall(filepath.Join(dir, "argv"), 1<<16)
	if err != nil {
		panic(err)
	}
	t := new(testing.T)
	sensor := parse(t, dir, string(s))[0]
	if os.Getenv("GETTIER_TEST_HIDDEN") != "" {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			panic(err)
		}
	}
	rd := NewRunner(RunnerOptions{Confine: true}).Run(context.Background(), []Request{{Sensor: sensor, Root: dir}})[0]
	fmt.Println(rd.Invocation.Sandbox, rd.Reason, rd.Detail)
}

// An ordinary user's daemon that hides its memory has the same sandbox as one
// that does not. Root would hide the difference: it may write every uid_map.
func TestSandboxOfAHiddenDaemon(t *testing.T) {
	dir, err := os.MkdirTemp("", "hidden-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "sensors.test"), program, 0o755),
		os.WriteFile(filepath.Join(dir, "argv"), []byte("- id: probe\n  command: [\"true\"]\n  effects: none\n  timeout: 60\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	measure := func(hidden string) string {
		cmd := exec.Command(filepath.Join(dir, "sensors.test"), "-test.run=^$")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GETTIER_TEST_MEASURE="+dir, "GETTIER_TEST_HIDDEN="+hidden)
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	open := measure("")
	if !strings.Contains(open, layerPID) {
		t.Skipf("this kernel gives an ordinary user %q", open)
	}
	if hidden := measure("1"); hidden != open {
		t.Errorf("hidden %q, else %q", hidden, open)
	}
}

// confined runs a script in the sandbox.
func confined(t *testing.T, dir, body, extra string) Reading {
	t.Helper()
	script(t, dir, "probe.sh", body)
	if !strings.Contains(extra, "effects:") {
		extra += "  effects: none\n"
	}
	s := parse(t, dir, "- id: probe\n  command: ./probe.sh\n"+extra)[0]
	return NewRunner(RunnerOptions{Confine: true}).Run(t.Context(), []Request{{Sensor: s, Root: dir}})[0]
}

// needs skips a test where this kernel does not give a layer.
func needs(t *testing.T, rd Reading, layers ...string) {
	t.Helper()
	for _, l := range layers {
		if !strings.Contains(","+rd.Invocation.Sandbox+",", ","+l+",") {
			t.Skipf("this kernel gives %q, not %s", rd.Invocation.Sandbox, l)
		}
	}
}

// running reports whether a process has this word in its arguments.
func running(word string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil && bytes.Contains(b, []byte(word)) && !strings.Contains(f, fmt.Sprintf("/%d/", os.Getpid())) {
			return true
		}
	}
	return false
}

// marked is a duration for sleep that no other process has as an argument.
func marked(t *testing.T) string {
	return fmt.Sprintf("4000.%d%d", os.Getpid(), time.Now().UnixNano())
}

func TestSandboxOutcomesAreTheSame(t *testing.T) {
	dir := testDir(t)
	for _, c := range []struct{ body, reason, output string }{
		{"echo x 1; exit 0", "", "x 1\n"},
		{"echo broken >&2; exit 3", ReasonExit, ""},
		{"exit 125", ReasonExit, ""},
		{"kill -9 $$", ReasonSignal, ""},
		{"kill -TERM $$", ReasonSignal, ""},
		{"trap 'exit 0' TERM; sleep 30 & wait", ReasonTimeout, ""},
		{"trap '' TERM; sleep 30", ReasonTimeout, ""},
		{"yes", ReasonOutputCap, ""},
		{"echo $#", "", "0\n"},
		{"cat", "", ""}, // standard input is empty
	} {
		limit := "60" // far more than a busy machine needs
		if c.reason == ReasonTimeout {
			limit = "1"
		}
		rd := confined(t, dir, c.body, "  timeout: "+limit+"\n  extract: [x]\n")
		if rd.Reason != c.reason || c.output != "" && string(rd.Output) != c.output {
			t.Errorf("%q: %s %q %q (%s)", c.body, rd.Reason, rd.Detail, rd.Output, rd.Invocation.Sandbox)
		}
	}
	for command, reason := range map[string]string{"no-such-program-here": ReasonNotFound, "./plain": ReasonPermission} {
		if err := os.WriteFile(filepath.Join(dir, "plain"), []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
		s := parse(t, dir, "- id: probe\n  command: "+command+"\n  effects: none\n")[0]
		rd := NewRunner(RunnerOptions{Confine: true}).Run(t.Context(), []Request{{Sensor: s, Root: dir}})[0]
		if rd.Reason != reason {
			t.Errorf("%s: %s %s", command, rd.Reason, rd.Detail)
		}
	}
}

// A child that leaves its session outlives neither the sensor nor its limit.
func TestSandboxEndsDetachedChildren(t *testing.T) {
	dir := testDir(t)
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid (util-linux) is not installed")
	}
	word := marked(t)
	rd := confined(t, dir, "setsid -f sleep "+word+"; setsid sleep "+word+" >/dev/null 2>&1 & echo x 1", "  extract: [x]\n")
	needs(t, rd, layerPID)
	if rd.Reason != "" || running(word) {
		t.Errorf("after the end: %s %s, running %v", rd.Reason, rd.Detail, running(word))
	}
	rd = confined(t, dir, "setsid -f sleep "+word+"; sleep "+word, "  timeout: 1\n")
	if rd.Reason != ReasonTimeout || running(word) {
		t.Errorf("after the limit: %s %s, running %v", rd.Reason, rd.Detail, running(word))
	}
}

// A daemon that is killed leaves no sensor behind, nor what a sensor started.
func TestSandboxEndsWithTheDaemon(t *testing.T) {
	dir := testDir(t)
	word := marked(t)
	needs(t, confined(t, dir, "true", ""), layerPID)
	script(t, dir, "long.sh", "setsid sleep "+word+" & sleep "+word)
	if err := os.WriteFile(filepath.Join(dir, "argv"), []byte("- id: probe\n  command: ./long.sh\n  effects: none\n  timeout: 60\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), "GETTIER_TEST_MEASURE="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the sensor runs", func() bool { return running(word) })
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	waitFor(t, "nothing is left", func() bool { return !running(word) })
}

// Without effects no file is made, emptied or removed, and only those under the
// working directory can be opened for writing; with effects all of it is free.
func TestSandboxGuardsFiles(t *testing.T) {
	dir, out := testDir(t), testDir(t)
	const try = `try() { "$@" 2>/dev/null && printf '%s ' "$1"; }
append() { echo y >> kept; }; empty() { true > kept; }; make_() { echo y > made; }; outside() { echo y >> OUT/kept; }; nowhere() { echo y > /dev/null; }
try append; try empty; try make_; try rm gone; try mkdir d; try mv probe.sh moved; try ln -s x l; try outside; try nowhere; true`
	for _, c := range [][2]string{{"none", "append nowhere"}, {"mutates", "append empty make_ rm mkdir mv ln outside nowhere"}} {
		effects, want := c[0], c[1]
		for _, f := range []string{dir + "/kept", dir + "/gone", out + "/kept"} {
			if err := os.WriteFile(f, []byte("x\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		rd := confined(t, dir, strings.ReplaceAll(try, "OUT", out), "  effects: "+effects+"\n")
		if effects == "none" {
			needs(t, rd, layerLandlock)
		}
		if rd.Reason != "" || strings.TrimSpace(string(rd.Output)) != want || effects != "none" && strings.Contains(rd.Invocation.Sandbox, layerLandlock) {
			t.Errorf("effects %s: %s %s %q, want %q (%s)", effects, rd.Reason, rd.Detail, rd.Output, want, rd.Invocation.Sandbox)
		}
		// What was appended without effects went to memory, where there are mounts.
		kept, err := os.ReadFile(filepath.Join(dir, "kept"))
		if changed := string(kept) != "x\n"; err != nil || changed != (effects != "none" || !strings.Contains(rd.Invocation.Sandbox, layerFiles)) {
			t.Errorf("effects %s: the file holds %q %v (%s)", effects, kept, err, rd.Invocation.Sandbox)
		}
	}
}

// No network means no interface but a loopback that is down.
func TestSandboxHasNoNetwork(t *testing.T) {
	dir := testDir(t)
	const links = "sed -n 's/^ *\\([a-z0-9]*\\):.*/\\1/p' /proc/self/net/dev"
	rd := confined(t, dir, links, "")
	needs(t, rd, layerNoNet)
	if out := strings.TrimSpace(string(rd.Output)); out != "lo" {
		t.Errorf("interfaces %q", out)
	}
	for network, layer := range map[string]string{"host": layerHostNet, `["127.0.0.1:80"]`: layerListNet, `["unix:/run/x.sock"]`: layerNoNet} {
		rd := confined(t, dir, links, "  network: "+network+"\n")
		if !strings.Contains(rd.Invocation.Sandbox, layer) || layer != layerNoNet && strings.Contains(rd.Invocation.Sandbox, layerNoNet) {
			t.Errorf("network %s: %s", network, rd.Invocation.Sandbox)
		}
	}
}

// What looks at the machine's network sees which process holds a socket.
func TestSandboxSeesHolders(t *testing.T) {
	rd := confined(t, testDir(t), fmt.Sprintf("ls /proc/%d/fd", os.Getpid()), "  network: host\n")
	if len(rd.Output) == 0 || strings.Contains(rd.Invocation.Sandbox, layerLandlock) {
		t.Errorf("in %s: %q %s", rd.Invocation.Sandbox, rd.Output, rd.Detail)
	}
}

// Programs cannot raise their rights, leave no core file, and inherit nothing.
func TestSandboxTakesRights(t *testing.T) {
	dir := testDir(t)
	rd := confined(t, dir, "grep NoNewPrivs /proc/self/status; ulimit -c", "")
	needs(t, rd, layerNoRights, layerLimits)
	if lines := strings.Fields(string(rd.Output)); len(lines) != 3 || lines[1] != "1" || lines[2] != "0" {
		t.Errorf("%q", rd.Output)
	}
	// The helper's own pipes do not reach the program.
	const files = "ls /proc/self/fd"
	if plain, rd := runOne(t, dir, files, "", nil), confined(t, dir, files, ""); !bytes.Equal(plain.Output, rd.Output) {
		t.Errorf("open files %q, without a sandbox %q", rd.Output, plain.Output)
	}
}

// Where the kernel refuses, the run goes on a rung lower, and says so.
func TestSandboxDowngrade(t *testing.T) {
	dir := testDir(t)
	s := parse(t, dir, "- id: probe\n  command: [sh, -c, 'echo x 1']\n  effects: none\n")[0]
	for from, want := range map[int32]string{1: "net:no_tcp", 2: "no_new_privs", 3: "none"} {
		r := NewRunner(RunnerOptions{Confine: true})
		r.workers.from = int(from)
		rd := r.Run(t.Context(), []Request{{Sensor: s, Root: dir}})[0]
		if rd.Reason != "" || string(rd.Output) != "x 1\n" || !strings.Contains(rd.Invocation.Sandbox, want) || from > 1 && strings.Contains(rd.Invocation.Sandbox, layerPID) {
			t.Errorf("rung %d: %s %s %q", from, rd.Reason, rd.Detail, rd.Invocation.Sandbox)
		}
	}
}

// BenchmarkSandbox runs a program bare, by the runner and by the runner in its
// sandbox, in turns, and reports ratios with design 10's goals in their names.
func BenchmarkSandbox(b *testing.B) {
	dir := testDir(b)
	s := parse(b, dir, "- id: probe\n  command: [\"true\"]\n  effects: none\n")[0]
	plain, confined := NewRunner(RunnerOptions{}), NewRunner(RunnerOptions{Confine: true})
	ran := func(r *Runner) {
		if rd := r.Run(b.Context(), []Request{{Sensor: s, Root: dir}})[0]; rd.Reason != "" {
			b.Fatal(rd.Detail)
		}
	}
	ways := []func(){
		func() {
			if err := exec.Command("true").Run(); err != nil {
				b.Fatal(err)
			}
		},
		func() { ran(plain) },
		func() { ran(confined) },
	}
	took := make([]time.Duration, len(ways))
	for b.Loop() {
		for i, run := range ways {
			began := time.Now()
			run()
			took[i] += time.Since(began)
		}
	}
	b.ReportMetric(0, "ns/op") // of all three
	b.ReportMetric(float64(took[1])/float64(took[0]), "plain÷exec(≤2)")
	b.ReportMetric(float64(took[2])/float64(took[0]), "confined÷exec")
	b.ReportMetric(took[2].Seconds()*1000/float64(b.N), "confined-ms(≤4.9)")
}

// BenchmarkSweep runs 20 sensors of 50 ms, four beside each other: five rounds.
func BenchmarkSweep(b *testing.B) {
	dir := testDir(b)
	var reqs []Request
	for i := range 20 {
		s := parse(b, dir, fmt.Sprintf("- id: probe.n%d\n  command: [sleep, \"0.05\"]\n  effects: none\n", i))[0]
		reqs = append(reqs, Request{Sensor: s, Root: dir})
	}
	r := NewRunner(RunnerOptions{Confine: true, Width: 4})
	for b.Loop() {
		for _, rd := range r.Run(b.Context(), reqs) {
			if rd.Reason != "" {
				b.Fatal(rd.Detail)
			}
		}
	}
	ideal := 5 * 50 * time.Millisecond
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/ideal.Seconds(), "sweep÷ideal(≤1.15)")
}
