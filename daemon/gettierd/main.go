// Command gettierd is the daemon in the foreground. It reads flags, runs package
// daemon and says in one line on stdout when it serves; logs go to stderr.
package main

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"gettier.dev/gettierd/config"
	"gettier.dev/gettierd/daemon"
	"gettier.dev/gettierd/daemon/logs"
	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/redact"
)

// Exit codes.
const (
	exitOK       = 0
	exitUsage    = 2
	exitInternal = 5
)

func main() {
	// Before any key is read.
	if err := refuseCores(); err != nil {
		fmt.Fprintln(os.Stderr, "gettierd:", err)
		os.Exit(exitInternal)
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

const usage = `gettierd is the daemon of gettier: it stands between your agent and its model.

usage: gettierd [flags]

  --config FILE      gettierd.yaml (default: XDG configuration directory)
  --state DIR        ledger, keys and locks (default: XDG state directory)
  --socket PATH      the socket of gettier (default: XDG runtime or state directory)
  --proxy-port N     port of the proxy on this machine, 0 takes a free one (default 11435)
  --upstream URL     where OpenAI and Anthropic requests go when their path names no upstream
  --log-level LEVEL  error, warn, info or debug
  --version          print the version

SIGTERM drains and stops, SIGHUP reads the configuration and the registries again.
`

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("gettierd", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() { fmt.Fprint(stderr, usage) }
	var (
		conf     = fs.String("config", "", "")
		state    = fs.String("state", "", "")
		socket   = fs.String("socket", "", "")
		port     = fs.Int("proxy-port", -1, "")
		upstream = fs.String("upstream", "", "")
		level    = fs.String("log-level", "", "")
		version  = fs.Bool("version", false, "")
		answerFD = fs.Int("answer-fd", -1, "")
		check    = fs.String("check-ledger", "", "")
		checkKey = fs.String("check-key", "", "")
	)
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return exitOK
	} else if err != nil {
		return exitUsage
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "gettierd: %q is no flag; see gettierd --help\n", fs.Arg(0))
		return exitUsage
	}
	if *version {
		fmt.Fprintln(stdout, "gettierd", daemon.Version)
		return exitOK
	}
	if *check != "" {
		key, err := hex.DecodeString(*checkKey)
		if err == nil {
			err = ledger.InspectChild(ctx, stdout, *check, ledger.InspectOptions{Key: key})
		}
		if err != nil {
			fmt.Fprintln(stderr, "gettierd:", err)
			return exitInternal
		}
		return exitOK
	}
	layout := config.Paths(environ)
	if *state != "" {
		dir, err := filepath.Abs(*state)
		if err != nil {
			fmt.Fprintln(stderr, "gettierd:", err)
			return exitUsage
		}
		layout = layout.InState(dir)
	}
	for flagged, to := range map[*string]*string{conf: &layout.Config, socket: &layout.Socket} {
		if *flagged == "" {
			continue
		}
		abs, err := filepath.Abs(*flagged)
		if err != nil {
			fmt.Fprintln(stderr, "gettierd:", err)
			return exitUsage
		}
		*to = abs
	}
	if *conf != "" {
		layout.Sensors = filepath.Join(filepath.Dir(layout.Config), "sensors.yaml")
	}
	flags := map[string]string{}
	if *port >= 0 {
		flags["proxy.port"] = strconv.Itoa(*port)
	}
	lvl := new(slog.LevelVar)
	if *level != "" {
		flags["log.level"] = *level
		if err := lvl.UnmarshalText([]byte(*level)); err != nil {
			fmt.Fprintln(stderr, "gettierd: --log-level:", err)
			return exitUsage
		}
	}
	stderr = redacted{stderr, redact.New()}
	log := slog.New(logs.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: lvl})))
	slog.SetDefault(log) // what net/http prints on its own
	var answers net.Conn
	if *answerFD >= 0 {
		var err error
		if answers, err = answerConn(*answerFD, *state, layout); err != nil {
			fmt.Fprintln(stderr, "gettierd: --answer-fd:", err)
			return exitUsage
		}
	}
	d, err := daemon.New(daemon.Options{
		Layout: layout, Environ: environ, Flags: flags, Upstream: *upstream, Terminal: terminal(os.Stdin), Log: log, Level: lvl, AnswerConn: answers,
		CheckLedger: checkLedger,
	})
	if err != nil {
		fmt.Fprintln(stderr, "gettierd:", err)
		return exitInternal
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	hup := make(chan os.Signal, 1) // one pending reload is as good as many
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	go func() {
		for {
			select {
			case <-hup:
				d.Reload(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	if err := json.NewEncoder(stdout).Encode(d.Addresses()); err != nil {
		log.Warn("write ready line", "error", err.Error())
	}
	if err := d.Run(ctx); err != nil {
		fmt.Fprintln(stderr, "gettierd:", err)
		return exitInternal
	}
	return exitOK
}

// checkLedger runs this program again to look at a ledger file.
func checkLedger(ctx context.Context, file string, key ed25519.PublicKey) (ledger.Health, error) {
	self, err := os.Executable()
	if err != nil {
		return ledger.Health{}, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(self, "--check-ledger", file, "--check-key", hex.EncodeToString(key))
	cmd.Env = []string{} // it needs nothing of ours
	return ledger.InspectElsewhere(ctx, cmd, file, ledger.InspectOptions{Key: key})
}

// redacted is the door of the log: errors repeat what upstreams, models and
// files said. Its writers give it whole lines.
type redacted struct {
	w      io.Writer
	engine *redact.Engine
}

func (r redacted) Write(b []byte) (int, error) {
	out, _ := r.engine.Bytes(b)
	if _, err := r.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// answerConn takes the inherited descriptor over which the process that starts a
// private daemon answers its holds. Only a state of its own that is new may have
// one: no daemon of a person can be restarted with it.
func answerConn(fd int, state string, layout config.Layout) (net.Conn, error) {
	if state == "" {
		return nil, errors.New("it goes with --state")
	}
	if _, err := os.Lstat(layout.Ledger); !errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("the state directory is not new")
	}
	f := os.NewFile(uintptr(fd), "answers")
	if f == nil {
		return nil, errors.New("it is not open")
	}
	defer f.Close()
	return net.FileConn(f)
}

// terminal reports whether f is a terminal.
func terminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0 && isatty(f)
}
