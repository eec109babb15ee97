package action

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"gettier.dev/gettierd/daemon/action/shell"
)

// executionGate holds an action to the tools, paths, hosts and methods that the
// policy names, and asks for what a call cannot do without (I-198, B5). Scores
// are the seed's.
func executionGate(w *weighing) error {
	if !w.operates() {
		return nil
	}
	p := w.policy
	add := func(tag string, score, confidence int, why string) {
		w.signal(Signal{Stage: "execution_gate", Tag: tag, Score: score, Confidence: confidence, State: Allow, Reason: why})
	}
	names := w.toolNames()
	if listed(p.Tools.Deny, names) || len(p.Tools.Allow) > 0 && !listed(p.Tools.Allow, names) {
		w.signal(Signal{Stage: "execution_gate", Tag: "tool_not_allowed", Score: 95, Confidence: 95, State: Allow, Reason: "the policy does not allow the tool " + shell.OneLine(names[0], 80)})
	}
	if w.read.Kind == "filesystem" && w.effect.AtLeast(shell.Mutate) && len(w.read.Paths) == 0 {
		add("missing_target", 65, 90, "a write that names no file")
	}
	if len(p.Execution.Roots) > 0 && w.effect.AtLeast(shell.Mutate) {
		for _, f := range w.read.Paths {
			if !w.inRoots(f) {
				w.signal(Signal{Stage: "execution_gate", Tag: "path_outside_roots", Score: 60, Confidence: 90, State: RequireConfirm, Reason: "writes " + shell.OneLine(f, 120) + ", which lies outside of the allowed roots"})
				break
			}
		}
	}
	if len(p.Execution.Hosts) > 0 {
		for _, h := range w.hosts() {
			if !hostAllowed(p.Execution.Hosts, h) {
				w.signal(Signal{Stage: "execution_gate", Tag: "host_not_allowed", Score: 60, Confidence: 90, State: RequireConfirm, Reason: "speaks to " + shell.OneLine(h, 80) + ", which is none of the allowed hosts"})
				break
			}
		}
	}
	if len(p.Execution.Methods) > 0 && w.read.Kind == "http" {
		if m := strings.ToUpper(gjson.GetBytes(w.action.Args, "method").Str); m != "" && !slices.Contains(p.Execution.Methods, m) {
			add("method_not_allowed", 85, 90, "the policy does not allow "+shell.OneLine(m, 20)+" requests")
		}
	}
	return nil
}

// toolNames are the names that a list of tools may call this action's tool by.
func (w *weighing) toolNames() []string {
	if w.action.Tool != "" {
		return []string{w.action.Tool, w.read.Kind}
	}
	return []string{"shell"}
}

// listed reports a name that the list holds, * at its end standing for anything.
func listed(list, names []string) bool {
	for _, l := range list {
		for _, n := range names {
			if glob(l, n) {
				return true
			}
		}
	}
	return false
}

// real is where a path leads, links followed where the disk can tell.
func (w *weighing) real(p string) string {
	if w.about.Disk != nil {
		if r := w.about.Disk.Real(w.action.Cwd, p); r != "" {
			return r
		}
	}
	if !path.IsAbs(p) && !strings.HasPrefix(p, "~") && !strings.HasPrefix(p, "$") && w.action.Cwd != "" {
		p = path.Join(w.action.Cwd, p)
	}
	return path.Clean(p)
}

func (w *weighing) inRoots(p string) bool {
	if strings.HasPrefix(p, "/dev/") {
		return true // not a place to keep anything
	}
	r := w.real(p)
	for _, root := range w.policy.Execution.Roots {
		if root == "." {
			root = w.action.Cwd
			if root == "" { // relative to where it starts is all that is known
				if !path.IsAbs(r) && !strings.HasPrefix(r, "..") && !strings.HasPrefix(r, "~") && !strings.HasPrefix(r, "$") {
					return true
				}
				continue
			}
		}
		if root = path.Clean(root); r == root || strings.HasPrefix(r, strings.TrimSuffix(root, "/")+"/") {
			return true
		}
	}
	return false
}

// hosts are the machines that an action says it speaks to.
func (w *weighing) hosts() []string {
	var out []string
	add := func(s string) {
		if i := strings.Index(s, "://"); i > 0 {
			if u, err := url.Parse(s); err == nil && u.Hostname() != "" {
				out = append(out, strings.ToLower(u.Hostname()))
			} else {
				out = append(out, "?")
			}
		}
	}
	for _, c := range w.read.Shell.Commands {
		for i, a := range c.Argv {
			if i == 0 {
				continue
			}
			switch c.Program() {
			case "curl", "wget", "http", "https", "xh", "httpie":
				if !strings.HasPrefix(a, "-") && !strings.Contains(a, "://") && strings.Contains(a, ".") && !strings.ContainsAny(a, " =@{") {
					a = "http://" + a
				}
				add(a)
			case "git", "svn", "hg", "pip", "npm", "go", "docker":
				add(a)
			}
		}
		for _, wr := range c.Wrappers {
			if wr == "ssh" {
				out = append(out, "?") // the reader keeps what runs there, not the host
			}
		}
	}
	for _, n := range [...]string{"url", "uri"} {
		if v := gjson.GetBytes(w.action.Args, n); v.Type == gjson.String && w.read.Kind != "shell" {
			add(v.Str)
		}
	}
	return out
}

func hostAllowed(list []string, host string) bool {
	for _, l := range list {
		l = strings.ToLower(l)
		if l == host || l == "*" || strings.HasPrefix(l, ".") && (strings.HasSuffix(host, l) || host == l[1:]) {
			return true
		}
	}
	return false
}
