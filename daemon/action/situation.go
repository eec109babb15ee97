package action

// Situation is what a caller knows beside the action and the policy. Its zero
// value knows nothing: nobody counts, and no evidence of the disk is at hand.
type Situation struct {
	Rate *Rate // nil where nobody counts this actor's actions
	Disk Disk  // nil where nothing is known of the disk
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
}

// Evidence is one answer of a Disk.
type Evidence struct {
	OK  bool
	Why string
}
