//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestE2EReadme types every command of the README into a real terminal, on a
// fresh home, beside binaries built from this tree. The two of the first screen
// are run by .ci/run, which also calls this test.
func TestE2EReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("builds both binaries")
	}
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("tmux is not installed")
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(readme, -1) {
		for line := range strings.Lines(string(block[1])) {
			cmd, _, _ := strings.Cut(line, "  #")
			if cmd = strings.TrimSpace(cmd); cmd != "" {
				commands = append(commands, cmd)
			}
		}
	}
	if len(commands) < 8 || commands[0] != "go run ./tui/gettier demo" || commands[1] != "go test ./..." {
		t.Fatalf("the README's commands are %q", commands)
	}
	sensor := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(readme)
	if sensor == nil {
		t.Fatal("the README shows no sensor")
	}

	dir := t.TempDir()
	shop := filepath.Join(dir, "shop")
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "bin")+"/", "./daemon/gettierd", "./tui/gettier")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for name, text := range map[string]string{
		filepath.Join(shop, ".gettier", "sensors.yaml"): string(sensor[1]),
		filepath.Join(shop, "nginx.conf"):               "client_max_body_size 1m;\n",
		filepath.Join(dir, "home", "x"):                 "",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	// The README's agent; the real ones are tried elsewhere.
	if err := os.WriteFile(filepath.Join(dir, "bin", "claude"), []byte("#!/bin/sh\necho \"at $ANTHROPIC_BASE_URL\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}

	// A server of its own, so that no other session of this user is touched.
	name := fmt.Sprintf("gettier-readme-%d", os.Getpid())
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(tmux, append([]string{"-L", name}, args...)...)
		cmd.Env = []string{
			"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "TERM=xterm-256color", "LANG=C.UTF-8",
			"TMUX_TMPDIR=" + dir, "PS1=ready> ", "GETTIER_PROXY_PORT=0",
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", "-c", shop, "sh")
	t.Cleanup(func() {
		_ = exec.Command("pkill", "-f", filepath.Join(dir, "bin", "gettierd")).Run() // only if gettier down did not
		cmd := exec.Command(tmux, "-L", name, "kill-server")
		cmd.Env = append(os.Environ(), "TMUX_TMPDIR="+dir)
		_ = cmd.Run()
	})
	screen := func() string { return run("capture-pane", "-p", "-J") }
	until := func(what string, ok func(string) bool) string {
		t.Helper()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		deadline := time.Now().Add(120 * time.Second)
		for range tick.C {
			s := screen()
			if ok(s) {
				return s
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: the screen shows\n%s", what, s)
			}
		}
		return ""
	}
	for i, cmd := range commands[2:] {
		mark := fmt.Sprintf("code-%d-", i)
		run("send-keys", "clear; "+cmd+"; echo "+mark+"$?", "Enter")
		ended := regexp.MustCompile(`(?m)^` + mark + `(\d+)$`)
		answered := false
		s := until(cmd, func(s string) bool {
			if strings.Contains(s, "[y/N]") && !answered {
				answered = true
				run("send-keys", "y", "Enter")
			}
			if cmd == "gettier" && strings.Contains(s, "Holds") && !answered {
				answered = true
				run("send-keys", "q")
			}
			return ended.MatchString(s)
		})
		// These find no turn on this fresh ledger and say so (exit 2); the rest works.
		want := "0"
		if cmd == "gettier turns last" || cmd == "gettier why" {
			want = "2"
		}
		if cmd == "gettier run -- claude" && !strings.Contains(s, "at http://127.0.0.1:") {
			t.Errorf("the agent was not told where the proxy is:\n%s", s)
		}
		if got := ended.FindStringSubmatch(s)[1]; got != want {
			t.Errorf("%s: exit %s, want %s\n%s", cmd, got, want, s)
		}
	}
}
