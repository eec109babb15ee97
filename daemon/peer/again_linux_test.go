package peer

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

// Again sees where a process stands now, and never takes another one for it.
func TestAgain(t *testing.T) {
	self, err := Find(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	again, err := Again(self)
	if err != nil || !again.Same(self) || again.UID != self.UID || again.Exe != self.Exe || again.Cwd != dir {
		t.Errorf("%+v became %+v, %v", self, again, err)
	}
	other := self
	other.Start--
	if p, err := Again(other); !errors.Is(err, ErrUnknown) {
		t.Errorf("a process of another time is %+v, %v", p, err)
	}
	cmd := exec.Command("cat")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	child, err := Find(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if p, err := Again(child); !errors.Is(err, ErrUnknown) {
		t.Errorf("a process that ended is %+v, %v", p, err)
	}
}
