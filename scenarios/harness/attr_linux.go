package harness

import "syscall"

// guardAttr puts a guard in a group of its own, and has it told when the
// harness dies.
func guardAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
