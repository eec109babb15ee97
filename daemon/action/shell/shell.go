// Package shell reads commands and tool calls: which programs a command line
// runs, with which arguments, and what that does to the system. It parses, it
// never runs anything, and it looks at no file but what its Reader is told of: the
// same text gives the same reading everywhere. Whether an action may run is decided in daemon/action and
// daemon/gate, never here.
package shell

// Effect is what an action does, weakest first.
type Effect string

const (
	ReadOnly    Effect = "read_only"
	Mutate      Effect = "mutate"
	Opaque      Effect = "opaque"
	Destroy     Effect = "destroy"
	Catastrophe Effect = "catastrophe"
)

// Rank orders effects; an unknown one ranks as opaque, never as harmless.
func (e Effect) Rank() int {
	switch e {
	case ReadOnly:
		return 0
	case Mutate:
		return 1
	case Destroy:
		return 3
	case Catastrophe:
		return 4
	}
	return 2
}

// AtLeast reports whether e is as strong as o or stronger; no effect at all is
// weaker than any.
func (e Effect) AtLeast(o Effect) bool { return e != "" && e.Rank() >= o.Rank() }

// Join returns the stronger of two effects; "" is no effect at all.
func Join(a, b Effect) Effect {
	if a == "" || b != "" && b.Rank() > a.Rank() {
		return b
	}
	return a
}

// Command is one program that a command line runs, wrappers resolved.
type Command struct {
	Argv     []string // argv[0] as spelled, quotes and escapes removed
	Wrappers []string // sudo, env, bash -c …, outermost first
	Env      []string // NAME=value words set for it
	Cwd      string   // directory a cd before it leads to, "" when unchanged
	Effect   Effect
	Rule     string // id of the rule that decided
	Why      string
	Dynamic  bool // an argument is known only when it runs
	// Regenerable: it removes nothing but directories whose name says that a
	// build makes them again. Whether that is true here only the disk can tell
	// (13.6), so Effect does not count on it.
	Regenerable bool
	// Removes are the paths of a recursive removal that touches nothing else, when
	// every one of them is known, named and below the directory it runs in.
	Removes []string
	Start   int // byte span in the text that was read
	End     int
}

// Program is the base name of the command.
func (c Command) Program() string {
	if len(c.Argv) == 0 {
		return ""
	}
	return base(c.Argv[0])
}

// Reading is what a command line does.
type Reading struct {
	Effect   Effect
	Rest     Effect // Effect without the commands that have Removes
	Commands []Command
	Paths    []string // files written or removed, as spelled
	Opaque   bool     // some of it cannot be known before it runs
	Rule     string   // the rule behind Effect
	Why      string   // one line behind Effect
	Wrote    []File   // files written with a text that is known
}

// Words returns the resolved argv of every simple command.
func (r Reading) Words() [][]string {
	out := make([][]string, len(r.Commands))
	for i := range r.Commands {
		out[i] = r.Commands[i].Argv
	}
	return out
}

// Bounds of one reading. They are counts, never a clock, so that a reading is
// the same every time; what goes beyond them is opaque.
const (
	maxText     = 64 << 10 // bytes of command text
	maxDepth    = 12       // nested readings: bash -c in bash -c …
	maxSteps    = 20_000   // nodes and words walked in all
	maxCommands = 1_000
	maxPaths    = 1_000
	maxWord     = 8 << 10 // bytes of one resolved word
)

// Read is Reader's, with no file to look at.
func Read(cmd string) Reading { return Reader{}.Read(cmd) }

// ReadArgv is Reader's, with no file to look at.
func ReadArgv(argv []string) Reading { return Reader{}.ReadArgv(argv) }

func clip(s string) string {
	if len(s) > maxText {
		return s[:maxText]
	}
	return s
}
