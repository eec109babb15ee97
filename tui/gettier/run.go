package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/ipc"
)

func (a *app) runCommand() *cobra.Command {
	var strict, yes bool
	cmd := &cobra.Command{
		Use:   "run [flags] -- AGENT [ARG]...",
		Short: "start an agent behind gettierd",
		Long: "Starts the agent with its base URLs set to the proxy; gettier becomes the agent, nothing stays\n" +
			"between it and your terminal. Where the project's own agent settings could lead around the proxy,\n" +
			"they are shown, and asked about once.\n" +
			"When gettierd does not run, the agent starts without it and is told so; --strict refuses.",
		Example: "  gettier run -- sh -c 'echo $ANTHROPIC_BASE_URL'\n  gettier run --strict -- sh -c 'echo $OPENAI_BASE_URL'",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.startAgent(cmd.Context(), args, strict, yes)
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().BoolVar(&strict, "strict", false, "start nothing when gettierd cannot be reached")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask about the project's agent settings")
	return cmd
}

func (a *app) startAgent(ctx context.Context, args []string, strict, yes bool) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return &exit{code: exitReach, err: fmt.Errorf("find agent: %w", err), hint: "install it, or give its path"}
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	p := newPrinter(a.err)
	s, err := c.Status(ctx)
	var gone *ipc.Unreachable
	switch {
	case errors.As(err, &gone) && !strict:
		p.line("gettier: gettierd does not run. %s starts WITHOUT it: nothing is measured, nothing is held back (gettier up)", args[0])
		return a.become(path, args, a.env)
	case err != nil:
		return err
	}
	known, ok := agentOf(path)
	env, err := a.redirected(s.Proxy, known)
	if err != nil {
		return err
	}
	if err := a.askDetours(p, known, yes); err != nil {
		return err
	}
	where, err := a.placeWords(ctx, c)
	if err != nil {
		return err
	}
	p.line("gettier: %s goes through http://%s, %s", known.name, s.Proxy, where)
	switch {
	case known.note != "":
		p.line("gettier: %s (http://%s/v1)", known.note, s.Proxy)
	case !ok:
		p.line("gettier: %s is not among the agents that were tried; it is told by OPENAI_BASE_URL and ANTHROPIC_BASE_URL alone", known.name)
	}
	if known.args != nil {
		args = slices.Concat(args[:1], known.args(s.Proxy), args[1:])
	}
	return a.become(path, args, env)
}

// become is exec(2).
func (a *app) become(path string, args, env []string) error {
	if err := a.exec(path, args, env); err != nil {
		return &exit{code: exitReach, err: fmt.Errorf("start %s: %w", path, err)}
	}
	return nil
}

// redirected is the environment with the proxy in it. A base URL that points
// elsewhere already is somebody's wish, and stays one: it is an error.
func (a *app) redirected(proxy string, known agent) ([]string, error) {
	add := baseURLs(proxy)
	if known.env != nil {
		add = append(add, known.env(proxy)...)
	}
	env := slices.Clone(a.env)
	for _, kv := range add {
		name, value, _ := strings.Cut(kv, "=")
		old, set := lookup(a.env, name)
		switch {
		case !set || old == "":
			env = append(env, kv)
		case old == value || strings.TrimSuffix(old, "/") == value:
		case strings.HasSuffix(name, "_BASE_URL") || strings.HasSuffix(name, "_API_BASE"):
			if sameListener(old, proxy) {
				continue // ours, with a project or an upstream in its path
			}
			return nil, &exit{
				code: exitUsage, err: fmt.Errorf("%s is %s already", name, old),
				hint: "make that an upstream (upstreams and default_upstream in gettierd.yaml), then unset " + name,
			}
		default:
			newPrinter(a.err).line("gettier: %s is set already and stays as it is", name)
		}
	}
	return env, nil
}

// sameListener reports whether a URL leads to the proxy.
func sameListener(raw, proxy string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" {
		return false
	}
	_, port, err := net.SplitHostPort(proxy)
	return err == nil && u.Port() == port && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}

