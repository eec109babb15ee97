// Package confine is the process between gettierd and a sensor: a program that
// links it can start itself under the name Name, and is then nothing but a worker
// that starts sensors, one after the other, from threads that gave up their
// rights first. Under LauncherName it starts that worker in a user namespace,
// which gettierd itself cannot. Which rights, and what follows from the outcome,
// is decided in package sensors.
//
// A worker begins while the packages of the program are initialised, and most of
// them never are: their tables and patterns cost more than a sensor does. That is
// why this package imports the standard library alone, and why it has an init
// function. It is kept for the next sensor, since starting it still costs more
// than starting the sensor.
package confine

// Name is the worker's argv[0].
const Name = "gettier-confine"

// Descriptors of a worker: a socket of packets that orders come in by and reports
// go out by, each one JSON object; and the launcher's report.
const (
	ControlFD = 3
	ReportFD  = 4
)

// Scratch is memory of each sensor's own where there are Mounts, empty at its
// start: another one's is never seen there.
const Scratch = "/dev/shm"

// MaxOrder bounds a packet in bytes.
const MaxOrder = 192 << 10

// Layers that a worker puts in force, as invocations name them.
const (
	NoNewRights = "no_new_privs"   // no program can raise its rights
	Limits      = "rlimits"        // no core files; without effects no file beyond 64 MiB
	Landlock    = "landlock"       // no file is made, emptied or removed; see Appendable
	Files       = "fs:ro"          // every file system is read-only; what is written under Appendable is dropped at the end
	NoTCP       = "net:no_tcp"     // no TCP connection, where there is no network namespace
	Hidden      = "sockets:hidden" // what Mounts.Hide names is empty
)

// Order is what a worker is told: one of its fields.
type Order struct {
	Setup *Setup `json:"setup,omitempty"` // the first one
	// Plan comes with two descriptors, the sensor's output and diagnostics.
	Plan   *Plan `json:"plan,omitempty"`
	Signal int   `json:"signal,omitempty"` // for all that the running plan started
}

// Setup is told once. Listen are addresses of the network namespace's own
// loopback; their listeners come back with the report, in this order.
type Setup struct {
	Listen []string `json:"listen,omitempty"`
}

// Plan is one sensor: what to run, and how far to confine it.
type Plan struct {
	Path     string   `json:"path"`
	Argv     []string `json:"argv"`
	Env      []string `json:"env"`
	Dir      string   `json:"dir"`
	ReadOnly bool     `json:"read_only,omitempty"`
	// Offline asks for no network, where there is no network namespace.
	Offline bool `json:"offline,omitempty"`
	// Host is set for what looks at this machine's network, and with it at who
	// holds its sockets: a Landlock domain would hide other processes' files.
	Host   bool    `json:"host,omitempty"`
	Mounts *Mounts `json:"mounts,omitempty"` // nil without a mount namespace
	User   *User   `json:"user,omitempty"`   // nil: as the worker
}

// User is another user that a sensor runs as.
type User struct {
	UID uint32 `json:"uid"`
	GID uint32 `json:"gid"`
}

// Mounts is how a sensor sees the file system: all of it read-only, with a
// memory of its own at Scratch.
type Mounts struct {
	Hide  []string `json:"hide,omitempty"`  // files and directories that are empty
	Keep  []string `json:"keep,omitempty"`  // sockets under them that stay
	Hosts string   `json:"hosts,omitempty"` // put before the lines of /etc/hosts
}

// Appendable are the directories, beside the sensor's own working directory,
// under which a file that is there may still be opened for writing: programs
// that check their configuration open their logs and pid files.
var Appendable = [...]string{"/var/log", "/run"}

// Report is what a worker tells: that it is ready, that the sensor started and in
// which layers, or why not, and how it ended. Before it, on a pipe of its own,
// the launcher says whether there is a worker: cloned, or with which error number
// the kernel refused.
type Report struct {
	Cloned  bool     `json:"cloned,omitempty"`
	Refused int      `json:"refused,omitempty"`
	Ready   bool     `json:"ready,omitempty"`
	Started bool     `json:"started,omitempty"`
	Layers  []string `json:"layers,omitempty"`
	Ended   bool     `json:"ended,omitempty"`
	Errno   int      `json:"errno,omitempty"` // it did not start
	Exit    int      `json:"exit,omitempty"`
	Signal  int      `json:"signal,omitempty"`
}
