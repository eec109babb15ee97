package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"syscall"
	"time"
)

const (
	// childStack ends a page that leads to itself before it takes a gigabyte.
	childStack = 64 << 20
	// childData bounds what a look that is not a full one may allocate; a sound
	// file of a million entries takes a tenth of it.
	childData = 1 << 30
	// childTime, and as much again for each GiB of file, is how long a look may
	// take before its process counts as caught in the file; a full one takes longer.
	childTime = 15 * time.Second
	fullTime  = 5 * time.Minute
)

// InspectChild is what the process does that looks at a file and may die of it:
// it limits itself, inspects, and writes the Health as JSON.
func InspectChild(ctx context.Context, out io.Writer, file string, o InspectOptions) error {
	debug.SetMaxStack(childStack)
	if !o.Full {
		_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: childData, Max: childData}) // without it a bad file takes longer to be found out
	}
	if err := json.NewEncoder(out).Encode(Inspect(ctx, file, o)); err != nil {
		return fmt.Errorf("write health: %w", err)
	}
	return nil
}

// InspectElsewhere runs cmd, which has to call InspectChild for this file. A
// process that ends without a report, or does not end, died of the file.
func InspectElsewhere(ctx context.Context, cmd *exec.Cmd, file string, o InspectOptions) (h Health, err error) {
	limit := childTime
	if o.Full {
		limit = fullTime
	}
	if st, err := os.Stat(file); err == nil {
		limit *= time.Duration(1 + st.Size()>>30)
	}
	wait, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := context.AfterFunc(wait, func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill() // it may have ended
		}
	})
	defer stop()
	out, runErr := cmd.Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return h, ctx.Err()
	case json.Unmarshal(out, &h) == nil:
		return h, nil
	case runErr != nil && !errors.As(runErr, &exit):
		return h, fmt.Errorf("look at ledger: %w", runErr)
	}
	h = Health{Damaged: true, Reason: fmt.Sprintf("%v: reading it ended the process that did (%v)", ErrDamaged, runErr)}
	if h.Prefix, err = FindPrefix(ctx, file, o.Key); err != nil {
		return h, err
	}
	return h, nil
}
