package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// agent is what is known of a client: how it is told where its model is, beyond
// the variables that all of them are given, and which files of a project can
// tell it otherwise.
type agent struct {
	name     string
	args     func(proxy string) []string // options before the person's own
	env      func(proxy string) []string
	settings []string
	note     string // what a person has to know, "" when there is nothing
}

// agents are the clients that were tried, by the name of their program.
var agents = []agent{
	{
		name: "claude",
		// Behind another base URL it loads all of its tools into each request
		// unless it is told that tool search works there.
		env:      func(string) []string { return []string{"ENABLE_TOOL_SEARCH=true"} },
		settings: []string{".claude/settings.json", ".claude/settings.local.json"},
	},
	{
		name: "codex",
		args: func(proxy string) []string { return []string{"-c", `openai_base_url="http://` + proxy + `/v1"`} },
		settings: []string{
			".codex/config.toml",
		},
	},
	{
		name: "opencode",
		env: func(proxy string) []string {
			at := func(name string) string {
				return `"` + name + `":{"options":{"baseURL":"http://` + proxy + `/v1"}}`
			}
			return []string{`OPENCODE_CONFIG_CONTENT={"provider":{` + at("anthropic") + `,` + at("openai") + `}}`}
		},
		settings: []string{"opencode.json", "opencode.jsonc", ".opencode/opencode.json"},
	},
	{name: "cn", settings: []string{".continue/config.yaml"}, note: "cn reads no base URL from its environment: set apiBase in its config.yaml"},
	{name: "cline", note: "cline reads no base URL from its environment: set it in its provider settings"},
	{name: "gemini", note: "gemini speaks a format of its own, which is not gated"},
	{name: "aider", settings: []string{".aider.conf.yml", ".env"}},
}

// agentOf is what is known of the program at path.
func agentOf(path string) (agent, bool) {
	name := filepath.Base(path)
	i := slices.IndexFunc(agents, func(a agent) bool { return a.name == name })
	if i < 0 {
		return agent{name: name}, false
	}
	return agents[i], true
}

// baseURLs are the variables that clients and SDKs read.
func baseURLs(proxy string) []string {
	return []string{
		"ANTHROPIC_BASE_URL=http://" + proxy,
		"OPENAI_BASE_URL=http://" + proxy + "/v1",
		"OPENAI_API_BASE=http://" + proxy + "/v1",
	}
}

// connectVars make a program use the proxy for HTTPS, and not for this machine.
// HTTP_PROXY stays unset: requests in the clear are no tunnels and are refused.
func connectVars(proxy string, env []string) []string {
	none, _ := lookup(env, "NO_PROXY")
	list := strings.FieldsFunc(none, func(r rune) bool { return r == ',' || r == ' ' })
	for _, host := range []string{"localhost", "127.0.0.1", "::1"} {
		if !slices.Contains(list, host) {
			list = append(list, host)
		}
	}
	return []string{"HTTPS_PROXY=http://" + proxy, "NO_PROXY=" + strings.Join(list, ",")}
}

// detour is a line of an agent's settings in a project that can lead around the
// proxy or run something beside the agent (design 13.16).
type detour struct {
	file string
	line int
	text string
}

var detourKey = regexp.MustCompile(`(?i)(base_?url|api_?base|custom_headers|"?\bhooks\b"?\s*[:=\].]|disableAllHooks|apiKeyHelper|model_providers?\b)`)

// settingsMost is how much of a settings file is looked at, in bytes.
const settingsMost = 1 << 20

// detours looks through the agent's settings below dir. sum names what was
// found: the same findings have the same sum.
func detours(dir string, files []string) (found []detour, sum string, err error) {
	h := sha256.New()
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, "", fmt.Errorf("read agent settings: %w", err)
		}
		if len(data) > settingsMost {
			return nil, "", fmt.Errorf("read agent settings: %s has %d bytes", name, len(data))
		}
		before := len(found)
		for i, l := range bytes.Split(data, []byte("\n")) {
			if detourKey.Match(l) {
				found = append(found, detour{name, i + 1, strings.TrimSpace(string(l))})
			}
		}
		if len(found) > before {
			fmt.Fprintf(h, "%s %d\n", filepath.Join(dir, name), len(data))
			h.Write(data)
		}
	}
	if len(found) == 0 {
		return nil, "", nil
	}
	return found, hex.EncodeToString(h.Sum(nil)), nil
}
