package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
)

// TestE2EConnect: a program that takes the proxy for an HTTPS proxy is told what it
// may not reach, before anything is looked up, and the log has it once.
func TestE2EConnect(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	h := newHouse(t, plan{config: "connect: {enabled: true, deny: [example.com]}\n"})
	curl := func(url string) string {
		cmd := exec.Command("curl", "-sSv", "--max-time", "10", "-x", "http://"+h.proxy, url)
		cmd.Env, cmd.Dir = cleanEnv(h.dir), h.project
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Errorf("curl reached %s", url)
		}
		return string(out)
	}
	for url, want := range map[string]string{
		"https://api.anthropic.com/": "anthropic is an AI vendor",
		"https://127.0.0.1:443/":     "private networks",
		"https://example.com/":       "connect.deny has example.com",
		"https://example.com:22/":    "port 22",
	} {
		for range 2 {
			if out := curl(url); !strings.Contains(out, " 403 ") {
				t.Errorf("%s, which should say %q:\n%s", url, want, out)
			}
		}
	}
	seen := map[string]int{}
	for _, e := range find[lemma.ConnectDecided](t, h.entries()) {
		if e.Allowed || e.Principal.PID == 0 {
			t.Errorf("%+v", e)
		}
		seen[e.Why]++
	}
	if len(seen) != 4 {
		t.Errorf("the log has %v", seen)
	}
	if out := h.must("env", "--connect"); !strings.Contains(out, "export HTTPS_PROXY='http://"+h.proxy+"'\nexport NO_PROXY='localhost,127.0.0.1,::1'\n") {
		t.Errorf("env --connect:\n%s", out)
	}
}
