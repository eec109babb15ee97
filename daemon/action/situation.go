package action

import "gettier.dev/gettierd/daemon/action/shell"

// Situation is what a caller knows beside the action and the policy. Its zero
// value knows nothing: nobody counts, and no evidence of the disk is at hand.
type Situation struct {
	Rate *Rate // nil where nobody counts this actor's actions
	Disk Disk  // nil where nothing is known of the disk
	// Semantic is what an evaluator of meaning found, nil where none is set up.
	Semantic *Semantic
}

// Rate is what a limiter found out about an actor (I-197, D12).
type Rate struct {
	Seen      int  `json:"seen"`      // actions within the window, this one included
	Throttled bool `json:"throttled"` // more than the window takes
	Full      bool `json:"full"`      // no room to count one more actor
}

// Disk gives evidence on paths. An implementation must answer the same while one
// action is judged; what it does not know it does not vouch for.
type Disk interface {
	// Regenerable reports whether all that removing path takes away is made again
	// by a build (13.6). cwd is where the command runs, "" where unknown. That the
	// directory's name is one of the list has been checked by the caller.
	Regenerable(cwd, path string) Evidence
	// Real is where path leads once links are followed, "" where that is unknown.
	// The last part need not exist.
	Real(cwd, path string) string
	// Script is what a file holds that a command runs, nil unless this session wrote
	// or changed it. There may be several texts: what lies there, and what an earlier
	// call puts there that has not run yet.
	Script(cwd, path string) []string
}

// scripts lets a reader look at the scripts of a session, from where the action
// starts.
type scripts struct {
	disk Disk
	cwd  string
}

func (s scripts) Script(path string) []string { return s.disk.Script(s.cwd, path) }

// reader is who reads the action's commands.
func (w *weighing) reader() shell.Reader {
	if w.about.Disk == nil {
		return shell.Reader{}
	}
	return shell.Reader{Files: scripts{w.about.Disk, w.action.Cwd}}
}

// Evidence is one answer of a Disk.
type Evidence struct {
	OK  bool
	Why string
}
