package confine

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

// From the kernel's headers, the same on every architecture that Go has; the
// standard library does not name them.
const (
	prSetNoNewPrivs = 38

	landlockCreateRuleset = 444
	landlockAddRule       = 445
	landlockRestrictSelf  = 446
	landlockVersion       = 1 // flag of create_ruleset: tell the version
	landlockPathBeneath   = 1

	fsWriteFile = 1 << 1
	fsMakeAll   = 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12 // remove and make of every kind
	fsRefer     = 1 << 13
	fsTruncate  = 1 << 14

	oPath     = 0x200000
	rlimCore  = 4
	rlimFsize = 1
)

// maxPlan bounds what the helper reads.
const maxPlan = 1 << 20

func init() {
	if len(os.Args) == 1 && os.Args[0] == Name {
		os.Exit(confine(os.NewFile(PlanFD, "plan"), os.NewFile(ReportFD, "report")))
	}
	if len(os.Args) == 2 && os.Args[0] == LauncherName {
		os.Exit(launch(os.Args[1]))
	}
}

// confine applies the layers to its own thread, starts the program from it, and
// ends as the program does. It is the first process of the PID namespace: its
// end takes everything with it that is left there.
func confine(in io.Reader, out io.Writer) int {
	say := json.NewEncoder(out)
	syscall.CloseOnExec(PlanFD)
	syscall.CloseOnExec(ReportFD)
	var p Plan
	if err := json.NewDecoder(io.LimitReader(in, maxPlan)).Decode(&p); err != nil {
		return 125
	}
	// What ends the group also reaches the helper, which has to outlive the
	// program; the program itself gets the default back.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	runtime.LockOSThread() // the layers are the thread's, and what it starts inherits them
	layers := []string{}
	if _, _, errno := syscall.Syscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); errno == 0 {
		layers = append(layers, NoNewRights)
	}
	core := syscall.Rlimit{}
	file := syscall.Rlimit{Cur: 64 << 20, Max: 64 << 20}
	if syscall.Setrlimit(rlimCore, &core) == nil && (!p.ReadOnly || syscall.Setrlimit(rlimFsize, &file) == nil) {
		layers = append(layers, Limits)
	}
	if p.ReadOnly && !p.Host && len(layers) > 0 && layers[0] == NoNewRights && readOnly() == nil {
		layers = append(layers, Landlock)
	}
	cmd := &exec.Cmd{Path: p.Path, Args: p.Argv, Stdout: os.Stdout, Stderr: os.Stderr, SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}}
	if err := cmd.Start(); err != nil {
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			errno = syscall.EINVAL
		}
		_ = say.Encode(Report{Errno: int(errno)}) // nobody reads: the exit code tells as much
		return 125
	}
	_ = say.Encode(Report{Started: true, Layers: layers})
	_ = cmd.Wait() // its state says how it ended
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		_ = say.Encode(Report{Signal: int(ws.Signal())})
		return 125
	}
	return cmd.ProcessState.ExitCode()
}

// readOnly takes the rights to make, empty, rename and remove files from this
// thread, and to write to any but those under the working directory and
// Appendable, and to the devices that lead nowhere. Reading and running stay as
// they were.
func readOnly() error {
	abi, _, errno := syscall.Syscall(landlockCreateRuleset, 0, 0, landlockVersion)
	if errno != 0 {
		return errno
	}
	rights := uint64(fsWriteFile | fsMakeAll)
	if abi >= 2 {
		rights |= fsRefer
	}
	if abi >= 3 {
		rights |= fsTruncate
	}
	ruleset, _, errno := syscall.Syscall(landlockCreateRuleset, uintptr(unsafe.Pointer(&rights)), unsafe.Sizeof(rights), 0)
	if errno != 0 {
		return errno
	}
	defer syscall.Close(int(ruleset))
	open := []string{"."}
	open = append(open, Appendable[:]...)
	for _, path := range append(open, "/dev/null", "/dev/zero", "/dev/full", "/dev/tty") {
		fd, err := syscall.Open(path, oPath|syscall.O_CLOEXEC, 0)
		if err != nil {
			continue // it is not there to be written to
		}
		rule := beneath{rights: fsWriteFile, parent: int32(fd)}
		if abi >= 3 && strings.HasPrefix(path, "/dev/") {
			rule.rights |= fsTruncate
		}
		_, _, errno := syscall.Syscall6(landlockAddRule, ruleset, landlockPathBeneath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
		syscall.Close(fd)
		if errno != 0 {
			return errno
		}
	}
	if _, _, errno := syscall.Syscall(landlockRestrictSelf, ruleset, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// beneath is struct landlock_path_beneath_attr, which is packed: 12 bytes, of
// which this one has 4 more behind.
type beneath struct {
	rights uint64
	parent int32
}
