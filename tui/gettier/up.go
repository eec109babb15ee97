package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/tui"
	"gettier.dev/gettierd/tui/theme"
	"gettier.dev/gettierd/tui/words"
)

const (
	// startWait is long enough for a ledger that has to be checked after a power cut.
	startWait = 60 * time.Second
	// stopWait is a little more than gettierd gives answers that are on their way.
	stopWait = 45 * time.Second
	// logMost is when the daemon's log starts anew, in bytes.
	logMost = 8 << 20
)

// upFlags are passed on to gettierd as they are.
type upFlags struct {
	config   string
	upstream string
	port     int
	noTUI    bool
}

func (a *app) upCommand() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "start gettierd if it does not run",
		Long: "Starts the gettierd that lies beside gettier, in the background, says where it listens, and on a\n" +
			"terminal opens the screens.\n" +
			"It keeps running when the terminal closes; gettier down stops it.",
		Example: "  gettier up\n  gettier up --upstream http://127.0.0.1:8080 --proxy-port 0",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.up(cmd, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.config, "config", "", "configuration file for gettierd")
	fl.StringVar(&f.upstream, "upstream", "", "default upstream for gettierd")
	fl.IntVar(&f.port, "proxy-port", 0, "proxy port for gettierd; 0 takes any free one")
	fl.BoolVar(&f.noTUI, "no-tui", false, "only start it, open no screen")
	return cmd
}

func (a *app) up(cmd *cobra.Command, f upFlags) error {
	ctx := cmd.Context()
	l, err := a.layout()
	if err != nil {
		return err
	}
	c := ipc.New(l.Socket, "cli")
	defer c.Close()
	s, err := c.Status(ctx)
	var gone *ipc.Unreachable
	switch {
	case err == nil:
		p := newPrinter(a.out)
		if a.json {
			p.value(started{PID: s.PID, Proxy: s.Proxy, Socket: l.Socket, Running: true})
			return nil
		}
		p.line("gettierd runs already (pid %d), proxy http://%s", s.PID, s.Proxy)
		cmd.Flags().Visit(func(f *pflag.Flag) {
			if cmd.InheritedFlags().Lookup(f.Name) != nil {
				return
			}
			if f.Name != "no-tui" {
				p.line("--%s changes nothing for it; gettier down first", f.Name)
			}
		})
		return a.upScreen(cmd, f, s.PID)
	case !errors.As(err, &gone):
		return err
	}
	bin, err := findDaemon(ctx, a.err)
	if err != nil {
		return err
	}
	args := []string{"--socket", l.Socket, "--state", l.State}
	if f.config != "" {
		args = append(args, "--config", f.config)
	}
	if f.upstream != "" {
		args = append(args, "--upstream", f.upstream)
	}
	if cmd.Flags().Changed("proxy-port") {
		args = append(args, "--proxy-port", strconv.Itoa(f.port))
	}
	r, pid, log, err := a.start(ctx, bin, args, l)
	if err != nil {
		return err
	}
	p := newPrinter(a.out)
	if a.json {
		p.value(started{PID: pid, Proxy: r.Proxy, Socket: r.Socket, Log: log})
		return nil
	}
	p.line("gettierd runs (pid %d), proxy http://%s", pid, r.Proxy)
	p.line("  agents:  OPENAI_BASE_URL=http://%s/v1  ANTHROPIC_BASE_URL=http://%s", r.Proxy, r.Proxy)
	p.line("  log:     %s", log)
	return a.upScreen(cmd, f, pid)
}

// upScreen opens the screens on a terminal, and says in any case that the daemon
// stays when they go.
func (a *app) upScreen(cmd *cobra.Command, f upFlags, pid int) error {
	in, _ := a.in.(*os.File)
	out, _ := a.out.(*os.File)
	if !f.noTUI && tui.Usable(in, out, a.env) == nil {
		auto := string(theme.Auto)
		if err := a.runScreen(&auto)(cmd, nil); err != nil {
			return err
		}
	}
	newPrinter(a.out).line("gettierd keeps running (pid %d). Stop: gettier down", pid)
	return nil
}

// started is what up says in JSON.
type started struct {
	PID     int    `json:"pid"`
	Proxy   string `json:"proxy"`
	Socket  string `json:"socket"`
	Log     string `json:"log,omitempty"`
	Running bool   `json:"already_running"`
}

