package config

import (
	"os"
	"path/filepath"
	"strings"
)

// Layout is where the files of an installation are. All are absolute.
type Layout struct {
	Config   string // gettierd.yaml
	Sensors  string // the user's sensors.yaml
	State    string // directory, 0700
	Ledger   string
	Keys     string // directory, 0700
	Lock     string // config.lock
	Registry string // sensors.lock
	Socket   string // its directory is 0700
}

// Paths reads the XDG variables and ours from an environment such as
// os.Environ: GETTIER_CONFIG (the file), GETTIER_STATE_DIR, GETTIER_SOCKET.
// The specification has relative XDG paths ignored, and so are they here.
func Paths(environ []string) Layout {
	env := environment(environ)
	home := env["HOME"]
	if home == "" {
		if h, err := os.UserHomeDir(); err == nil {
			home = h
		}
	}
	dir := func(name string, fallback ...string) string {
		if v := env[name]; filepath.IsAbs(v) {
			return filepath.Clean(v)
		}
		return filepath.Join(append([]string{home}, fallback...)...)
	}
	var p Layout
	configDir := filepath.Join(dir("XDG_CONFIG_HOME", ".config"), "gettier")
	p.Config = filepath.Join(configDir, "gettierd.yaml")
	if v := env["GETTIER_CONFIG"]; v != "" {
		p.Config = absolute(v)
	}
	p.Sensors = filepath.Join(filepath.Dir(p.Config), "sensors.yaml")
	state := filepath.Join(dir("XDG_STATE_HOME", ".local", "state"), "gettier")
	if v := env["GETTIER_STATE_DIR"]; v != "" {
		state = absolute(v)
	}
	p = p.InState(state)
	switch {
	case env["GETTIER_SOCKET"] != "":
		p.Socket = absolute(env["GETTIER_SOCKET"])
	case env["GETTIER_STATE_DIR"] == "" && filepath.IsAbs(env["XDG_RUNTIME_DIR"]):
		// A state directory of its own is an installation of its own: its
		// socket must not be that of the user's usual daemon.
		p.Socket = filepath.Join(filepath.Clean(env["XDG_RUNTIME_DIR"]), "gettier", "gettierd.sock")
	}
	return p
}

// InState returns p with everything that lives in the state directory moved to
// dir, the socket included.
func (p Layout) InState(dir string) Layout {
	p.State = dir
	p.Ledger = filepath.Join(dir, "ledger.db")
	p.Keys = filepath.Join(dir, "keys")
	p.Lock = filepath.Join(dir, "config.lock")
	p.Registry = filepath.Join(dir, "sensors.lock")
	p.Socket = filepath.Join(dir, "gettierd.sock")
	return p
}

// With returns p with the paths that c sets.
func (p Layout) With(c *Config) Layout {
	if c.Ledger.Path != "" {
		p.Ledger = c.Ledger.Path
	}
	return p
}

// SensorFiles returns the user-level registries in force.
func (p Layout) SensorFiles(c *Config) []string {
	if len(c.Sensors.Files) > 0 {
		return c.Sensors.Files
	}
	return []string{p.Sensors}
}

func absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil { // no working directory
		return filepath.Clean(path)
	}
	return abs
}

// environment turns os.Environ's form into a map; the last entry wins, as it
// does for os/exec.
func environment(environ []string) map[string]string {
	m := make(map[string]string, len(environ))
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			m[k] = v
		}
	}
	return m
}
