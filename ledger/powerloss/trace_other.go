//go:build !linux || !(amd64 || arm64)

package powerloss

import (
	"context"
	"fmt"
	"os/exec"
)

// Record needs ptrace(2) and says ErrTrace here.
func Record(context.Context, *exec.Cmd, string) (*Recording, error) {
	return nil, fmt.Errorf("record writes: %w", ErrTrace)
}
