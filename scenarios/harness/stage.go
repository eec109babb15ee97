package harness

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gettier.dev/gettierd/scenarios"
)

// stage is a laid-out scenario whose programs run.
type stage struct {
	s       *scenarios.Scenario
	base    string // everything of the run
	project string // what the agent sees
	scripts string
	values  scenarios.Values
	sup     *supervisor
	names   []string // of the fixture's processes
	watch   func(Moment)
}

// setUp lays the scenario out in a directory of its own and starts its programs.
func setUp(ctx context.Context, s *scenarios.Scenario, benign bool, gettier string, watch func(Moment)) (*stage, error) {
	if err := ready(s); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		st, err := setUpOnce(ctx, s, benign, gettier, watch)
		if err == nil || try == maxSetUps || !portTaken(err) || ctx.Err() != nil {
			return st, err
		}
	}
}

// maxSetUps: a free port may be taken before its program binds it.
const maxSetUps = 3

// portTaken reports whether a set-up failed because somebody was faster.
func portTaken(err error) bool {
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "address already in use") || strings.Contains(text, "not ours, listens")
}

func setUpOnce(ctx context.Context, s *scenarios.Scenario, benign bool, gettier string, watch func(Moment)) (*stage, error) {
	base, err := makeBase()
	if err != nil {
		return nil, err
	}
	st := &stage{s: s, base: base, project: filepath.Join(base, "project"), scripts: filepath.Join(base, "scripts"), watch: watch}
	logs := filepath.Join(base, "logs")
	for _, d := range []string{st.project, st.scripts, logs, filepath.Join(base, "tmp")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			os.RemoveAll(base)
			return nil, fmt.Errorf("%w: make run directory: %w", ErrInfra, err)
		}
	}
	st.sup = newSupervisor(gettier, base, logs)
	if err := st.begin(ctx, benign, gettier); err != nil {
		st.tearDown(false)
		return nil, fmt.Errorf("%w: %w", ErrInfra, err)
	}
	return st, nil
}

// maxBase keeps socket paths below the run's directory within the 108 bytes that
// Linux allows.
const maxBase = 60

func makeBase() (string, error) {
	for _, parent := range []string{"", "/tmp"} {
		base, err := os.MkdirTemp(parent, "gettier-run-")
		if err != nil {
			return "", fmt.Errorf("%w: make run directory: %w", ErrInfra, err)
		}
		if base, err = filepath.EvalSymlinks(base); err != nil {
			return "", fmt.Errorf("%w: make run directory: %w", ErrInfra, err)
		}
		if len(base) <= maxBase || parent == "/tmp" {
			return base, nil
		}
		os.RemoveAll(base)
	}
	return "", fmt.Errorf("%w: no place for a run directory", ErrInfra)
}

