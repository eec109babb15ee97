package e2e

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"filippo.io/age"

	"gettier.dev/gettierd/ipc"
)

// planted are the keys of TestE2EPlantedKeys by where the daemon gets them from.
// They have the shapes that redaction knows, since one stands in a prompt; they
// are put together here so that no scanner takes this file for a leak.
func planted() map[string]string {
	tail := "Kx7Rv2Lm9Np4Ws8Tz3Yb6Hc1Jd5Fg0Qa"
	return map[string]string{
		"upstream key in a file":      "sk-" + "proj-" + "File" + tail,
		"upstream key in environment": "sk-" + "proj-" + "Env" + tail,
		"upstream key sealed by age":  "sk-" + "proj-" + "Age" + tail,
		"upstream key in the ledger":  "sk-" + "proj-" + "Led" + tail,
		"upstream key in a keyring":   "sk-" + "proj-" + "Ring" + tail,
		"the client's credential":     "sk-" + "ant-api03-" + "Client" + tail,
		"a key in the prompt":         "ghp_" + tail + "Pr0m",
	}
}

// TestE2EPlantedKeys: no key that passes through the daemon stands in its state,
// its log or an export, and a crash writes no core. The control is a build whose
// crash does write one, and the keys are in it.
func TestE2EPlantedKeys(t *testing.T) {
	t.Parallel()
	t.Run("as it is", func(t *testing.T) {
		h := usePlanted(t, "")
		h.crash()
		if files := cores(t, h.dir); len(files) > 0 {
			t.Errorf("a crash left %v", files)
		}
	})
	t.Run("control", func(t *testing.T) {
		if pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern"); err != nil || bytes.ContainsAny(pattern, "|/") {
			t.Skipf("cores of this machine go elsewhere: %s", pattern)
		}
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &limit); err != nil || limit.Max == 0 {
			t.Skip("this process may write no core")
		}
		program := filepath.Join(t.TempDir(), "gettierd")
		if out, err := exec.Command("go", "build", "-tags", "gettier_cores", "-o", program, "gettier.dev/gettierd/daemon/gettierd").CombinedOutput(); err != nil {
			t.Fatalf("build with cores: %v\n%s", err, out)
		}
		// The soft limit is raised by a shell: ours is for all tests.
		wrapper := filepath.Join(filepath.Dir(program), "with-cores")
		if err := os.WriteFile(wrapper, []byte("#!/bin/sh\nulimit -S -c unlimited && exec '"+program+"' \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		h := usePlanted(t, wrapper)
		h.crash()
		files := cores(t, h.dir)
		if len(files) != 1 {
			t.Fatalf("a crash left %v: the other half of this test shows nothing", files)
		}
		core, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, where := range []string{"upstream key in a file", "upstream key in environment", "upstream key sealed by age", "upstream key in the ledger"} {
			if !bytes.Contains(core, []byte(planted()[where])) {
				t.Errorf("%s is not in the core: looking for it shows nothing", where)
			}
		}
	})
}

