package sensors

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"gettier.dev/gettierd/ledger/lemma"
)

// TestApprovalSaysWhatItMayDo: what a definition asks for beyond reading is said
// in words, and what an edit asks for anew is marked.
func TestApprovalSaysWhatItMayDo(t *testing.T) {
	h := newHouse(t)
	h.write(h.project(), `sensors:
  - { id: a, command: [psql, -c, x], effects: none, extract: [x] }
  - { id: b, command: [docker, ps], effects: none, network: ["unix:/run/docker.sock", "db.local:5432"], env: [PGPASSFILE], env_from: agent, extract: [x] }
  - { id: c, command: [deploy], runs_as: gt-agent, cwd: /srv/app, redact_allow: [NODE_ENV], extract: [x] }
  - { id: d, command: [nginx, -T, -c, "{{conf}}", /etc/hosts], effects: none, network: host, extract: [x], params: { conf: { type: path, allow: "/etc/nginx/**", default: /etc/nginx/nginx.conf } } }
`)
	r := h.open()
	says := func(id string) (out []string) {
		t.Helper()
		d, err := r.Diff(id)
		if err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(d.Text) {
			if w, ok := strings.CutPrefix(strings.TrimSpace(l), "! "); ok {
				out = append(out, w)
			}
		}
		return out
	}
	for id, want := range map[string][]string{
		"a": {"runs psql, which may read every file that you can read and write none"},
		"b": {"runs docker, which may read every file that you can read and write none", "talks to the socket /run/docker.sock (a container engine: as good as root)",
			"connects to db.local:5432", "is given PGPASSFILE of the agent's environment"},
		"c": {"runs deploy, which may change whatever you can change",
			"connects anywhere that you can: every network, and every socket of this machine, container engines, D-Bus and key agents among them",
			"runs as the user gt-agent", "works in /srv/app", "shows the values of NODE_ENV"},
		"d": {"runs nginx, which may read every file that you can read and write none",
			"connects anywhere that you can: every network, and every socket of this machine, container engines, D-Bus and key agents among them",
			"is pointed at /etc/hosts", "is pointed at what a claim or an action names among /etc/nginx/** ({{conf}})"},
	} {
		if got := says(id); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s says\n%s\nwant\n%s", id, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	h.approve("a")
	h.write(h.project(), "sensors:\n  - { id: a, command: [psql, -c, x], effects: none, network: ['unix:/run/user/1/bus'], extract: [x] }\n")
	r.Reload(t.Context())
	if got := says("a"); len(got) != 2 || got[1] != "new: talks to the socket /run/user/1/bus (D-Bus: your programs act for it)" || strings.Contains(got[0], "new") {
		t.Errorf("after an edit: %q", got)
	}
}

// TestDifferenceCannotDeceive: every text that a project can write is shown as it
// is: nothing of it steers a terminal, hides, or looks like what it is not, and
// two definitions that differ look different.
func TestDifferenceCannotDeceive(t *testing.T) {
	plain := sensor("a", "ls safe")
	for name, c := range map[string]struct{ yaml, shows string }{
		"escape codes":         {`{ id: a, command: ["ls", "safe\e[2K\e[1A"], effects: none, extract: [x] }`, `\u001b[2K`},
		"C1 controls":          {`{ id: a, command: ["ls", "safe\x9b2K"], effects: none, extract: [x] }`, `\u009b2K`},
		"right to left":        {`{ id: a, command: ["ls", "safe\u202e fr mr"], effects: none, extract: [x] }`, `\u202e`},
		"isolates":             {`{ id: a, command: ["ls", "\u2066safe\u2069"], effects: none, extract: [x] }`, `\u2066safe\u2069`},
		"zero width":           {`{ id: a, command: ["ls", "sa\u200bfe"], effects: none, extract: [x] }`, `sa\u200bfe`},
		"a soft hyphen":        {`{ id: a, command: ["ls", "sa\u00adfe"], effects: none, extract: [x] }`, `sa\u00adfe`},
		"a joiner":             {`{ id: a, command: ["ls", "sa\u034ffe"], effects: none, extract: [x] }`, `sa\u034ffe`},
		"a variation":          {`{ id: a, command: ["ls", "safe\ufe0f"], effects: none, extract: [x] }`, `safe\ufe0f`},
		"tag characters":       {`{ id: a, command: ["ls", "safe\U000e0041"], effects: none, extract: [x] }`, `safe\U000e0041`},
		"a filler":             {`{ id: a, command: ["ls", "safe\u3164"], effects: none, extract: [x] }`, `safe\u3164`},
		"another blank":        {`{ id: a, command: ["ls", "safe\u00a0"], effects: none, extract: [x] }`, `safe\u00a0`},
		"carriage return":      {`{ id: a, command: ["ls", "safe\r+ command: [\"ls\"]"], effects: none, extract: [x] }`, `safe\r+ command`},
		"a line of its own":    {`{ id: a, command: ls safe, effects: none, description: "x\n+ command: [\"id\"]", extract: [x] }`, `\n+ command: [\"id\"]`},
		"a line separator":     {`{ id: a, command: ["ls", "safe\u2028+ x"], effects: none, extract: [x] }`, `safe\u2028+ x`},
		"combining marks":      {`{ id: a, command: ["ls", "safe\u0338"], effects: none, extract: [x] }`, `safe\u0338`},
		"letters that look so": {`{ id: a, command: ["ls", "s\u0430fe"], effects: none, extract: [x] }`, `is U+0430`},
		"such a program":       {`{ id: a, command: ["\u217cs", "safe"], effects: none, extract: [x] }`, ``},
		"a long line":          {`{ id: a, command: ["ls", "safe` + strings.Repeat(" ", 5000) + `; end"], effects: none, extract: [x] }`, "; end"},
		"what looks a comment": {`{ id: a, command: ["ls", "safe", "# nothing more"], effects: none, extract: [x] }`, `"# nothing more"`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.write(h.project(), "sensors:\n"+plain)
			r := h.open()
			h.approve("a")
			h.write(h.project(), "sensors:\n  - "+c.yaml+"\n")
			r.Reload(t.Context())
			if f := r.Files()[0]; len(f.Problems) > 0 { // a refusal is as good
				t.Logf("refused: %v", f.Problems[0])
				if d, err := r.Diff("a"); err != nil || strings.Contains(d.Text, "\n+ ") {
					t.Errorf("%v %q", err, d.Text)
				}
				return
			}
			d, err := r.Diff("a")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(d.Text, c.shows) || !strings.Contains(d.Text, "\n+ ") {
				t.Errorf("it shows %q", d.Text)
			}
			for _, l := range strings.Split(strings.TrimSuffix(d.Text, "\n"), "\n")[2:] {
				if strings.ContainsFunc(l, func(c rune) bool { return !unicode.IsPrint(c) }) {
					t.Errorf("it prints %q", l)
				}
				if strings.HasPrefix(l, "+ command: [\"id\"") {
					t.Errorf("a description makes a line of its own: %q", l)
				}
			}
		})
	}
}

