package credential_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"
	"gettier.dev/gettierd/daemon/credential"
)

const inner = "GETTIER_TEST_KEYRING"

// key is what the tests keep and read.
var key = "sk-" + "test-" + strings.Repeat("k3Y", 8)

func none(string) string { return "" }

func TestEnvAndFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(" " + key + "\n")
	env := func(name string) string { return map[string]string{"K": key}[name] }
	for _, s := range []credential.Source{{Env: "K"}, {File: file}} {
		if got, err := credential.Read(s, env); err != nil || got != key {
			t.Errorf("%+v: %q, %v", s, got, err)
		}
	}
	if got, err := credential.Read(credential.Source{}, env); got != "" || err != nil {
		t.Errorf("no place: %q, %v", got, err)
	}
	if _, err := credential.Read(credential.Source{Env: "MISSING"}, env); !errors.Is(err, credential.ErrNone) || !strings.Contains(err.Error(), "MISSING") {
		t.Error(err)
	}
	if _, err := credential.Read(credential.Source{File: file + ".not"}, env); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for text, want := range map[string]error{"": credential.ErrNone, "\n\n": credential.ErrNone, key + "\n" + key: credential.ErrForm, "a\x1bb": credential.ErrForm, strings.Repeat("x", 9000): credential.ErrForm} {
		put(text)
		if _, err := credential.Read(credential.Source{File: file}, env); !errors.Is(err, want) || strings.Contains(err.Error(), key) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func TestAge(t *testing.T) {
	dir := t.TempDir()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	seal := func(armored bool) string {
		t.Helper()
		var b bytes.Buffer
		var out io.WriteCloser = nop{&b}
		if armored {
			out = armor.NewWriter(&b)
		}
		w, err := age.Encrypt(out, id.Recipient())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, key+"\n"); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Close(), out.Close()); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	right := write("id", "# created by age-keygen\n"+id.String()+"\n", 0o600)
	wrong := write("other", other.String()+"\n", 0o600)
	broken := write("broken", id.String()[:40]+"\n", 0o600)
	open := write("open", id.String()+"\n", 0o644)
	binary := write("key.age", seal(false), 0o600)
	for _, file := range []string{binary, write("key.asc", seal(true), 0o600)} {
		if got, err := credential.Read(credential.Source{Age: file, AgeIdentity: right}, none); err != nil || got != key {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	flipped := []byte(seal(false))
	flipped[len(flipped)-1] ^= 1
	for name, s := range map[string]credential.Source{
		"wrong identity":         {Age: binary, AgeIdentity: wrong},
		"broken identity":        {Age: binary, AgeIdentity: broken},
		"identity others read":   {Age: binary, AgeIdentity: open},
		"no identity":            {Age: binary},
		"changed file":           {Age: write("flipped.age", string(flipped), 0o600), AgeIdentity: right},
		"a file not encrypted":   {Age: write("plain", key, 0o600), AgeIdentity: right},
		"identity as ciphertext": {Age: right, AgeIdentity: right},
	} {
		got, err := credential.Read(s, none)
		if err == nil || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
			continue
		}
		if strings.Contains(err.Error(), key) || strings.Contains(err.Error(), id.String()[20:40]) {
			t.Errorf("%s: the error holds a secret: %v", name, err)
		}
	}
}

type nop struct{ io.Writer }

func (nop) Close() error { return nil }

// TestKeyring asks a real secret service: gnome-keyring on a bus of its own.
func TestKeyring(t *testing.T) {
	if os.Getenv(inner) != "" {
		askKeyring(t)
		return
	}
	for _, p := range []string{"dbus-run-session", "gnome-keyring-daemon", "secret-tool"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed (Debian: dbus-daemon, gnome-keyring, libsecret-tools)", p)
		}
	}
	home := t.TempDir()
	// secret-tool names the attributes as the library looks them up.
	script := `printf 'a password' | gnome-keyring-daemon --unlock --components=secrets >/dev/null &&
printf %s "$KEY" | secret-tool store --label=gettier service gettier username openai &&
exec "$0" -test.run '^TestKeyring$' -test.v`
	cmd := exec.Command("dbus-run-session", "--", "sh", "-c", script, os.Args[0])
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_RUNTIME_DIR=" + home, "XDG_DATA_HOME=" + filepath.Join(home, "data"), "KEY=" + key, inner + "=1"}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("the keyring gave the key")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

func askKeyring(t *testing.T) {
	got, err := credential.Read(credential.Source{Keyring: "gettier/openai"}, os.Getenv)
	if err != nil || got != os.Getenv("KEY") || got == "" {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := credential.Read(credential.Source{Keyring: "gettier/nobody"}, os.Getenv); !errors.Is(err, credential.ErrNone) {
		t.Fatal(err)
	}
	t.Log("the keyring gave the key")
}

func TestNoKeyring(t *testing.T) {
	if _, err := credential.Read(credential.Source{Keyring: "gettier/openai"}, none); err == nil || !strings.Contains(err.Error(), "session bus") {
		t.Error(err)
	}
	if _, err := credential.Read(credential.Source{Keyring: "gettier"}, none); err == nil || !strings.Contains(err.Error(), "SERVICE/USER") {
		t.Error(err)
	}
}
