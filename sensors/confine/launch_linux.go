package confine

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// LauncherName is the argv[0] of the process between gettierd and the helper
// where the helper gets a user namespace: whoever clones one writes the
// namespace's uid_map, and the kernel gives that file to root when the writer is
// not dumpable, as gettierd is (proc(5)). An exec makes a process dumpable again.
// Its one argument is a Clone as JSON.
const LauncherName = "gettier-launch"

// Clone is how the helper is cloned: Linux's flags, the user and group that it is
// inside, and capabilities that it keeps over exec.
type Clone struct {
	Flags   uintptr   `json:"flags"`
	UID     int       `json:"uid"`
	GID     int       `json:"gid"`
	Ambient []uintptr `json:"ambient,omitempty"`
}

// launch starts the helper, says on the descriptor of reports whether the kernel
// let it, and ends as the helper does. It stays outside of the namespaces, in the
// process group that gettierd signals.
func launch(arg string) int {
	out := os.NewFile(ReportFD, "report")
	say := func(r Report) { _ = json.NewEncoder(out).Encode(r) } // nobody reads: then nobody waits for it either
	var c Clone
	if err := json.Unmarshal([]byte(arg), &c); err != nil {
		say(Report{Refused: int(syscall.EINVAL)})
		return 125
	}
	// As the helper, it has to outlive what it started.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	p, err := os.StartProcess("/proc/self/exe", []string{Name}, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, os.NewFile(ControlFD, "control"), out},
		Sys: &syscall.SysProcAttr{
			Pdeathsig: syscall.SIGKILL, Cloneflags: c.Flags, AmbientCaps: c.Ambient,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: c.UID, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: c.GID, HostID: os.Getgid(), Size: 1}},
		},
	})
	if err != nil {
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			errno = syscall.EINVAL
		}
		say(Report{Refused: int(errno)})
		return 125
	}
	say(Report{Cloned: true})
	// The helper alone holds the pipes from here on: their ends show its end.
	syscall.Close(ControlFD)
	out.Close()
	st, err := p.Wait()
	if err != nil {
		return 125
	}
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 125
	}
	return st.ExitCode()
}
