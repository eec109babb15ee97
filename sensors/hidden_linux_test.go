package sensors

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// dialAll is the program of a sensor: it says which addresses answer.
func dialAll(addrs []string) {
	for _, a := range addrs {
		network := "tcp"
		if strings.HasPrefix(a, "/") {
			network = "unix"
		}
		conn, err := net.DialTimeout(network, a, 5*time.Second)
		if err != nil {
			fmt.Println(a, "no")
			continue
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil {
			fmt.Println(a, "ended")
			continue
		}
		fmt.Print(a, " ", line)
	}
}

// answering listens and says hello to everyone.
func answering(t *testing.T, network, addr string) string {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello\n") // a caller that is gone reads nothing
			c.Close()
		}
	}()
	return l.Addr().String()
}

// dials runs dialAll in the sandbox.
func dials(t *testing.T, options RunnerOptions, extra string, addrs ...string) Reading {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GETTIER_TEST_DIAL", strings.Join(addrs, " "))
	s := parse(t, testDir(t), fmt.Sprintf("- id: probe\n  command: [%q]\n  env: [GETTIER_TEST_DIAL]\n  effects: none\n  timeout: 60\n%s", exe, extra))[0]
	options.Confine = true
	r := NewRunner(options)
	defer r.Close()
	return r.Run(t.Context(), []Request{{Sensor: s, Root: testDir(t)}})[0]
}

// A list of addresses is a way to these and to nothing else.
func TestSandboxReachesWhatIsListed(t *testing.T) {
	one, other := answering(t, "tcp", "127.0.0.1:0"), answering(t, "tcp", "127.0.0.1:0")
	_, port, err := net.SplitHostPort(one)
	if err != nil {
		t.Fatal(err)
	}
	name := net.JoinHostPort("localhost", port)
	far := net.JoinHostPort("192.0.2.7", "9") // of documentation (RFC 5737); nobody asks it
	rd := dials(t, RunnerOptions{}, fmt.Sprintf("  network: [%q, %q]\n", one, far), one, other)
	needs(t, rd, layerListNet)
	if want := one + " hello\n" + other + " no\n"; rd.Reason != "" || string(rd.Output) != want {
		t.Errorf("%s %s %q, want %q", rd.Reason, rd.Detail, rd.Output, want)
	}
	if rd := dials(t, RunnerOptions{}, fmt.Sprintf("  network: [%q]\n", name), one, name); string(rd.Output) != one+" hello\n"+name+" hello\n" {
		t.Errorf("%s %s %q", rd.Reason, rd.Detail, rd.Output)
	}
	// None is none, though another sensor's list was in force before.
	if rd := dials(t, RunnerOptions{}, "", one); string(rd.Output) != one+" no\n" {
		t.Errorf("%s %s %q", rd.Reason, rd.Detail, rd.Output)
	}
}

// Sockets of agents and engines, and our own state, are hidden, unless the
// definition names one.
func TestSandboxHidesSockets(t *testing.T) {
	dir := testDir(t)
	agent, engine, own, state := filepath.Join(dir, "agent.sock"), filepath.Join(dir, "engine.sock"), filepath.Join(dir, "own.sock"), filepath.Join(dir, "state")
	for _, s := range []string{agent, engine, own} {
		answering(t, "unix", s)
	}
	if err := errors.Join(os.Mkdir(state, 0o700), os.WriteFile(filepath.Join(state, "key"), []byte("k"), 0o600)); err != nil {
		t.Fatal(err)
	}
	inState := filepath.Join(state, "s.sock")
	answering(t, "unix", inState)
	env := map[string]string{"SSH_AUTH_SOCK": agent, "DOCKER_HOST": "unix://" + engine}
	options := RunnerOptions{Hide: []string{own, state}, Env: func(name string) (string, bool) {
		if v, ok := env[name]; ok {
			return v, true
		}
		return os.LookupEnv(name)
	}}
	all := []string{agent, engine, own, inState}
	rd := dials(t, options, "", all...)
	needs(t, rd, layerHidden)
	if want := strings.Join(all, " no\n") + " no\n"; string(rd.Output) != want {
		t.Errorf("%s %s %q", rd.Reason, rd.Detail, rd.Output)
	}
	rd = dials(t, options, fmt.Sprintf("  network: [%q, %q]\n", "unix:"+engine, "unix:"+inState), all...)
	if want := agent + " no\n" + engine + " hello\n" + own + " no\n" + inState + " hello\n"; string(rd.Output) != want {
		t.Errorf("asked for: %s %s %q", rd.Reason, rd.Detail, rd.Output)
	}
	// With effects nothing is hidden: its network is the machine's.
	s := parse(t, dir, fmt.Sprintf("- id: probe\n  command: [ls, %q]\n  effects: mutates\n", state))[0]
	r := NewRunner(RunnerOptions{Hide: options.Hide, Confine: true})
	defer r.Close()
	if rd := r.Run(t.Context(), []Request{{Sensor: s, Root: dir}})[0]; !strings.Contains(string(rd.Output), "key") || strings.Contains(rd.Invocation.Sandbox, layerHidden) {
		t.Errorf("with effects: %q %s", rd.Output, rd.Invocation.Sandbox)
	}
}

