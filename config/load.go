package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/viper"
)

// Load reads the file at path, then the GETTIER_ variables of an environment
// such as os.Environ, then flags by key; each overrides the one before. A
// missing file is an empty one. The error is Problems: all faults at once.
//
// Whether a loosening counts is not decided here, see Resolve.
func Load(path string, environ []string, flags map[string]string) (*Config, []Warning, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Parse(path, nil, environ, flags)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration: %w", err)
	}
	if len(data) == 0 {
		data = []byte("\n") // there, thus it needs its version
	}
	return Parse(path, data, environ, flags)
}

// Parse is Load on bytes that were read already; nil data is a missing file.
func Parse(path string, data []byte, environ []string, flags map[string]string) (*Config, []Warning, error) {
	var (
		problems Problems
		warnings []Warning
		layers   layered
	)
	layers.from = make(map[string]Origin)
	file := make(map[string]any)
	if data != nil {
		r := readFile(path, data)
		warnings = append(warnings, r.warnings...)
		problems = append(problems, r.problems...)
		for key, l := range r.leaves {
			k := keyOf(key)
			v, err := guardedValue(k, l.node)
			text, hint := "", ""
			if err != nil {
				text = err.Error()
			} else {
				text, hint = check(k, key, v)
			}
			if text != "" {
				problems = append(problems, Problem{path, l.line, l.column, key, text, hint})
				continue
			}
			file[key] = v
			layers.from[key] = Origin{"file", fmt.Sprintf("%s:%d", path, l.line)}
		}
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return (a.Line-b.Line)*4096 + a.Column - b.Column })
	layers.add(file)

	base, err := layers.config()
	if err != nil {
		return nil, warnings, err
	}
	problems = append(problems, related(base, layers.from, path)...)

	env, ps, ws := fromEnvironment(environ, base)
	problems, warnings = append(problems, ps...), append(warnings, ws...)
	for key, v := range env {
		layers.from[key] = v.origin
	}
	layers.add(plain(env))
	set, ps := fromFlags(flags)
	problems = append(problems, ps...)
	for key, v := range set {
		layers.from[key] = v.origin
	}
	layers.add(plain(set))
	if len(problems) > 0 {
		return nil, warnings, problems
	}
	c, err := layers.config()
	if err != nil {
		return nil, warnings, err
	}
	if ps := related(c, layers.from, path); len(ps) > 0 {
		return nil, warnings, ps
	}
	for i, p := range c.Projects {
		root, err := filepath.EvalSymlinks(p.Root)
		if err != nil {
			warnings = append(warnings, Warning{Source: path, Key: "projects", Text: fmt.Sprintf("the root of %s is not there", p.Name)})
			continue
		}
		c.Projects[i].Root = root
	}
	c.from = layers.from
	c.file = values(base)
	c.file["projects"] = c.Projects // has no other source, and its links are resolved
	return c, warnings, nil
}

// Default returns the configuration of a machine without any file.
func Default() *Config {
	var l layered
	l.add(nil)
	c, err := l.config()
	if err != nil {
		// The table and the struct disagree: a test holds that they do not.
		return &Config{Version: 1}
	}
	c.file = values(c)
	return c
}

// layered collects values by concrete key, later ones on top, and lets viper
// merge them over the table's defaults.
type layered struct {
	layers []map[string]any
	from   map[string]Origin
}

func (l *layered) add(m map[string]any) { l.layers = append(l.layers, m) }

func (l *layered) config() (*Config, error) {
	v := viper.New()
	names := map[string]bool{DefaultOpenAIName: true, DefaultAnthropicName: true, ChatGPTName: true}
	for _, m := range l.layers {
		for key := range m {
			if name := upstreamOf(key); name != "" {
				names[name] = true
			}
		}
	}
	for _, k := range Keys {
		if !strings.HasPrefix(k.Name, upstreamPrefix) {
			v.SetDefault(k.Name, raw(k.Default))
			continue
		}
		for name := range names {
			v.SetDefault(strings.Replace(k.Name, "*", name, 1), raw(k.Default))
		}
	}
	v.SetDefault("upstreams.openai.base_url", DefaultOpenAIURL)
	v.SetDefault("upstreams.anthropic.base_url", DefaultAnthropicURL)
	v.SetDefault("upstreams.chatgpt.base_url", ChatGPTURL)
	v.SetDefault("upstreams.anthropic.format", "anthropic")
	for _, m := range l.layers {
		tree := make(map[string]any)
		for key, val := range m {
			plant(tree, strings.Split(key, "."), raw(val))
		}
		if err := v.MergeConfigMap(tree); err != nil {
			return nil, fmt.Errorf("merge configuration: %w", err)
		}
	}
	for name := range names {
		key := upstreamPrefix + name + "."
		v.SetDefault(key+"trusted", trustworthy(v.GetString(key+"base_url")))
	}
	c := new(Config)
	if err := v.UnmarshalExact(c); err != nil {
		return nil, fmt.Errorf("decode configuration: %w", err)
	}
	normalise(c)
	return c, nil
}

// normalise gives empty collections one form, so that configurations compare.
func normalise(c *Config) {
	for name, u := range c.Upstreams {
		if u.Headers == nil {
			u.Headers = map[string]string{}
			c.Upstreams[name] = u
		}
	}
	if len(c.Projects) == 0 {
		c.Projects = nil
	}
	if len(c.Sensors.Files) == 0 {
		c.Sensors.Files = nil
	}
}

func plant(tree map[string]any, path []string, v any) {
	for _, p := range path[:len(path)-1] {
		next, ok := tree[p].(map[string]any)
		if !ok {
			next = make(map[string]any)
			tree[p] = next
		}
		tree = next
	}
	tree[path[len(path)-1]] = v
}

