package config

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gettier.dev/gettierd/daemon/connect"
	"github.com/goccy/go-yaml/ast"
)

// guardedValue is fromNode, with a panic over a tree that the parser made badly
// as a fault of the file.
func guardedValue(k Key, n ast.Node) (v any, err error) {
	defer func() {
		if recover() != nil {
			v, err = nil, fmt.Errorf("cannot be read as YAML")
		}
	}()
	return fromNode(k, n)
}

// fromNode turns a YAML value into the type of its key.
func fromNode(k Key, n ast.Node) (any, error) {
	switch k.Type {
	case List, Hosts:
		var out []string
		err := elements(n, func(e ast.Node) error {
			s, ok := scalar(e)
			if !ok {
				return fmt.Errorf("its elements are strings")
			}
			out = append(out, s)
			return nil
		})
		return out, err
	case Roots:
		var out []Project
		err := elements(n, func(e ast.Node) error {
			p, err := projectNode(e)
			out = append(out, p)
			return err
		})
		return out, err
	case Headers:
		out := make(map[string]string)
		err := pairs(n, func(name string, v ast.Node) error {
			s, ok := scalar(v)
			if !ok {
				return fmt.Errorf("header %s is no string", name)
			}
			out[strings.ToLower(name)] = s
			return nil
		})
		return out, err
	case Bool:
		// goccy knows true and false only, as YAML 1.2 does.
		if b, ok := n.(*ast.BoolNode); ok {
			return b.Value, nil
		}
		return nil, fmt.Errorf("is no bool, write true or false")
	case Int:
		if _, ok := n.(*ast.IntegerNode); !ok {
			return nil, fmt.Errorf("is no whole number")
		}
	case String, Enum:
		switch n.(type) {
		case *ast.StringNode, *ast.LiteralNode:
		case *ast.BoolNode:
			// mode: off is a string that older YAML reads as a bool, and here
			// it may stand unquoted.
			return nil, fmt.Errorf("is no string, put quotes round it")
		default:
			return nil, fmt.Errorf("is no string")
		}
	}
	s, ok := scalar(n)
	if !ok {
		return nil, fmt.Errorf("is no single value")
	}
	return fromText(k, s)
}

func scalar(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func elements(n ast.Node, each func(ast.Node) error) error {
	switch s := n.(type) {
	case *ast.NullNode:
		return nil
	case *ast.SequenceNode:
		if len(s.Values) > 256 {
			return fmt.Errorf("has more than 256 elements")
		}
		for _, e := range s.Values {
			if err := each(e); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("is no list")
}

func pairs(n ast.Node, each func(string, ast.Node) error) error {
	var entries []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.NullNode:
	case *ast.MappingNode:
		entries = m.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{m}
	default:
		return fmt.Errorf("is no mapping of names to values")
	}
	for _, e := range entries {
		if err := each(e.Key.GetToken().Value, e.Value); err != nil {
			return err
		}
	}
	return nil
}

func projectNode(n ast.Node) (Project, error) {
	var p Project
	err := pairs(n, func(name string, v ast.Node) error {
		s, ok := scalar(v)
		if !ok {
			return fmt.Errorf("%s is no string", name)
		}
		switch name {
		case "name":
			p.Name = s
		case "root":
			p.Root = s
		default:
			return fmt.Errorf("a project has no %q, only name and root", name)
		}
		return nil
	})
	return p, err
}

// fromText turns a word of a file, a variable or a flag into the type of its key.
func fromText(k Key, s string) (any, error) {
	switch k.Type {
	case String, Enum:
		return s, nil
	case Bool:
		switch strings.ToLower(s) {
		case "true", "1", "yes", "on":
			return true, nil
		case "false", "0", "no", "off":
			return false, nil
		}
		return nil, fmt.Errorf("is no bool, write true or false")
	case Int:
		if len(s) > 1 && s[0] == '0' {
			return nil, fmt.Errorf("begins with a zero, which could mean octal")
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, fmt.Errorf("is no whole number")
		}
		return n, nil
	case Bytes:
		return parseBytes(s)
	case Duration:
		return parseDuration(s)
	case List:
		return slices.DeleteFunc(filepath.SplitList(s), func(e string) bool { return e == "" }), nil
	case Hosts:
		return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }), nil
	}
	return nil, fmt.Errorf("can only be set in the file")
}