// TestApprovalBindsTheFiles: a script that is swapped between the look and the
// yes, and a file that comes back where its removal was shown, are refused.
func TestApprovalBindsTheFiles(t *testing.T) {
	h := newHouse(t)
	script := filepath.Join(h.root, "check.sh")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	put("echo x 1\n")
	h.write(h.project(), "sensors:\n"+sensor("a", "./check.sh"))
	r := h.open()
	saw, err := r.Diff("a")
	if err != nil || !strings.Contains(saw.Text, "+ runs check.sh sha256:") {
		t.Fatalf("%v\n%s", err, saw.Text)
	}
	put("echo x 2\n")
	approve := func(hash string) error {
		_, err := r.Approve(t.Context(), []string{"project/shop/a@" + hash}, "", lemma.Answerer{Via: "tui"})
		return err
	}
	if err := approve(saw.Hash); err == nil || !strings.Contains(err.Error(), "changed since you saw it") {
		t.Errorf("another script was approved: %v", err)
	}
	if saw, err = r.Diff("a"); err != nil {
		t.Fatal(err)
	}
	if err := approve(saw.Hash[:12]); err != nil {
		t.Error(err)
	}
	h.sees("project/shop/a=./check.sh")

	h.write(h.project(), "sensors: []\n")
	r.Reload(t.Context())
	if saw, err = r.Diff("a"); err != nil || saw.Hash != "" || saw.State != Removed {
		t.Fatalf("%+v %v", saw, err)
	}
	h.write(h.project(), "sensors:\n"+sensor("a", "rm -rf ."))
	r.Reload(t.Context())
	if err := approve(Gone); err == nil {
		t.Error("its removal was shown, another definition approved")
	}
	h.sees("project/shop/a=./check.sh")
	if err := os.Remove(h.project()); err != nil {
		t.Fatal(err)
	}
	r.Reload(t.Context())
	if err := approve(Gone); err != nil {
		t.Error(err)
	}
}

// TestFilesThatAreNone: what stands in place of a project's file is read when it
// is a file, and named when it is none; nothing blocks and the approved
// definitions stay.
func TestFilesThatAreNone(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a link to a device": func(p string) error { return os.Symlink("/dev/zero", p) },
		"a link to itself":   func(p string) error { return os.Symlink(p, p) },
		"a directory":        func(p string) error { return os.Mkdir(p, 0o700) },
		"a huge file": func(p string) error {
			if err := os.WriteFile(p, nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(p, 1<<40)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.write(h.project(), "sensors:\n"+sensor("a", "one"))
			r := h.open()
			h.approve("a")
			if err := os.Remove(h.project()); err != nil {
				t.Fatal(err)
			}
			if err := put(h.project()); err != nil {
				t.Fatal(err)
			}
			r.Reload(t.Context())
			h.sees("project/shop/a=one")
			if s := r.States()[0]; s.State != Broken || s.Reason == "" {
				t.Errorf("%+v", s)
			}
		})
	}
	t.Run("a link to the user's own", func(t *testing.T) {
		h := newHouse(t)
		h.write(h.user, "sensors:\n"+sensor("a", "one"))
		if err := os.Symlink(h.user, h.project()); err != nil {
			t.Fatal(err)
		}
		h.open()
		h.approve("user/a")
		h.sees("user/a=one; !a: not approved yet")
	})
}

// TestManySensors: a file that floods the registry is refused with its reason, and
// one that holds as many as it may is shown and approved.
func TestManySensors(t *testing.T) {
	h := newHouse(t)
	put := func(n int) {
		var b strings.Builder
		b.WriteString("sensors:\n")
		for i := range n {
			b.WriteString(sensor(fmt.Sprint("s", i), "ls"))
		}
		h.write(h.project(), b.String())
	}
	put(500)
	r := h.open()
	var ids []string
	for _, s := range r.States() {
		ids = append(ids, s.Qualified())
	}
	h.approve(ids...)
	put(10000)
	r.Reload(t.Context())
	if f := r.Files()[0]; len(f.Problems) == 0 || !strings.Contains(f.Problems[0].What, "more than ") {
		t.Errorf("%+v", f)
	}
	if v := r.View(h.root); len(v.Sensors) != 500 {
		t.Errorf("%d in force", len(v.Sensors))
	}
}