// usePlanted runs a daemon that gets all the keys, talks through it, and looks
// for them in everything that it writes.
func usePlanted(t *testing.T, program string) *house {
	t.Helper()
	keys := planted()
	up := newRecorder(t, untold)
	h := layHouse(t, plan{env: []string{"PLANTED=" + keys["upstream key in environment"], "GOTRACEBACK=crash"}})
	h.program = program
	file := filepath.Join(filepath.Dir(h.conf), "key.txt")
	h.write(file, keys["upstream key in a file"]+"\n")
	identity, sealed := sealKey(t, filepath.Dir(h.conf), keys["upstream key sealed by age"])
	upstreams := []string{"filed", "named", "sealed", "kept", "passed"}
	ring := ""
	if bus := keyring(t, h.dir, keys["upstream key in a keyring"]); bus != "" {
		h.env = append(h.env, "DBUS_SESSION_BUS_ADDRESS="+bus)
		upstreams = append(upstreams, "ringed")
		ring = "  ringed: {base_url: \"" + up.URL + "\", format: openai, key_keyring: gettier/planted}\n"
	} else {
		delete(keys, "upstream key in a keyring")
	}
	h.configure("upstreams:\n  filed: {base_url: \"" + up.URL + "\", format: openai, key_file: \"" + file + "\"}\n" +
		"  named: {base_url: \"" + up.URL + "\", format: openai, key_env: PLANTED}\n" +
		"  sealed: {base_url: \"" + up.URL + "\", format: openai, key_age: \"" + sealed + "\", key_age_identity: \"" + identity + "\"}\n" +
		"  kept: {base_url: \"" + up.URL + "\", format: openai, key_ledger: kept}\n" + ring +
		"  passed: {base_url: \"" + up.URL + "\", format: openai}\n")
	h.start()
	ev := h.follow()
	tm := h.newTerminal()
	secret, own := filepath.Join(h.dir, "typed"), filepath.Join(h.dir, "shown")
	h.write(secret, keys["upstream key in the ledger"]+"\n")
	for _, command := range []string{"gettier key store-upstream kept --socket " + h.socket + " <" + secret, "gettier key create --name ci --socket " + h.socket + " >" + own} {
		if screen, code := tm.typed(command); code != "0" {
			t.Fatalf("%s: %s\n%s", command, code, screen)
		}
	}
	shown, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	gives := strings.TrimSpace(string(shown))
	a := h.agent(h.project)
	for _, upstream := range upstreams {
		text := chatTongue.user("What does " + keys["a key in the prompt"] + " open, " + upstream + "?")
		a.post(t, "/"+upstream+chatTongue.path, chatTongue.body(false, false, text), "Authorization", "Bearer "+keys["the client's credential"], "X-Gettier-Key", gives)
	}
	sent := map[string]bool{}
	for _, x := range up.all() {
		for where, key := range keys {
			sent[where] = sent[where] || strings.Contains(x.header.Get("Authorization")+x.body, key)
		}
	}
	for where := range keys {
		if !sent[where] {
			t.Errorf("%s never went through the daemon", where)
		}
	}
	keys["a key of ours"] = gives // it goes no further than the daemon
	last := h.entries()
	ev.next("the newest entry", func(e ipc.Entry) bool { return e.Seq == last[len(last)-1].Seq })
	export := filepath.Join(h.dir, "export")
	h.must("audit", "export", "-o", export)
	searched := 0
	for _, root := range []string{h.state, export} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			searched++
			for where, key := range keys {
				if bytes.Contains(data, []byte(key)) {
					t.Errorf("%s stands in %s", where, path)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if searched < 5 {
		t.Errorf("only %d files were searched", searched)
	}
	for where, key := range keys {
		if strings.Contains(h.d.errors()+strings.Join(h.d.lines(), "\n"), key) {
			t.Errorf("%s stands in the log", where)
		}
		if strings.Contains(strings.Join(ev.p.lines(), "\n"), key) {
			t.Errorf("%s stands in the event stream", where)
		}
	}
	return h
}

// keyring starts a real secret service on a bus of its own, gives it the key and
// returns the bus; "" where there is none to start.
func keyring(t *testing.T, home, key string) (bus string) {
	t.Helper()
	for _, p := range []string{"dbus-daemon", "gnome-keyring-daemon", "secret-tool"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Logf("%s is not installed (Debian: dbus-daemon, gnome-keyring, libsecret-tools): no key in a keyring", p)
			return ""
		}
	}
	daemon := exec.Command("dbus-daemon", "--session", "--nofork", "--print-address")
	daemon.Env = cleanEnv(home)
	bus = startProcess(t, daemon).line()
	fill := exec.Command("sh", "-c", `printf 'a password' | gnome-keyring-daemon --unlock --components=secrets >/dev/null &&
printf %s "$KEY" | secret-tool store --label=gettier service gettier username planted`)
	fill.Env = append(cleanEnv(home), "XDG_RUNTIME_DIR="+home, "XDG_DATA_HOME="+filepath.Join(home, "data"), "DBUS_SESSION_BUS_ADDRESS="+bus, "KEY="+key)
	if out, err := fill.CombinedOutput(); err != nil {
		t.Fatalf("fill the keyring: %v\n%s", err, out)
	}
	return bus
}

// sealKey encrypts a key with age and returns the paths of identity and ciphertext.
func sealKey(t *testing.T, dir, key string) (identity, sealed string) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := age.Encrypt(&b, id.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, key); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	identity, sealed = filepath.Join(dir, "identity.txt"), filepath.Join(dir, "key.age")
	for path, text := range map[string]string{identity: id.String() + "\n", sealed: b.String()} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return identity, sealed
}

// crash makes the daemon abort as a fault of its own would.
func (h *house) crash() {
	h.t.Helper()
	h.d.crashes = true
	if err := h.d.cmd.Process.Signal(syscall.SIGABRT); err != nil {
		h.t.Fatal(err)
	}
	h.d.wait()
}

func cores(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "core*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// closed checks that a process of the daemon's own user cannot look into its
// memory or environment. The control is another process of that user.
func (h *house) closed(control *process) {
	h.t.Helper()
	look := func(pid int) error {
		// Opening is what the kernel asks about.
		cmd := exec.Command("sh", "-c", fmt.Sprintf("exec 3</proc/%d/mem 4</proc/%d/environ", pid, pid))
		cmd.SysProcAttr = h.own()
		return cmd.Run()
	}
	if err := look(control.cmd.Process.Pid); err != nil {
		h.t.Errorf("no process can be looked into, which shows nothing: %v", err)
	}
	if look(h.d.cmd.Process.Pid) == nil {
		h.t.Error("another process of the same user looks into the daemon")
	}
}
