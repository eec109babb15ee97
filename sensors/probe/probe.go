// Package probe holds the built-in sensors: each reads files or the process
// table itself and prints named values, as a program would, so that the same
// extraction and judging follow. Nothing runs here, nothing is written, nothing
// goes over a network (13.1): what a repository brings along is data. A value
// that cannot be told for certain is left out, never guessed. What a value means
// for a claim is decided in sensors/verdict, by the rules of a definition.
package probe

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// In is one measurement: a place, a process's environment and parameters.
type In struct {
	Root string // the registered project, "" for none
	Dir  string // where the sensor stands: the top of a work tree, or of the project
	Cwd  string // where the agent stands, in Dir; "" = Dir
	Home string // the user's, "" for none
	// Env looks a variable of the agent's process up; nil when that process is
	// not known, and then nothing that depends on it is told.
	Env    func(string) (string, bool)
	Params map[string]string
	Now    time.Time
}

// ErrNone says that there is nothing here of what the probe measures.
var ErrNone = errors.New("nothing of this kind is here")

// ErrCap says that there is more than a probe reads.
var ErrCap = errors.New("more than a probe reads")

// Run measures and returns lines of `key = "value"`.
func Run(ctx context.Context, name string, in In) ([]byte, error) {
	f, ok := table[name]
	if !ok {
		return nil, fmt.Errorf("there is no probe %q", name)
	}
	p := &probe{In: in, ctx: ctx}
	if p.Cwd == "" {
		p.Cwd = p.Dir
	}
	defer p.close()
	if err := f(p); err != nil {
		return nil, err
	}
	return []byte(p.out.String()), nil
}

// Names lists the probes that are implemented.
func Names() []string {
	out := make([]string, 0, len(table))
	for n := range table {
		out = append(out, n)
	}
	return out
}

var table = map[string]func(*probe) error{
	"claim.file":       (*probe).claimFile,
	"compose.project":  (*probe).composeProject,
	"db.target":        (*probe).dbTarget,
	"env.names":        (*probe).envNames,
	"file.kind":        (*probe).fileKind,
	"git.branch":       (*probe).gitBranch,
	"git.dirty":        (*probe).gitDirty,
	"git.remote":       (*probe).gitRemote,
	"git.where":        (*probe).gitWhere,
	"infra.context":    (*probe).infraContext,
	"nginx.files":      (*probe).nginxFiles,
	"node.pm":          (*probe).nodePM,
	"os.tools":         (*probe).osTools,
	"ports.owner":      (*probe).portsOwner,
	"proc.fresh":       (*probe).procFresh,
	"python.env":       (*probe).pythonEnv,
	"runtime.versions": (*probe).runtimeVersions,
	"symbols":          (*probe).symbols,
	"test.command":     (*probe).testCommand,
	"time.zone":        (*probe).timeZone,
}

// probe is one run.
type probe struct {
	In
	ctx  context.Context
	out  strings.Builder
	tree *tree
	read int64
}

func (p *probe) close() {
	if p.tree != nil {
		p.tree.root.Close()
	}
}

// maxShown bounds one value in bytes; a model may come to see it (13.14).
const maxShown = 200

// put prints a value on one line, without characters that could pass for
// anything but text. An empty one is not printed.
func (p *probe) put(key, value string) {
	value = strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar, r == '\u2028', r == '\u2029':
			return -1
		}
		return r
	}, value)
	if value = strings.TrimSpace(value); value == "" {
		return
	}
	if len(value) > maxShown {
		value = strings.ToValidUTF8(value[:maxShown-3], "") + "..."
	}
	p.out.WriteString(key + " = \"" + value + "\"\n")
}

func (p *probe) putBool(key string, v bool) {
	if v {
		p.put(key, "yes")
	} else {
		p.put(key, "no")
	}
}

func (p *probe) putInt(key string, v int) { p.put(key, strconv.Itoa(v)) }

// param is a parameter's value; none and auto, which definitions have as
// defaults, are no value.
func (p *probe) param(name string) string {
	switch v := p.Params[name]; v {
	case "none", "auto":
		return ""
	default:
		return v
	}
}

// env looks a variable of the agent up. known is false when its environment is.
func (p *probe) env(name string) (value string, set, known bool) {
	if p.Env == nil {
		return "", false, false
	}
	value, set = p.Env(name)
	return value, set, true
}

// below reports whether path lies inside dir or is dir, by name.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