// start runs bin in a session of its own and waits until it says that it serves.
func (a *app) start(ctx context.Context, bin string, args []string, l config.Layout) (ready, int, string, error) {
	fail := func(err error) (ready, int, string, error) { return ready{}, 0, "", err }
	if err := os.MkdirAll(l.State, 0o700); err != nil {
		return fail(fmt.Errorf("make state directory: %w", err))
	}
	logPath := filepath.Join(l.State, "gettierd.log")
	log, begin, err := openLog(logPath)
	if err != nil {
		return fail(err)
	}
	defer log.Close()
	cmd := exec.Command(bin, args...)
	cmd.Env = a.env
	cmd.Dir = string(filepath.Separator) // it must not keep a project's directory busy
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fail(fmt.Errorf("start gettierd: %w", err))
	}
	if err := cmd.Start(); err != nil {
		return fail(fmt.Errorf("start gettierd: %w", err))
	}
	type said struct {
		r   ready
		err error
	}
	first := make(chan said, 1) // the reader ends even when nobody waits any more
	go func() {
		line, err := bufio.NewReaderSize(io.LimitReader(out, 64<<10), 4096).ReadBytes('\n')
		if err != nil {
			first <- said{err: err}
			return
		}
		r, err := readReady(line)
		first <- said{r, err}
	}()
	wait := time.NewTimer(startWait)
	defer wait.Stop()
	why := ""
	select {
	case f := <-first:
		if f.err == nil {
			pid := cmd.Process.Pid
			if err := cmd.Process.Release(); err != nil {
				return fail(fmt.Errorf("let gettierd go: %w", err))
			}
			return f.r, pid, logPath, nil
		}
		if why = "it ended"; !errors.Is(f.err, io.EOF) {
			why = f.err.Error()
		}
	case <-wait.C:
		why = fmt.Sprintf("it was not ready within %s", words.Span(startWait))
	case <-ctx.Done():
		why = "interrupted"
	}
	_ = cmd.Process.Kill() // it may be gone already, which is as well
	_ = cmd.Wait()
	return fail(&exit{code: exitReach, err: fmt.Errorf("gettierd did not start: %s", why), hint: tail(logPath, begin)})
}

// openLog opens the daemon's log for appending and says where it ends now. A
// log that grew large starts anew, the old one is kept beside it.
func openLog(path string) (*os.File, int64, error) {
	if fi, err := os.Stat(path); err == nil && fi.Size() > logMost {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, 0, fmt.Errorf("turn log over: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open log: %w", err)
	}
	fi, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, 0, fmt.Errorf("open log: %w", err)
	}
	return f, fi.Size(), nil
}

// tail is what the daemon logged from begin on, its last lines.
func tail(path string, begin int64) string {
	f, err := os.Open(path)
	if err != nil {
		return "see " + path
	}
	defer f.Close()
	if fi, err := f.Stat(); err == nil {
		begin = max(begin, fi.Size()-4096)
	}
	b, err := io.ReadAll(io.NewSectionReader(f, begin, 4096))
	if err != nil || len(b) == 0 {
		return "see " + path
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

func (a *app) downCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "down",
		Short:   "stop gettierd",
		Long:    "Asks gettierd to finish the answers that are on their way and end, and waits for it.\nAgents whose base URL points at it get no answers afterwards.",
		Example: "  gettier down",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.layout()
			if err != nil {
				return err
			}
			// The kernel says who listens; a pid in a status answer could be anyone's.
			who, err := ipc.FindListener(cmd.Context(), l.Socket)
			if err != nil {
				return err
			}
			if who.PID <= 1 {
				return &exit{code: exitReach, err: errors.New("gettierd runs where its process cannot be seen from here")}
			}
			if err := a.signal(who.PID, syscall.SIGTERM); err != nil {
				return fmt.Errorf("stop gettierd: %w", err)
			}
			if err := a.gone(cmd.Context(), who.PID); err != nil {
				return err
			}
			p := newPrinter(a.out)
			if a.json {
				p.value(struct {
					PID     int  `json:"pid"`
					Stopped bool `json:"stopped"`
				}{who.PID, true})
				return nil
			}
			p.line("gettierd stopped (pid %d)", who.PID)
			return nil
		},
	}
}

// gone waits until a process has ended.
func (a *app) gone(ctx context.Context, pid int) error {
	end := time.NewTimer(stopWait)
	defer end.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := a.signal(pid, 0); errors.Is(err, syscall.ESRCH) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end.C:
			return &exit{code: exitFound, err: fmt.Errorf("gettierd (pid %d) was told to stop and still runs after %s", pid, words.Span(stopWait))}
		case <-tick.C:
		}
	}
}
