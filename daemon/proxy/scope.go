package proxy

import (
	"path/filepath"
	"strings"

	"gettier.dev/gettierd/daemon/peer"
	"gettier.dev/gettierd/daemon/turn"
)

// scope finds the registered root that contains the peer's working directory.
// A name in path or header only picks among the roots that do (13.7): the
// deepest one otherwise. No certain root, no verdict.
func (s *Server) scope(projects []Project, named string, proc peer.Process) turn.Scope {
	if proc.Cwd == "" {
		return turn.Scope{Evidence: "the peer's working directory is unknown"}
	}
	if !proc.SameFiles() {
		return turn.Scope{Named: named, Evidence: "pid " + itoa(proc.PID) + " sees other files than the daemon: " + filepath.Clean(proc.Cwd) + " is another place there"}
	}
	cwd := filepath.Clean(proc.Cwd)
	var best Project
	var in []Project
	for _, p := range projects {
		if contains(p.Root, cwd) {
			in = append(in, p)
			if len(p.Root) > len(best.Root) {
				best = p
			}
		}
	}
	sc := turn.Scope{Cwd: cwd, Env: proc.Env}
	if named != "" {
		for _, p := range in {
			if p.Name == named {
				sc.Name, sc.Root, sc.Evidence = "project:"+p.Name, p.Root, "named by the client, contains cwd of pid "+itoa(proc.PID)
				return sc
			}
		}
		sc.Named, sc.Name = named, ""
		sc.Evidence = "the client names project " + named + ", which does not contain the cwd of pid " + itoa(proc.PID)
		return sc
	}
	if best.Root == "" {
		sc.Evidence = "no registered project contains the cwd of pid " + itoa(proc.PID)
		return sc
	}
	sc.Name, sc.Root, sc.Evidence = "project:"+best.Name, best.Root, "cwd of pid "+itoa(proc.PID)
	return sc
}

// contains reports whether dir lies in root or is it.
func contains(root, dir string) bool {
	if root == dir {
		return true
	}
	if root != "/" {
		root += "/"
	}
	return strings.HasPrefix(dir, root)
}