func lookup(env []string, name string) (string, bool) {
	for _, kv := range slices.Backward(env) {
		if n, v, ok := strings.Cut(kv, "="); ok && n == name {
			return v, true
		}
	}
	return "", false
}

// placeWords says what the directory we stand in means for measuring.
func (a *app) placeWords(ctx context.Context, c *ipc.Client) (string, error) {
	dir, err := here()
	if err != nil {
		return "", err
	}
	l, err := c.Projects(ctx)
	if err != nil {
		return "", err
	}
	best := ipc.Project{}
	for _, p := range l.Items {
		if rel, err := filepath.Rel(p.Root, dir); err == nil && filepath.IsLocal(rel) && len(p.Root) > len(best.Root) {
			best = p
		}
	}
	if best.Root == "" {
		return "outside of every registered project: nothing is measured here (gettier project add)", nil
	}
	return "project " + best.Name, nil
}

// askDetours shows what a project's agent settings carry, and asks once for the
// same content. Without a terminal it only shows.
func (a *app) askDetours(p *printer, known agent, yes bool) error {
	dir, err := here()
	if err != nil {
		return err
	}
	found, sum, err := detours(dir, known.settings)
	if err != nil || len(found) == 0 {
		return err
	}
	l, err := a.layout()
	if err != nil {
		return err
	}
	seen := filepath.Join(l.State, "agent-settings")
	old, err := os.ReadFile(seen)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read answered agent settings: %w", err)
	}
	if slices.Contains(strings.Fields(string(old)), sum) {
		return nil
	}
	p.line("gettier: this project's settings for %s can lead around the proxy or run programs beside it:", known.name)
	for _, d := range found {
		p.line("  %s:%d  %s", d.file, d.line, d.text[:min(len(d.text), 160)])
	}
	if _, tty := terminal(a.in); !tty || yes {
		return nil
	}
	fmt.Fprint(a.err, "Start it with them? [y/N] ")
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if w := strings.ToLower(strings.TrimSpace(answer)); err != nil || w != "y" && w != "yes" {
		return &exit{code: exitRefused, err: errors.New("not started")}
	}
	if err := os.MkdirAll(l.State, 0o700); err != nil {
		return fmt.Errorf("make state directory: %w", err)
	}
	f, err := os.OpenFile(seen, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("remember the answer: %w", err)
	}
	_, err = f.WriteString(sum + "\n")
	return errors.Join(err, f.Close())
}

func (a *app) envCommand() *cobra.Command {
	var connect bool
	cmd := &cobra.Command{
		Use:   "env",
		Short: "print the base URLs for a shell",
		Long: "Prints what a shell evaluates, eval \"$(gettier env)\", so that agents started from it go through\n" +
			"the proxy. What is set already is left alone, and said. With --connect other HTTPS of theirs goes\n" +
			"through it, too, so that its hosts are seen and unapproved AI vendors refused (connect.*).",
		Example: "  gettier env\n  gettier env --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			defer c.Close()
			s, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			set := baseURLs(s.Proxy)
			if connect {
				v, err := c.Config(cmd.Context())
				if err != nil {
					return err
				}
				if !slices.ContainsFunc(v.Keys, func(k ipc.ConfigKey) bool { return k.Key == "connect.enabled" && k.Value == "true" }) {
					return usage("connect.enabled is off, so programs with this HTTPS_PROXY would reach nothing; set it in gettierd.yaml first")
				}
				set = append(set, connectVars(s.Proxy, a.env)...)
			}
			p := newPrinter(a.out)
			vars := map[string]string{}
			for _, kv := range set {
				name, value, _ := strings.Cut(kv, "=")
				old, _ := lookup(a.env, name)
				switch {
				case a.json:
					vars[name] = value
				case old != "" && old != value && name != "NO_PROXY": // which has what it had
					p.line("# %s is %s already and stays as it is", name, old)
				default:
					p.line("export %s='%s'", name, value)
				}
			}
			if a.json {
				p.value(vars)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&connect, "connect", false, "with HTTPS_PROXY and NO_PROXY")
	return cmd
}