// raw turns our types into what viper merges without a look inside.
func raw(v any) any {
	switch x := v.(type) {
	case []Project:
		out := make([]any, len(x))
		for i, p := range x {
			out[i] = map[string]any{"name": p.Name, "root": p.Root}
		}
		return out
	case []string:
		if x == nil {
			return []string{}
		}
	case map[string]string:
		out := make(map[string]any, len(x))
		for k, s := range x {
			out[k] = s
		}
		return out
	}
	return v
}

// trustworthy: https, or this machine (13.11).
func trustworthy(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	return u.Scheme == "https" || Loopback(u.Hostname())
}

// Loopback reports whether host names this machine and nothing else.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// related checks keys against each other.
func related(c *Config, from map[string]Origin, path string) Problems {
	var out Problems
	fault := func(key, text, hint string) {
		p := Problem{Source: path, Key: key, Text: text, Hint: hint}
		if o, ok := from[key]; ok {
			p.Source = o.Name
		}
		out = append(out, p)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		u, key := c.Upstreams[name], upstreamPrefix+name+"."
		if u.BaseURL == "" {
			fault(key+"base_url", "is missing", "give the URL that requests go to")
		}
		first := ""
		for _, place := range [...]struct{ name, value string }{{"key_env", u.KeyEnv}, {"key_file", u.KeyFile}, {"key_keyring", u.KeyKeyring}, {"key_age", u.KeyAge}, {"key_ledger", u.KeyLedger}} {
			switch {
			case place.value == "":
			case first == "":
				first = place.name
			default:
				fault(key+place.name, "stands beside "+first, "give one of the two")
			}
		}
		if (u.KeyAge == "") != (u.KeyAgeIdentity == "") {
			fault(key+"key_age", "and key_age_identity go together", "give the encrypted file and the identity that opens it")
		}
	}
	for format, name := range map[string]string{"openai": c.DefaultUpstream.OpenAI, "anthropic": c.DefaultUpstream.Anthropic} {
		key := "default_upstream." + format
		u, ok := c.Upstreams[name]
		switch {
		case !ok:
			hint := ""
			if near := nearest(name, slices.Sorted(maps.Keys(c.Upstreams))); near != "" {
				hint = fmt.Sprintf("did you mean %s?", near)
			}
			fault(key, fmt.Sprintf("there is no upstream %q", clip(name)), hint)
		case u.Format != format:
			fault(key, fmt.Sprintf("upstream %s speaks %s", name, u.Format), "")
		}
	}
	if c.Gate.Budget.PerDay < c.Gate.Budget.PerHour {
		fault("gate.budget.per_day", "is less than gate.budget.per_hour", "")
	}
	if c.Proxy.MaxInflightBytes < c.Proxy.MaxBody {
		fault("proxy.max_inflight_bytes", "is less than proxy.max_body", "one body of full size has to fit")
	}
	slices.SortFunc(out, func(a, b Problem) int { return strings.Compare(a.Key, b.Key) })
	return out
}

type override struct {
	value  any
	origin Origin
}

func plain(m map[string]override) map[string]any {
	out := make(map[string]any, len(m))
	for k, o := range m {
		out[k] = o.value
	}
	return out
}

// notKeys are variables of ours that set no key.
var notKeys = []string{"GETTIER_CONFIG", "GETTIER_STATE_DIR", "GETTIER_SOCKET", "GETTIER_KEY"}

// fromEnvironment binds variables key by key. Upstreams have to be known by
// the file or by default: their names cannot be told apart from key names.
func fromEnvironment(environ []string, base *Config) (map[string]override, Problems, []Warning) {
	byName := make(map[string]string)
	for key := range values(base) {
		for _, n := range envNames(key, keyOf(key)) {
			byName[n] = key
		}
	}
	out := make(map[string]override)
	var problems Problems
	var warnings []Warning
	env := environment(environ)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		val := env[name]
		if !strings.HasPrefix(name, "GETTIER_") || val == "" || slices.Contains(notKeys, name) {
			continue
		}
		key, ok := byName[name]
		if !ok {
			text := "sets no key"
			if near := nearest(name, slices.Sorted(maps.Keys(byName))); near != "" {
				text += fmt.Sprintf("; did you mean %s?", near)
			}
			warnings = append(warnings, Warning{Source: "environment", Key: name, Text: text})
			continue
		}
		v, p := fromWord(key, name, val)
		if p != nil {
			problems = append(problems, *p)
			continue
		}
		out[key] = override{v, Origin{"env", name}}
	}
	return out, problems, warnings
}

func fromFlags(flags map[string]string) (map[string]override, Problems) {
	out := make(map[string]override)
	var problems Problems
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		if keyOf(key).Name == "" || upstreamOf(key) != "" && !validName(upstreamOf(key)) {
			problems = append(problems, Problem{Source: "--set " + key, Key: key, Text: "is not a key"})
			continue
		}
		v, p := fromWord(key, "--set "+key, flags[key])
		if p != nil {
			problems = append(problems, *p)
			continue
		}
		out[key] = override{v, Origin{"flag", key}}
	}
	return out, problems
}

func fromWord(key, source, word string) (any, *Problem) {
	k := keyOf(key)
	v, err := fromText(k, word)
	if err != nil {
		return nil, &Problem{Source: source, Key: key, Text: err.Error()}
	}
	if text, hint := check(k, key, v); text != "" {
		return nil, &Problem{Source: source, Key: key, Text: text, Hint: hint}
	}
	return v, nil
}

// Reachable reports whether the proxy listens beyond this machine.
func (c *Config) Reachable() bool { return !Loopback(c.Proxy.BindHost) }
