// Package approval says what a person's approval of an action binds: the
// canonical form of a tool call and its hash, and what the same word covers for
// the rest of a task. It is pure. Whether an action needs an approval is ruled
// in daemon/action, who may give one in daemon/hold and daemon/peer.
package approval

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"gettier.dev/gettierd/daemon/action/shell"
)

// Call is a tool call as it came, with what the gate resolved of it.
type Call struct {
	Tool string
	Args []byte
	Read shell.Action
	Cwd  string // where the agent stands
	// Effect is the gate's, which may know more than the reading does.
	Effect shell.Effect
	Policy string // name or fingerprint of the rules in force
}

// Binding is what an approval of a call stands for.
type Binding struct {
	// Hash is the SHA-256 of the canonical action, hex.
	Hash string
	// Task is what an approval for the task is filed under: Hash from effect
	// destroy up, else the same programs and options in the same directory.
	Task string
	// Prefix are those programs and options, Targets everything else, in order.
	// Both are empty where an approval covers nothing but this very call.
	Prefix, Targets []string
}

// words that say nothing of what a call does: agents word them anew each time.
var told = map[string]bool{
	"description": true, "explanation": true, "justification": true, "timeout": true, "timeout_ms": true,
	"yield_time_ms": true, "max_output_tokens": true,
}

// Of makes the binding of a call (13: the resolved argv tree, its directories,
// what it sets in the environment, the rules).
func Of(c Call) Binding {
	h := sha256.New()
	put(h, "gettier action 1", c.Tool, c.Cwd, c.Policy, string(c.Effect), c.Read.Dir)
	arguments(h, c.Args)
	for _, cmd := range c.Read.Shell.Commands {
		put(h, "command", cmd.Cwd)
		list(h, cmd.Argv)
		list(h, cmd.Wrappers)
		list(h, cmd.Env)
	}
	b := Binding{Hash: hex.EncodeToString(h.Sum(nil))}
	b.Task = b.Hash
	if c.Effect.AtLeast(shell.Destroy) {
		return b
	}
	t := sha256.New()
	put(t, "gettier task 1", c.Tool, c.Cwd, c.Policy, string(c.Effect), c.Read.Dir, c.Read.Kind)
	if cmds := c.Read.Shell.Commands; len(cmds) > 0 {
		for _, cmd := range cmds {
			if cmd.Dynamic || inline(cmd.Argv) {
				return b // what it does is not in its words: nothing else is like it
			}
			fixed, free := split(cmd.Argv)
			put(t, "command", cmd.Cwd)
			list(t, fixed)
			list(t, cmd.Wrappers)
			list(t, cmd.Env)
			b.Prefix = append(b.Prefix, strings.Join(fixed, " "))
			b.Targets = append(b.Targets, free...)
		}
		b.Targets = append(b.Targets, c.Read.Paths...)
	} else {
		if len(c.Read.Paths) == 0 {
			return b
		}
		b.Prefix, b.Targets = []string{c.Tool}, slices.Clone(c.Read.Paths)
	}
	b.Task = hex.EncodeToString(t.Sum(nil))
	return b
}

// Covers reports whether an approval for the task of a call with these targets
// covers one with those, filed under the same id: no other targets, in the same
// order (mv a b is not mv b a).
func Covers(approved, asked []string) bool {
	i := 0
	for _, t := range asked {
		for i < len(approved) && approved[i] != t {
			i++
		}
		if i == len(approved) {
			return false
		}
		i++
	}
	return true
}

// split parts a program and its options from what it works on.
func split(argv []string) (fixed, free []string) {
	for i, a := range argv {
		if i == 0 || len(a) > 1 && a[0] == '-' {
			fixed = append(fixed, a)
		} else {
			free = append(free, a)
		}
	}
	return fixed, free
}

// inline reports code that stands in an argument.
func inline(argv []string) bool {
	return len(argv) > 1 && slices.ContainsFunc(argv[1:], func(a string) bool {
		switch {
		case a == "--eval", a == "--exec", a == "--command", a == "-exec", a == "-execdir":
			return true
		case len(a) > 1 && a[0] == '-' && a[1] != '-':
			return strings.ContainsAny(a[1:], "ceEr")
		}
		return strings.ContainsAny(a, "\n;|&$`")
	})
}

// arguments writes what of the arguments binds: all members but those that only
// tell, by name, as they were spelled; anything that is no plain object, whole.
func arguments(h hash.Hash, args []byte) {
	members := map[string]string{}
	twice := false
	if v := gjson.ParseBytes(args); gjson.ValidBytes(args) && v.IsObject() {
		v.ForEach(func(k, x gjson.Result) bool {
			_, seen := members[k.Str]
			twice = twice || seen
			members[k.Str] = x.Raw
			return true
		})
		if !twice {
			put(h, "object")
			for _, k := range slices.Sorted(maps.Keys(members)) {
				if !told[k] {
					put(h, k, members[k])
				}
			}
			return
		}
	}
	put(h, "raw", string(args))
}

// put writes strings so that no two lists of them write the same bytes.
func put(h hash.Hash, ss ...string) {
	var n [8]byte
	for _, s := range ss {
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
}

func list(h hash.Hash, ss []string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(ss)))
	h.Write(n[:])
	put(h, ss...)
}
