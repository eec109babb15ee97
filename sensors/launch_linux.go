package sensors

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"gettier.dev/gettierd/sensors/confine"
)

// rung is one way to start the helper. The last one is no helper at all.
type rung struct{ pid, net, helper bool }

var rungs = []rung{{true, true, true}, {true, false, true}, {false, false, true}, {}}

// launch starts a command on the highest rung that the kernel allows. told is
// called once the process was reaped and gives what the helper said, nil
// without one. A sensor that runs as another user has no helper: it could not
// read our own program file.
func launch(c command, process func() *exec.Cmd) (cmd *exec.Cmd, told func() *confine.Report, err error) {
	from := len(rungs) - 1
	if c.confine.wanted && c.user == nil {
		from = int(c.ladder.from.Load())
	}
	for i := from; i < len(rungs); i++ {
		r := rungs[i]
		r.net = r.net && c.confine.noNetwork()
		// For an ordinary user a namespace of processes comes with one of users, and
		// from inside of that nobody else's files in /proc can be seen.
		r.pid = r.pid && !(c.confine.host() && os.Geteuid() != 0)
		if cmd, told, err = climb(c, process(), r); err == nil {
			if i > from {
				c.ladder.from.Store(int32(i))
			}
			return cmd, told, nil
		}
		if !r.helper || !refused(err) {
			return nil, nil, err
		}
	}
	return nil, nil, err
}

// refused: the kernel, or a policy on top of it, does not give us a namespace.
func refused(err error) bool {
	for _, e := range []error{syscall.EPERM, syscall.EACCES, syscall.EINVAL, syscall.ENOSPC, syscall.ENOSYS, syscall.EUSERS, syscall.ENOENT} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func climb(c command, cmd *exec.Cmd, r rung) (*exec.Cmd, func() *confine.Report, error) {
	attr := attributes(c.user)
	cmd.SysProcAttr = attr
	if !r.helper {
		cmd.Path, cmd.Args = c.path, c.argv
		return cmd, func() *confine.Report { return nil }, cmd.Start()
	}
	var layers []string
	if r.pid {
		attr.Cloneflags |= syscall.CLONE_NEWPID
		layers = append(layers, layerPID)
	}
	if r.net {
		attr.Cloneflags |= syscall.CLONE_NEWNET
		layers = append(layers, layerNoNet)
	}
	argv := []string{confine.Name}
	launched := attr.Cloneflags != 0 && os.Geteuid() != 0
	if launched {
		// The launcher clones what needs a user namespace; we are not dumpable.
		how, err := json.Marshal(confine.Clone{Flags: attr.Cloneflags | syscall.CLONE_NEWUSER, UID: os.Getuid(), GID: os.Getgid()})
		if err != nil {
			return nil, nil, fmt.Errorf("describe namespaces: %w", err)
		}
		attr.Cloneflags, argv = 0, []string{confine.LauncherName, string(how)}
	}
	planOut, planIn, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make pipe: %w", err)
	}
	saysOut, saysIn, err := os.Pipe()
	if err != nil {
		planOut.Close()
		planIn.Close()
		return nil, nil, fmt.Errorf("make pipe: %w", err)
	}
	cmd.Path, cmd.Args = "/proc/self/exe", argv
	cmd.ExtraFiles = []*os.File{planOut, saysIn} // confine.PlanFD, confine.ReportFD
	err = cmd.Start()
	planOut.Close()
	saysIn.Close()
	if err != nil {
		planIn.Close()
		saysOut.Close()
		return nil, nil, err
	}
	says := bufio.NewReader(io.LimitReader(saysOut, 64<<10))
	if launched {
		if err := cloned(says, saysOut); err != nil {
			planIn.Close()
			saysOut.Close()
			signalGroup(cmd.Process.Pid, kill)
			_ = cmd.Wait() // how it ended is what err says
			return nil, nil, err
		}
	}
	said := make(chan []byte, 1) // one answer, taken or not
	go func() {
		// A plan that cannot be written leaves the helper without one: it ends and says nothing.
		_ = json.NewEncoder(planIn).Encode(confine.Plan{Path: c.path, Argv: c.argv, ReadOnly: c.confine.readOnly, Host: c.confine.host()})
		planIn.Close()
		b, _ := io.ReadAll(says) // what could be read counts
		saysOut.Close()
		said <- b
	}()
	return cmd, func() *confine.Report {
		rep := reports(<-said)
		if rep.Started {
			rep.Layers = append(layers, rep.Layers...)
		}
		return &rep
	}, nil
}

// cloning bounds how long the launcher may take to say whether there is a helper.
const cloning = 10 * time.Second

// cloned waits for the launcher's word. The error is the kernel's, so that the
// next rung can be tried.
func cloned(says *bufio.Reader, pipe *os.File) error {
	if err := pipe.SetReadDeadline(time.Now().Add(cloning)); err != nil {
		return fmt.Errorf("wait for launcher: %w", err)
	}
	line, err := says.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("wait for launcher: %w", err)
	}
	var r confine.Report
	if err := json.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("wait for launcher: %w", err)
	}
	if !r.Cloned {
		return fmt.Errorf("start helper: %w", syscall.Errno(r.Refused))
	}
	return pipe.SetReadDeadline(time.Time{})
}
