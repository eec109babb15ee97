package spec

import (
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeFS resolves below /p, where some names are links.
func fakeFS(links map[string]string) Resolve {
	return func(p string) (string, error) {
		if !path.IsAbs(p) {
			p = path.Join("/p", p)
		}
		p = path.Clean(p)
		for from, to := range links {
			if p == from || strings.HasPrefix(p, from+"/") {
				p = to + strings.TrimPrefix(p, from)
			}
		}
		if strings.Contains(p, "gone") {
			return "", errors.New("no such file")
		}
		return p, nil
	}
}

func sensorWith(t *testing.T, command, params string) *Sensor {
	t.Helper()
	text := "version: 1\nsensors:\n- id: s\n  effects: none\n  command: " + command + "\n  params:\n" + params
	reg, problems := Parse("f", "user", []byte(text))
	if problems != nil {
		t.Fatal(Explain("f", []byte(text), problems))
	}
	return reg.Sensors[0]
}

func TestBind(t *testing.T) {
	links := map[string]string{"/p/src/out": "/etc", "/p/src/in": "/p/src/deep"}
	for _, tt := range []struct {
		name, command, params string
		given                 map[string]string
		claim                 string
		want                  []string
		fails                 string // text of the error, "" for none
		missing               bool
	}{
		{name: "a path below the project", command: "x {{p}}", params: `    p: { type: path, allow: "src/**" }`, given: map[string]string{"p": "src/a.js"}, want: []string{"x", "/p/src/a.js"}},
		{name: "a path that climbs out", command: "x {{p}}", params: `    p: { type: path, allow: "src/**" }`, given: map[string]string{"p": "src/../../etc/passwd"}, fails: "outside"},
		{name: "a link that leads out", command: "x {{p}}", params: `    p: { type: path, allow: "src/**" }`, given: map[string]string{"p": "src/out/passwd"}, fails: "outside"},
		{name: "a link that stays inside", command: "x {{p}}", params: `    p: { type: path, allow: "src/**" }`, given: map[string]string{"p": "src/in/a"}, want: []string{"x", "/p/src/deep/a"}},
		{name: "an absolute path", command: "x {{p}}", params: `    p: { type: path, allow: "/etc/nginx/**" }`, given: map[string]string{"p": "/etc/nginx/conf.d/a.conf"}, want: []string{"x", "/etc/nginx/conf.d/a.conf"}},
		{name: "a path that is not there", command: "x {{p}}", params: `    p: { type: path, allow: "**" }`, given: map[string]string{"p": "gone"}, fails: "cannot be resolved"},
		{name: "inside a word", command: "x --path={{p}}/y", params: `    p: { type: identifier }`, given: map[string]string{"p": "a_1"}, want: []string{"x", "--path=a_1/y"}},
		{name: "blanks stay in one word", command: "x {{p}}", params: `    p: { type: string, pattern: '[a-z; ]+' }`, given: map[string]string{"p": "a; rm b"}, want: []string{"x", "a; rm b"}},
		{name: "an option", command: "x {{p}}", params: `    p: { type: string, pattern: '.*' }`, given: map[string]string{"p": "--force"}, fails: "begins with -"},
		{name: "an allowed dash", command: "x {{p}}", params: `    p: { type: int, allow_dash: true }`, given: map[string]string{"p": "-5"}, want: []string{"x", "-5"}},
		{name: "a newline", command: "x {{p}}", params: `    p: { type: string, pattern: '(?s).*' }`, given: map[string]string{"p": "a\nb"}, fails: "control"},
		{name: "a NUL", command: "x {{p}}", params: `    p: { type: string, pattern: '(?s).*' }`, given: map[string]string{"p": "a\x00b"}, fails: "control"},
		{name: "invalid UTF-8", command: "x {{p}}", params: `    p: { type: string, pattern: '(?s).*' }`, given: map[string]string{"p": "a\xff"}, fails: "control"},
		{name: "a pattern matches the whole", command: "x {{p}}", params: `    p: { type: string, pattern: 'a|b' }`, given: map[string]string{"p": "ab"}, fails: "pattern"},
		{name: "an enum", command: "x {{p}}", params: `    p: { type: enum, values: [a, b] }`, given: map[string]string{"p": "c"}, fails: "not one of"},
		{name: "octal", command: "x {{p}}", params: `    p: { type: int }`, given: map[string]string{"p": "010"}, fails: "whole number"},
		{name: "hexadecimal", command: "x {{p}}", params: `    p: { type: number }`, given: map[string]string{"p": "0x10"}, fails: "not a number"},
		{name: "infinity", command: "x {{p}}", params: `    p: { type: number }`, given: map[string]string{"p": "Inf"}, fails: "not a number"},
		{name: "below min", command: "x {{p}}", params: `    p: { type: int, min: 0 , max: 9 }`, given: map[string]string{"p": "10"}, fails: "bounds"},
		{name: "a port", command: "x {{p}}", params: `    p: { type: port }`, given: map[string]string{"p": "65536"}, fails: "not a port"},
		{name: "a host", command: "x {{p}}", params: `    p: { type: host }`, given: map[string]string{"p": "db.local"}, want: []string{"x", "db.local"}},
		{name: "an address", command: "x {{p}}", params: `    p: { type: host }`, given: map[string]string{"p": "::1"}, want: []string{"x", "::1"}},
		{name: "a host with a user", command: "x {{p}}", params: `    p: { type: host }`, given: map[string]string{"p": "a@b"}, fails: "not a host"},
		{name: "a bool", command: "x {{p}}", params: `    p: { type: bool }`, given: map[string]string{"p": "yes"}, fails: "true or false"},
		{name: "too long", command: "x {{p}}", params: `    p: { type: string, pattern: 'a*' }`, given: map[string]string{"p": strings.Repeat("a", 2000)}, fails: "longer"},
		{name: "nothing", command: "x {{p}}", params: `    p: { type: identifier }`, fails: "nothing gives", missing: true},
		{name: "unknown", command: "x {{p}}", params: `    p: { type: identifier, default: a }`, given: map[string]string{"q": "b"}, fails: "not declared"},
		{name: "the default", command: "x {{p}}", params: `    p: { type: identifier, default: a }`, want: []string{"x", "a"}},
		{name: "the claim before the default", command: "x {{p}}", params: `    p: { type: int, default: 1, from_claim: 'port (?P<value>\d+)' }`, claim: "it listens on port 8080", want: []string{"x", "8080"}},
		{name: "given before the claim", command: "x {{p}}", params: `    p: { type: int, from_claim: 'port (?P<value>\d+)' }`, given: map[string]string{"p": "1"}, claim: "port 8080", want: []string{"x", "1"}},
		{name: "a claim's value is validated", command: "x {{p}}", params: `    p: { type: identifier, from_claim: 'file (?P<value>\S+)' }`, claim: "file --rm", fails: "begins with -"},
		{name: "no fallback from a refused claim", command: "x {{p}}", params: `    p: { type: int, max: 5, default: 1, from_claim: 'n=(?P<value>\d+)' }`, claim: "n=6", fails: "bounds"},
		{name: "a path in the claim", command: "x {{p}}", params: `    p: { type: path, allow: "src/routes/**" }`, claim: "The route in `src/routes/upload.js` is streamed.", want: []string{"x", "/p/src/routes/upload.js"}},
		{name: "two paths in the claim", command: "x {{p}}", params: `    p: { type: path, allow: "src/**" }`, claim: "src/a.js calls src/b.js", fails: "more than one", missing: true},
		{name: "the same path twice", command: "x {{p}}", params: `    p: { type: path, allow: "src/**" }`, claim: "src/a.js, and ./src/a.js", want: []string{"x", "/p/src/a.js"}},
		{name: "no allowed path in the claim", command: "x {{p}}", params: `    p: { type: path, allow: "src/**" }`, claim: "/etc/passwd is readable", fails: "nothing gives", missing: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := sensorWith(t, tt.command, tt.params)
			argv, bound, err := Bind(s, tt.given, tt.claim, fakeFS(links))
			if tt.fails != "" {
				var pe *ParamError
				if !errors.As(err, &pe) || !strings.Contains(pe.What, tt.fails) || pe.Missing != tt.missing {
					t.Fatalf("argv %q, error %#v, want %q", argv, err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, argv); diff != "" {
				t.Error(diff)
			}
			if len(bound) != 1 {
				t.Errorf("bound %v", bound)
			}
		})
	}
}

// TestGlobMeansItsOwnDirectory: characters of the project's path are no pattern.
func TestGlobMeansItsOwnDirectory(t *testing.T) {
	s := sensorWith(t, "x {{p}}", `    p: { type: path, allow: "src/*" }`)
	at := func(dir string) Resolve {
		return func(p string) (string, error) {
			if !path.IsAbs(p) {
				p = path.Join(dir, p)
			}
			return path.Clean(p), nil
		}
	}
	if _, _, err := Bind(s, map[string]string{"p": "src/a"}, "", at("/w/[a]{b,c}*")); err != nil {
		t.Error(err)
	}
	if _, _, err := Bind(s, map[string]string{"p": "/w/a/src/a"}, "", at("/w/[a]")); err == nil {
		t.Error("a bracket in the directory's name matched another directory")
	}
}

// FuzzBind: a value never adds or removes an argument, and never starts one
// with a dash.
func FuzzBind(f *testing.F) {
	for _, v := range []string{"a", "-x", "a b", "", "../x", "{{q}}", "a\x00", "é"} {
		f.Add(v, "see src/a.js "+v)
	}
	text := []byte("version: 1\nsensors:\n- id: s\n  effects: none\n  command: x {{p}} --q={{q}} {{r}}\n  params:\n    p: { type: string, pattern: '.*' }\n    q: { type: string, pattern: '.*', from_claim: 'see (?P<value>.*)' }\n    r: { type: path, allow: '**' }\n")
	reg, problems := Parse("f", "user", text)
	if problems != nil {
		f.Fatal(problems)
	}
	f.Fuzz(func(t *testing.T, v, claim string) {
		argv, bound, err := Bind(reg.Sensors[0], map[string]string{"p": v}, claim, fakeFS(nil))
		if err != nil {
			return
		}
		if len(argv) != 4 || argv[0] != "x" || argv[1] != v || !strings.HasPrefix(argv[2], "--q=") || !strings.HasPrefix(argv[3], "/p") {
			t.Fatalf("%q", argv)
		}
		if strings.HasPrefix(argv[1], "-") || strings.ContainsAny(strings.Join(argv, ""), "\x00\n\r") || len(bound) != 3 {
			t.Fatalf("%q", argv)
		}
	})
}
