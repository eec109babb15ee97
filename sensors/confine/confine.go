// Package confine is the process between gettierd and a sensor: a program that
// links it can start itself under the name Name, and is then nothing but a
// helper that gives up rights, starts the sensor and ends as it does. Under
// LauncherName it starts that helper in a user namespace, which gettierd itself
// cannot. Which rights, and what follows from the outcome, is decided in package sensors.
//
// The helper begins while the packages of the program are initialised, and most
// of them never are: their tables and patterns cost more than a sensor does.
// That is why this package imports the standard library alone, and why it has an
// init function.
package confine

// Name is the helper's argv[0].
const Name = "gettier-confine"

// Descriptors of the helper: the plan comes in, reports go out.
const (
	PlanFD   = 3
	ReportFD = 4
)

// Layers that the helper puts in force, as invocations name them.
const (
	NoNewRights = "no_new_privs" // no program can raise its rights
	Limits      = "rlimits"      // no core files; without effects no file beyond 64 MiB
	Landlock    = "landlock"     // no file is made, emptied or removed; see Appendable
)

// Plan is what the helper is told: what to run, and how far to confine it.
type Plan struct {
	Path     string   `json:"path"`
	Argv     []string `json:"argv"`
	ReadOnly bool     `json:"read_only"`
	// Host is set for what looks at this machine's network, and with it at who
	// holds its sockets: a Landlock domain would hide other processes' files.
	Host bool `json:"host,omitempty"`
}

// Appendable are the directories, beside the sensor's own working directory,
// under which a file that is there may still be opened for writing: programs
// that check their configuration open their logs and pid files.
var Appendable = [...]string{"/var/log", "/run"}

// Report is what the helper tells, one JSON object a line: the layers it put in
// force, or why the program did not start, and at the end the signal that ended
// it. Before it, the launcher says whether there is a helper: cloned, or with
// which error number the kernel refused.
type Report struct {
	Cloned  bool     `json:"cloned,omitempty"`
	Refused int      `json:"refused,omitempty"`
	Started bool     `json:"started,omitempty"`
	Layers  []string `json:"layers,omitempty"`
	Errno   int      `json:"errno,omitempty"`
	Signal  int      `json:"signal,omitempty"`
}
