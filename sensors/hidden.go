package sensors

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// machineSockets are services of the machine through which a program that reaches
// them acts with more rights than its own, or as another program.
var machineSockets = []string{
	"/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/crio/crio.sock", "/run/buildkit/buildkitd.sock",
	"/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/userdb", "/run/systemd/io.systemd.*", "/run/libvirt/libvirt-sock", "/run/snapd.socket", "/run/lxd.socket",
	"/tmp/.X11-unix", "/tmp/.ICE-unix", "/tmp/ssh-*", "/tmp/tmux-*", "/tmp/dbus-*",
}

// homeSockets are the same below a home directory, runtimeSockets below
// XDG_RUNTIME_DIR where that cannot be hidden as a whole.
var (
	homeSockets    = []string{".docker/run", ".docker/desktop", ".colima/*/docker.sock", ".rd/docker.sock", ".lima/*/sock", ".orbstack/run", ".gnupg/S.*", ".1password/agent.sock", ".ssh/agent"}
	runtimeSockets = []string{"bus", "docker.sock", "podman", "gnupg", "keyring", "gcr", "ssh-agent*", "systemd", "gettier", "tmux-*", "wayland-*", "pipewire-*"}
)

// hidden lists what a run does not see: our own state, and the sockets of agents
// for keys, of message buses, of container engines and of terminals. It is looked
// for at each run, since they come and go. What the definition asks for stays: an
// entry of its network names the socket.
func (r *Runner) hidden(p *prepared) []string {
	list := append([]string{}, r.o.Hide...)
	find := func(pattern string) {
		if !strings.ContainsAny(pattern, "*") {
			list = append(list, pattern)
			return
		}
		found, _ := filepath.Glob(pattern) // the patterns are ours
		list = append(list, found...)
	}
	for _, s := range machineSockets {
		find(s)
	}
	env := func(name string) string {
		v, _ := r.o.Env(name)
		return v
	}
	if home := env("HOME"); filepath.IsAbs(home) {
		for _, s := range homeSockets {
			find(filepath.Join(home, s))
		}
	}
	runtime := env("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(runtime) {
		runtime = fmt.Sprintf("/run/user/%d", os.Getuid())
	}
	list = append(list, runtime)
	for _, s := range runtimeSockets {
		find(filepath.Join(runtime, s))
	}
	if tmux := env("TMUX_TMPDIR"); filepath.IsAbs(tmux) {
		find(filepath.Join(tmux, "tmux-*"))
	}
	for _, name := range []string{"SSH_AUTH_SOCK", "DOCKER_HOST", "CONTAINER_HOST", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS"} {
		list = append(list, socketsIn(env(name))...)
	}
	asked := map[string]bool{}
	for _, s := range (confinement{network: p.req.Sensor.Network}).sockets() {
		asked[resolved(s)] = true
	}
	seen := map[string]bool{}
	keep := list[:0]
	for _, path := range list {
		full := resolved(path)
		if full == "" || seen[full] || asked[full] || r.needs(p, full) {
			continue
		}
		seen[full] = true
		keep = append(keep, full)
	}
	return keep
}

// needs reports whether hiding path would hide what the sensor stands on.
func (r *Runner) needs(p *prepared, path string) bool {
	for _, at := range []string{p.inv.Cwd, p.req.Root, filepath.Dir(p.req.Sensor.File), "/usr", "/etc", "/proc", "/dev"} {
		if at != "" && below(path, at) {
			return true
		}
	}
	return false
}

// socketsIn are the paths in an address such as unix:///run/docker.sock,
// unix:path=/run/user/1/bus,guid=1;… or a bare path.
func socketsIn(address string) (paths []string) {
	for one := range strings.SplitSeq(address, ";") {
		one = strings.TrimPrefix(one, "unix:")
		for _, part := range strings.Split(one, ",") {
			part = strings.TrimPrefix(strings.TrimPrefix(part, "path="), "//")
			if filepath.IsAbs(part) {
				paths = append(paths, filepath.Clean(part))
			}
		}
	}
	return paths
}

// resolved is where a path that exists leads, else "".
func resolved(path string) string {
	full, err := filepath.EvalSymlinks(path)
	if err != nil || !filepath.IsAbs(full) {
		return ""
	}
	return full
}