func parseBytes(s string) (int64, error) {
	digits := strings.TrimRight(s, "kKmMgGiIbB ")
	unit := strings.ToLower(strings.TrimSpace(s[len(digits):]))
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || len(digits) > 1 && digits[0] == '0' {
		return 0, fmt.Errorf("is no size, write such as 32MiB")
	}
	shift := map[string]uint{"": 0, "b": 0, "k": 10, "kb": 10, "kib": 10, "m": 20, "mb": 20, "mib": 20, "g": 30, "gb": 30, "gib": 30}
	by, ok := shift[unit]
	if !ok || n > 1<<(62-by) {
		return 0, fmt.Errorf("is no size, write such as 32MiB")
	}
	return n << by, nil
}

// parseDuration also takes whole days, which Go's own does not.
func parseDuration(s string) (time.Duration, error) {
	if d, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(d, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	if s == "0" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("is no duration, write such as 90s, 24h or 7d")
	}
	return d, nil
}

// check holds a value against its row. hint is what could be meant.
func check(k Key, key string, v any) (text, hint string) {
	inRange := func(n int64, show func(int64) string) string {
		if n < k.Min || n > k.Max {
			return fmt.Sprintf("%s is not between %s and %s", show(n), show(k.Min), show(k.Max))
		}
		return ""
	}
	switch k.Type {
	case Enum:
		s := v.(string)
		if !slices.Contains(k.Values, s) {
			if near := nearest(strings.ToLower(s), k.Values); near != "" {
				hint = fmt.Sprintf("did you mean %s?", near)
			}
			return fmt.Sprintf("%q is none of %s", clip(s), strings.Join(k.Values, ", ")), hint
		}
	case Int:
		return inRange(int64(v.(int)), func(n int64) string { return strconv.FormatInt(n, 10) }), ""
	case Bytes:
		return inRange(v.(int64), showBytes), ""
	case Duration:
		return inRange(int64(v.(time.Duration)), func(n int64) string { return showDuration(time.Duration(n)) }), ""
	case String:
		return checkString(key, v.(string))
	case Headers:
		for name, val := range v.(map[string]string) {
			if !headerName(name) || strings.ContainsFunc(val, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
				return fmt.Sprintf("%q is no header that could be sent", clip(name)), ""
			}
			if name == "host" || name == "content-length" || name == "transfer-encoding" || name == "connection" {
				return fmt.Sprintf("header %s is set by the proxy itself", name), ""
			}
		}
	case List:
		for _, f := range v.([]string) {
			if !filepath.IsAbs(f) {
				return fmt.Sprintf("%q is no absolute path", clip(f)), ""
			}
		}
	case Hosts:
		for _, p := range v.([]string) {
			err := connect.Check(p)
			if key == "connect.ai_vendors" && !strings.Contains(p, ".") {
				err = connect.CheckVendor(p)
			}
			if err != nil {
				return err.Error(), ""
			}
		}
	case Roots:
		return checkProjects(v.([]Project))
	}
	return "", ""
}

func checkString(key, s string) (text, hint string) {
	if strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return "holds control characters", ""
	}
	switch name := key[strings.LastIndexByte(key, '.')+1:]; name {
	case "base_url":
		if s == "" {
			return "is missing", "give the URL that requests go to"
		}
		u, err := url.Parse(s)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			return "is no http or https URL", ""
		case u.User != nil:
			return "holds a user name or password", "use key_env, key_file or headers"
		case u.RawQuery != "" || u.Fragment != "":
			return "has a query or a fragment", ""
		}
	case "key_file", "key_age", "key_age_identity", "ca_file", "path":
		if s != "" && !filepath.IsAbs(s) {
			return fmt.Sprintf("%q is no absolute path", clip(s)), ""
		}
	case "key_env":
		if s != "" && !envName(s) {
			return fmt.Sprintf("%q is no name of a variable", clip(s)), "the variable's name belongs here, never the key itself"
		}
	case "key_ledger":
		if s != "" && !projectName(s) {
			return fmt.Sprintf("%q is no name of a kept key", clip(s)), "the name belongs here, never the key itself"
		}
	case "key_keyring", "seal_keyring":
		if service, user, ok := strings.Cut(s, "/"); s != "" && (!ok || service == "" || user == "") {
			return fmt.Sprintf("%q is not SERVICE/USER", clip(s)), "the entry's names belong here, never the key itself"
		}
	case "bind_host":
		if s != "localhost" {
			if _, err := netip.ParseAddr(s); err != nil {
				return fmt.Sprintf("%q is no IP address", clip(s)), ""
			}
		}
	}
	return "", ""
}

