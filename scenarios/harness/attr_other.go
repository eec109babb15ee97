//go:build !linux

package harness

import "syscall"

func guardAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
