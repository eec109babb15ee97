package spec

import (
	"fmt"
	"path"
	"strings"
)

// Reach says in words what a sensor may do, for the person who approves it: one
// clause each, the whole in the first, and then what its definition asks for
// beyond reading this machine's files. The words are the definition's, not a
// promise: the sandbox in force is on each invocation.
func Reach(s *Sensor) []string {
	out := []string{"built in: reads files itself, runs no program"}
	switch {
	case s.Probe != "":
	case s.Effects == None:
		out[0] = "runs " + program(s) + ", which may read every file that you can read and write none"
	default:
		out[0] = "runs " + program(s) + ", which may change whatever you can change"
	}
	if s.Probe == "" {
		out = append(out, network(s)...)
	}
	if len(s.Env) > 0 {
		whose := "gettierd's"
		if s.EnvFrom == "agent" {
			whose = "the agent's"
		}
		out = append(out, "is given "+strings.Join(s.Env, ", ")+" of "+whose+" environment")
	}
	if s.RunsAs != "" {
		out = append(out, "runs as the user "+s.RunsAs)
	}
	if path.IsAbs(s.Cwd) && s.Cwd != "/" {
		out = append(out, "works in "+s.Cwd)
	}
	for i, w := range s.Argv {
		if i > 0 && outside(w.Text) && !strings.Contains(w.Text, "{{") {
			out = append(out, "is pointed at "+w.Text)
		}
	}
	for _, p := range s.Params {
		if p.Type == "path" && outside(p.Allow) {
			among := "among " + p.Allow
			if p.Allow == "**" {
				among = "anywhere"
			}
			out = append(out, fmt.Sprintf("is pointed at what a claim or an action names %s ({{%s}})", among, p.Name))
		}
	}
	if len(s.RedactAllow) > 0 {
		out = append(out, "shows the values of "+strings.Join(s.RedactAllow, ", "))
	}
	return out
}

func program(s *Sensor) string {
	if len(s.Argv) == 0 {
		return "nothing"
	}
	return s.Argv[0].Text
}

// outside reports a path, or a glob of some, that a project does not hold.
func outside(p string) bool {
	return path.IsAbs(p) || p == ".." || strings.HasPrefix(p, "../") || strings.Contains(p, "/../") || strings.HasPrefix(p, "**")
}

// network says which connections a definition asks for.
func network(s *Sensor) (out []string) {
	for _, n := range s.Network {
		switch p, socket := strings.CutPrefix(n, "unix:"); {
		case n == "host":
			return []string{"connects anywhere that you can: every network, and every socket of this machine, container engines, D-Bus and key agents among them"}
		case socket:
			out = append(out, "talks to the socket "+p+socketMeans(p))
		default:
			out = append(out, "connects to "+n)
		}
	}
	return out
}

// sockets lists what it means to reach one, by a part of its name.
var sockets = []struct{ part, means string }{
	{"docker", "a container engine: as good as root"}, {"containerd", "a container engine: as good as root"}, {"podman", "a container engine: acts with your rights outside the sandbox"},
	{"crio", "a container engine: as good as root"}, {"buildkit", "builds run there, outside the sandbox"}, {"libvirt", "virtual machines: as good as root"}, {"lxd", "a container engine: as good as root"},
	{"system_bus", "D-Bus: services of the machine act for it"}, {"dbus", "D-Bus: your programs act for it"}, {"/bus", "D-Bus: your programs act for it"},
	{"systemd", "the service manager: it starts programs outside the sandbox"}, {"ssh-", "a key agent: it signs with your keys"}, {".ssh/", "a key agent: it signs with your keys"},
	{"gpg-agent", "a key agent: it signs with your keys"}, {"keyring", "your passwords and keys"}, {"1password", "your passwords and keys"}, {"gettier", "gettier itself"},
	{"tmux", "a terminal: it types there"}, {"X11", "the display: it sees and types what you do"}, {"wayland", "the display"},
}

func socketMeans(p string) string {
	for _, s := range sockets {
		if strings.Contains(p, s.part) {
			return " (" + s.means + ")"
		}
	}
	return ""
}