func (st *stage) begin(ctx context.Context, benign bool, gettier string) error {
	names, err := st.s.PortNames()
	if err != nil {
		return err
	}
	ports, err := freePorts(len(names))
	if err != nil {
		return err
	}
	var nonce [6]byte
	rand.Read(nonce[:])
	st.values = scenarios.Values{Dir: st.project, Nonce: hex.EncodeToString(nonce[:]), Gettier: gettier, Ports: map[string]int{},
		Var: st.s.Twin.Var, Setting: st.s.Twin.Trap}
	if benign {
		st.values.Setting = st.s.Twin.Benign
	}
	for i, n := range names {
		st.values.Ports[n] = ports[i]
	}
	if err := st.s.LayOut(st.values, st.scripts); err != nil {
		return err
	}
	for _, step := range st.s.Steps {
		if err := st.step(ctx, step); err != nil {
			return err
		}
	}
	for _, p := range st.s.Processes {
		if err := st.launch(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (st *stage) expandAll(words []string) ([]string, error) {
	out := make([]string, len(words))
	for i, w := range words {
		var err error
		if out[i], err = st.values.Expand(w); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (st *stage) step(ctx context.Context, step scenarios.Step) error {
	argv, err := st.expandAll(step.Argv)
	if err != nil {
		return fmt.Errorf("step %s: %w", step.Name, err)
	}
	p, err := st.sup.start(command{name: "step-" + step.Name, argv: argv, dir: st.project})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, st.s.Timeouts.Script)
	defer cancel()
	code, err := p.wait(ctx)
	if err != nil {
		return fmt.Errorf("step %s: %w", step.Name, err)
	}
	if code != 0 {
		return fmt.Errorf("step %s: exit %d: %s", step.Name, code, p.tail())
	}
	return nil
}

func (st *stage) launch(ctx context.Context, d scenarios.Process) error {
	argv, err := st.expandAll(d.Argv)
	if err != nil {
		return fmt.Errorf("process %s: %w", d.Name, err)
	}
	dir, err := st.values.Expand(d.Cwd)
	if err != nil {
		return fmt.Errorf("process %s: %w", d.Name, err)
	}
	var env []string
	for k, v := range d.Env {
		if v, err = st.values.Expand(v); err != nil {
			return fmt.Errorf("process %s: %w", d.Name, err)
		}
		env = append(env, k+"="+v)
	}
	words, err := st.expandAll([]string{d.Ready.TCP, d.Ready.File, d.Ready.Log})
	if err != nil {
		return fmt.Errorf("process %s: %w", d.Name, err)
	}
	began := time.Now()
	p, err := st.sup.start(command{name: d.Name, argv: argv, env: env, dir: dir, user: d.User, stop: d.Stop})
	if err != nil {
		return err
	}
	if err := p.ready(ctx, scenarios.Ready{TCP: words[0], File: words[1], Log: words[2]}, st.s.Timeouts.Ready); err != nil {
		return err
	}
	st.names = append(st.names, d.Name)
	st.note("fixture", "%s serves (%s, %d ms)", d.Name, words[0]+words[1]+words[2], time.Since(began).Milliseconds())
	return nil
}

func (st *stage) note(kind, format string, a ...any) {
	if st.watch != nil {
		st.watch(Moment{At: time.Now(), Kind: kind, Text: fmt.Sprintf(format, a...)})
	}
}

// script runs one of the scenario's checks and reads its outcome. A check prints
// "ok" or "not ok" lines; none at all is infrastructure, never a pass.
func (st *stage) script(ctx context.Context, name string) (Outcome, string) {
	code, out, err := st.shell(ctx, name)
	if err != nil {
		return Infra, err.Error()
	}
	good, bad := 0, 0
	for line := range strings.Lines(out) {
		switch {
		case strings.HasPrefix(line, "ok "):
			good++
		case strings.HasPrefix(line, "not ok "):
			bad++
		}
	}
	switch {
	case code == 0 && good > 0 && bad == 0:
		return Pass, out
	case code == 1 && bad > 0:
		return Fail, out
	case good+bad == 0:
		return Infra, fmt.Sprintf("%s ran no test (exit %d): %s", name, code, strings.TrimSpace(out))
	}
	return Infra, fmt.Sprintf("%s: exit %d does not fit its results: %s", name, code, strings.TrimSpace(out))
}

// shell runs a script of the scenario in the project directory.
func (st *stage) shell(ctx context.Context, name string) (int, string, error) {
	var out capped
	sh, err := lookPath("sh")
	if err != nil {
		return -1, "", err
	}
	p, err := st.sup.start(command{name: "script", argv: []string{sh, filepath.Join(st.scripts, filepath.FromSlash(name))},
		env: st.values.Env(), dir: st.project, stdout: &out})
	if err != nil {
		return -1, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, st.s.Timeouts.Script)
	defer cancel()
	code, err := p.wait(ctx)
	if err != nil {
		return -1, out.String(), fmt.Errorf("%s: %w", name, err)
	}
	text := out.String()
	if code > 1 {
		text += p.tail()
	}
	return code, text, nil
}

// tearDown ends all programs and removes the run's directory unless it is kept.
func (st *stage) tearDown(keep bool) {
	st.sup.close()
	if !keep {
		os.RemoveAll(st.base) // what cannot be removed lies in the temporary directory
	}
}
