// Package e2e holds tests alone: they build gettierd and gettier, run them as
// processes with directories of their own, and talk to them from other processes
// on loopback, as agents and people do. What a unit test can show belongs to the
// package that it is about; nothing here reaches into a daemon's memory.
package e2e