func checkProjects(ps []Project) (text, hint string) {
	seen := make(map[string]bool)
	for _, p := range ps {
		switch {
		case !projectName(p.Name):
			return fmt.Sprintf("%q is no name for a project", clip(p.Name)), "use letters, digits, dot, - and _, at most 64"
		case seen[p.Name]:
			return fmt.Sprintf("%s is there twice", p.Name), ""
		case !filepath.IsAbs(p.Root):
			return fmt.Sprintf("the root of %s is no absolute path", p.Name), ""
		case filepath.Clean(p.Root) == "/":
			return fmt.Sprintf("the root of %s is the whole file system", p.Name), "register the project's own directory"
		}
		seen[p.Name] = true
	}
	return "", ""
}

func projectName(s string) bool {
	if s == "" || len(s) > 64 || s[0] == '.' || s[0] == '-' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_')
	})
}

func headerName(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	})
}

func envName(s string) bool {
	return len(s) <= 128 && !(s[0] >= '0' && s[0] <= '9') && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_')
	})
}

// clip keeps foreign text in messages short.
func clip(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

func showBytes(n int64) string {
	for _, u := range []struct {
		by   int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.by && n%u.by == 0 {
			return strconv.FormatInt(n/u.by, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

func showDuration(d time.Duration) string {
	if d != 0 && d%(24*time.Hour) == 0 {
		return strconv.FormatInt(int64(d/(24*time.Hour)), 10) + "d"
	}
	s := d.String()
	if t, ok := strings.CutSuffix(s, "m0s"); ok {
		s = t + "m"
	}
	if t, ok := strings.CutSuffix(s, "h0m"); ok {
		s = t + "h"
	}
	return s
}

// display writes a value as people read it. Values of headers may be secrets.
func display(k Key, v any) string {
	switch x := v.(type) {
	case time.Duration:
		return showDuration(x)
	case int64:
		if k.Type == Bytes {
			return showBytes(x)
		}
	case map[string]string:
		names := slices.Sorted(maps.Keys(x))
		for i, n := range names {
			names[i] = n + ": …"
		}
		return "{" + strings.Join(names, ", ") + "}"
	case []string:
		return "[" + strings.Join(x, ", ") + "]"
	case []Project:
		var out []string
		for _, p := range x {
			out = append(out, p.Name+"="+p.Root)
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	return fmt.Sprint(v)
}

// values reads a Config back into concrete keys. It goes by the struct's tags,
// so a Config that was changed by hand in a test compares as it stands.
func values(c *Config) map[string]any {
	out := make(map[string]any, len(Keys)+16)
	collect(out, "", reflect.ValueOf(*c))
	return out
}

func collect(out map[string]any, prefix string, v reflect.Value) {
	t := v.Type()
	for i := range t.NumField() {
		tag := t.Field(i).Tag.Get("mapstructure")
		if tag == "" {
			continue
		}
		key, f := prefix+tag, v.Field(i)
		switch {
		case key == "upstreams":
			for _, name := range f.MapKeys() {
				collect(out, upstreamPrefix+name.String()+".", f.MapIndex(name))
			}
		case f.Kind() == reflect.Struct:
			collect(out, key+".", f)
		case f.Type() == reflect.TypeFor[time.Duration]():
			out[key] = time.Duration(f.Int())
		case f.Kind() == reflect.String:
			out[key] = f.String()
		default:
			out[key] = f.Interface()
		}
	}
}