// A sensor that stands nowhere sees no file of the project, and its path
// arguments are the project's.
func TestSandboxEmptyDirectory(t *testing.T) {
	dir := testDir(t)
	script(t, dir, "probe.sh", "pwd; ls -A; cat \"$1\"")
	if err := os.WriteFile(filepath.Join(dir, "data"), []byte("of the project\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := parse(t, dir, fmt.Sprintf("- id: probe\n  command: [%q, '{{file}}']\n  params: { file: { type: path, allow: '**', default: data } }\n  effects: none\n  cwd: empty\n", dir+"/probe.sh"))[0]
	r := NewRunner(RunnerOptions{Confine: true})
	defer r.Close()
	for range 2 { // the second one sees nothing of the first
		rd := r.Run(t.Context(), []Request{{Sensor: s, Root: dir}})[0]
		needs(t, rd, layerFiles)
		if want := rd.Invocation.Cwd + "\nof the project\n"; rd.Reason != "" || string(rd.Output) != want || rd.Invocation.Cwd == dir {
			t.Errorf("%s %s %q in %s", rd.Reason, rd.Detail, rd.Output, rd.Invocation.Cwd)
		}
	}
}

// One that forks, floods, hangs, prints what terminals obey and a private key
// leaves no process and no secret, and says why it did not measure.
func TestSandboxWildSensor(t *testing.T) {
	dir := testDir(t)
	word := marked(t)
	key := "-----BEGIN " + "PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\\n-----END " + "PRIVATE KEY-----\\n"
	wild := fmt.Sprintf("for i in 1 2 3 4 5; do setsid sleep %s & (sleep %s &) done\ntrap '' TERM\nprintf '\\033[2J\\033]0;owned\\007%s'\n", word, word, key)
	for _, c := range []struct{ then, reason string }{
		{"exit 3", ReasonExit}, {"while :; do :; done", ReasonTimeout}, {"exec yes \"$(printf '\\033[31m')\"", ReasonOutputCap},
		{"printf '\\033]0;owned\\007" + key + "' >&2; exit 9", ReasonExit},
	} {
		rd := confined(t, dir, wild+c.then, "  timeout: 1\n")
		if rd.Reason != c.reason || running(word) {
			t.Errorf("%s: %s %s, running %v (%s)", c.then, rd.Reason, rd.Detail, running(word), rd.Invocation.Sandbox)
		}
		if shown := CouldNotRun(rd) + string(rd.Output); strings.Contains(shown, "MIIE") || strings.ContainsAny(CouldNotRun(rd), "\x1b\x07") {
			t.Errorf("%s: shows %q", c.then, shown)
		}
	}
}

// What one sensor leaves in memory the next does not see, in the same worker.
func TestSandboxSensorsShareNothing(t *testing.T) {
	dir := testDir(t)
	script(t, dir, "probe.sh", "ls -A /dev/shm; cat kept; echo left > /dev/shm/left; echo more >> kept; cat kept")
	if err := os.WriteFile(filepath.Join(dir, "kept"), []byte("as it was\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := parse(t, dir, "- id: probe\n  command: ./probe.sh\n  effects: none\n")[0]
	r := NewRunner(RunnerOptions{Confine: true})
	defer r.Close()
	for range 3 {
		rd := r.Run(t.Context(), []Request{{Sensor: s, Root: dir}})[0]
		needs(t, rd, layerFiles)
		if want := "as it was\nas it was\nmore\n"; rd.Reason != "" || string(rd.Output) != want {
			t.Errorf("%s %s %q", rd.Reason, rd.Detail, rd.Output)
		}
	}
}
