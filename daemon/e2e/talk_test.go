package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

// ticket is a prompt that asks a chat without tools for a consequential change.
const ticket = "Raise the upload limit of our service to 25 MB: change the nginx and app configuration."

// TestE2ETalk: a question to a chat without tools, in both formats, streamed and
// whole: declared, measured, corrected, said in the headers, told, verifiable.
func TestE2ETalk(t *testing.T) {
	t.Parallel()
	secret := "sk-" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3gH6jK9mN2pQ5sT8"
	credential := "sk-" + "zY7xW4vU1tS8rQ5pO2nM9lK6jI3hG0fE7dC4bA1zY8xW5vU2"
	up := newRecorder(t, believer)
	h := newHouse(t, plan{upstream: up.URL})
	a := h.agent(h.project)
	for _, tg := range tongues {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/stream=%t", tg.name, stream), func(t *testing.T) {
				before := len(up.all())
				prompt := ticket + fmt.Sprintf(" (%s %t, the key is %s)", tg.name, stream, secret)
				r := a.post(t, tg.path, tg.body(stream, false, tg.user(prompt)), "Authorization", "Bearer "+credential, "X-Gettier-Agent", "tester")
				if r.status != http.StatusOK || r.err != nil {
					t.Fatalf("%d %v %s", r.status, r.err, r.body)
				}
				if want := tg.text(stream, corrected); r.body != want {
					t.Errorf("the answer is not the upstream's, byte for byte:\n got %q\nwant %q", r.body, want)
				}
				for name, want := range map[string]string{
					"Decision": "^caught$", "Contradicted": "^1$", "Unverifiable": "^0$", "Unjudged": "^0$", "Inconclusive": "^0$",
					"Policy-Version": "^.+$", "Chain": "^[0-9]+:[0-9a-f]{64}$", "Agent": "^tester$", "Agent-Source": "^explicit$", "Rung": "^1$", "Turn": "^t_[0-9A-HJKMNP-TV-Za-z]{26}$",
				} {
					if got := r.header.Get("X-Gettier-" + name); !regexp.MustCompile(want).MatchString(got) {
						t.Errorf("X-Gettier-%s: %q, want %s", name, got, want)
					}
				}
				if ct := r.header.Get("Content-Type"); strings.HasPrefix(ct, "text/event-stream") != stream {
					t.Errorf("Content-Type %q", ct)
				}
				seen := up.all()[before:]
				if len(seen) != 2 || !seen[0].declares() || seen[1].declares() || !seen[1].grounded() {
					t.Fatalf("the upstream saw %d requests, want a declare pass and a grounded answer", len(seen))
				}
				if seen[0].stream {
					t.Error("the declare pass was streamed")
				}
				for _, x := range seen {
					if got := x.header.Get("Authorization"); got != "Bearer "+credential {
						t.Errorf("the credential arrived as %q", got)
					}
					for name := range x.header {
						if strings.HasPrefix(name, "X-Gettier") {
							t.Errorf("%s reached the upstream", name)
						}
					}
				}
				onlyAdded(t, tg.body(stream, false, tg.user(prompt)), seen[1].body)
				d := h.turn(r.turn())
				inOrder(t, kinds(d.Entries), "turn.opened", "turn.declared", "lemma.matched", "sensor.invoked", "claim.judged", "gate.decided", "turn.injected", "turn.grounded", "turn.closed")
				if n := len(find[lemma.FactWritten](t, d.Entries)); (n == 1) != (before == 0) { // later turns reuse the reading
					t.Errorf("%d facts written", n)
				}
				if d.Scope != "project:shop" || d.Decision != lemma.DecCaught || d.Counts.Contradicted != 1 || d.Agent != "tester" {
					t.Errorf("turn: %+v", d.Turn)
				}
				story := h.must("turns", d.ID)
				for _, want := range []string{planSummary, falseClaim, "edge.limit", map[bool]string{true: "cat edge.conf", false: "reused"}[before == 0], `limit = "1m"`, "contradicted", "caught", "forced tool call"} {
					if !strings.Contains(story, want) {
						t.Errorf("gettier turns does not tell %q:\n%s", want, story)
					}
				}
				if n := strings.Count(story, "\n                      limit = "); n > 1 {
					t.Errorf("one value is told %d times:\n%s", n, story)
				}
			})
		}
	}
	v := h.verified()
	out := h.must("audit", "verify")
	if !strings.Contains(out, "root "+v.Root) || !regexp.MustCompile(`intact: [0-9,. ]+ entries`).MatchString(out) {
		t.Errorf("gettier audit verify says %q", out)
	}
	if code := h.stop(); code != 0 {
		t.Errorf("gettierd ended with %d: %s", code, h.d.errors())
	}
	// Neither the client's credential nor a secret of a prompt is anywhere on disk.
	nowhere(t, h.dir, secret, credential)
	for _, s := range []string{secret, credential} {
		if strings.Contains(h.d.errors(), s) {
			t.Error("a secret stands in the daemon's log")
		}
	}
}

// nowhere looks for secrets in every file below dir.
func nowhere(t *testing.T, dir string, secrets ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, s := range secrets {
			if bytes.Contains(b, []byte(s)) {
				t.Errorf("%s holds a secret", path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// onlyAdded holds that got is sent with blocks of ours added and nothing else:
// what is outside the messages byte for byte, each element too but one, which
// keeps its role and text.
func onlyAdded(t testing.TB, sent, got string) {
	t.Helper()
	a, b := apart(t, sent), apart(t, got)
	if a.before != b.before || a.after != b.after {
		t.Errorf("bytes outside the messages changed:\n got %q … %q\nwant %q … %q", b.before, b.after, a.before, a.after)
	}
	n := 0
	for _, item := range b.items {
		if n < len(a.items) && item == a.items[n] {
			n++
			continue
		}
		if n < len(a.items) && strings.Contains(item, blockOpen) && strings.Contains(item, inner(a.items[n])) {
			n++
			continue
		}
		if !strings.Contains(item, blockOpen) {
			t.Errorf("an element changed: %.300q", item)
		}
	}
	if n != len(a.items) {
		t.Errorf("%d of %d elements arrived", n, len(a.items))
	}
}

// inner is the longest string literal of an element: its text, as spelled.
func inner(item string) string {
	best := ""
	for _, s := range regexp.MustCompile(`"(?:[^"\\]|\\.)*"`).FindAllString(item, -1) {
		if len(s) > len(best) {
			best = s
		}
	}
	return best
}

// inOrder holds that want stands in got in this order, with anything between.
func inOrder(t testing.TB, got []string, want ...string) {
	t.Helper()
	i := 0
	for _, g := range got {
		if i < len(want) && g == want[i] {
			i++
		}
	}
	if i < len(want) {
		t.Errorf("no %s in order in %v", want[i], got)
	}
}

// TestE2EScriptedModel: the same by the program's own scripted model, as a person
// would try it by hand.
func TestE2EScriptedModel(t *testing.T) {
	t.Parallel()
	const registry = `version: 1
sensors:
  - id: deploy.versions
    command: [cat, servers]
    effects: none
    extract:
      - { name: release, regex: '^release = (?P<value>\S+)$', which: all, type: version }
    verifies: [deploy.version]
    judge:
      - when: '(?i)\b(all|every|each)\b.*\b(backends?|servers?)\b.*\bruns?\b.*\b(release|version)\s+(?P<v>\d+(\.\d+)+)\b'
        key: release
        type: version
        operator: "="
        value: "{{v}}"
      - when: '(?i)\b(release|version)\s+(?P<v>\d+(\.\d+)+)\b.*\b(deployed|running|live)\b.*\b(all|every|each)\b.*\b(backends?|servers?)\b'
        key: release
        type: version
        operator: "="
        value: "{{v}}"
matching:
  deploy.version: ["backend release", "backends release", "backend version", "servers version"]
`
	const prompt = "# Show the risk score\n\nRelease 2.4.0 brings the field `risk_score` on `/v2/order`; it is deployed. Make the client use it. Change client/client.json."
	for seed := range 3 { // the claim in three wordings
		model := startProcess(t, exec.Command(binary(t, "gettier"), "model", "--policy", "believer", "--seed", fmt.Sprint(seed), "--listen", "127.0.0.1:0"))
		banner := model.line()
		m := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(banner)
		if m == "" || !strings.Contains(strings.ToLower(banner), "scripted") {
			t.Fatalf("the model says %q; %s", banner, model.errors())
		}
		h := layHouse(t, plan{upstream: m, sensors: registry})
		h.write(filepath.Join(h.project, "servers"), "release = 2.4.0\nrelease = 2.3.9\n")
		h.start()
		a := h.agent(h.project)
		for _, tg := range tongues {
			r := a.post(t, tg.path, tg.body(true, false, tg.user(prompt)))
			if r.status != 200 || r.err != nil || r.decision() != "caught" || r.header.Get("X-Gettier-Scripted") != "" {
				t.Errorf("seed %d %s: %d %v %q %v\n%s", seed, tg.name, r.status, r.err, r.decision(), r.header, r.body)
				continue
			}
			if said := tg.says(t, true, r.body); !strings.HasPrefix(said, "Correction: ") || !strings.Contains(said, "2.3.9") {
				t.Errorf("seed %d %s: the model says %q", seed, tg.name, said)
			}
			var judged *lemma.ClaimJudged
			for _, j := range find[lemma.ClaimJudged](t, h.turn(r.turn()).Entries) {
				judged = &j
			}
			if judged == nil || judged.Verdict != lemma.Contradicted || !strings.Contains(judged.Measured, "2.3.9") {
				t.Errorf("seed %d %s: judged %+v", seed, tg.name, judged)
			}
		}
		h.verified()
	}
}

// TestE2EPlaces: who asks from elsewhere is never told of this project, and a
// name in the path only picks among the roots that hold the client.
func TestE2EPlaces(t *testing.T) {
	t.Parallel()
	up := newRecorder(t, believer)
	h := newHouse(t, plan{upstream: up.URL})
	inside := h.agent(h.project)
	sub := filepath.Join(h.project, "src", "deep")
	if err := os.MkdirAll(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	below, outside := h.agent(sub), h.agent(h.dir)
	for _, c := range []struct {
		name   string
		a      *agent
		prefix string
		header []string
		caught bool
	}{
		{"inside", inside, "", nil, true},
		{"below", below, "", nil, true},
		{"outside", outside, "", nil, false},
		{"named by path", inside, "/p/shop", nil, true},
		{"outside, named by path", outside, "/p/shop", nil, false},
		{"inside, other name", inside, "/p/other", nil, false},
		{"named by header", inside, "", []string{"X-Gettier-Project", "shop"}, true},
		{"outside, named by header", outside, "", []string{"X-Gettier-Project", "shop"}, false},
	} {
		for _, tg := range tongues {
			before := len(up.all())
			r := c.a.post(t, c.prefix+tg.path, tg.body(false, false, tg.user(ticket+" ("+c.name+")")), c.header...)
			if got := r.decision() == "caught"; r.status != 200 || got != c.caught {
				t.Errorf("%s, %s: %d %q", c.name, tg.name, r.status, r.decision())
			}
			for _, x := range up.all()[before:] {
				if x.target != tg.path {
					t.Errorf("%s: the upstream was asked for %s", c.name, x.target)
				}
				if !c.caught && x.grounded() {
					t.Errorf("%s, %s: a block of another place stands in the request", c.name, tg.name)
				}
			}
		}
	}
	if n := len(find[lemma.ScopeConflict](t, h.entries())); n == 0 {
		t.Error("a name that contradicts the client's place left no scope.conflict")
	}
	var st ipc.Status
	st, err := h.api().Status(t.Context())
	if err != nil || st.Counters["caught"] != 8 {
		t.Errorf("status: %v, %v", st.Counters, err)
	}
}
