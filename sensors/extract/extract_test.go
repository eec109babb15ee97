package extract

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/sensors/spec"
)

// short is a value as a test reads it: TEXT@PLACE, or PROBLEM, several in
// brackets.
func short(v spec.Value) string {
	s := v.Text
	if len(v.All) > 0 {
		s = "[" + strings.Join(v.All, " ") + "]"
	}
	if v.Problem != "" {
		return strings.TrimSpace(v.Problem + " " + s)
	}
	return s + "@" + v.Place
}

func TestExtract(t *testing.T) {
	const ps = "USER         PID %CPU COMMAND\nroot           1  0.0 init\nwww-data     712  0.3 nginx: worker process\nwww-data     713  0.1 nginx: worker process\n"
	const docker = "CONTAINER ID   IMAGE          STATUS         NAMES\nab12           nginx:1.22     Up 2 hours     edge\ncd34           shop:2.4.0                    app\n"
	const psql = " tgname | tgenabled | note \n--------+-----------+------\n audit  | D         | \n other  | O         | x\n(2 rows)\n"
	const mysql = "+------+-------+\n| name | value |\n+------+-------+\n| mode | strict |\n+------+-------+\n"
	for _, tc := range []struct {
		name string
		e    spec.Extract
		out  string
		want string
	}{
		{"bare space", spec.Extract{Name: "limit", Bare: true}, "limit 1m\n", "1m@output:1"},
		{"bare equals", spec.Extract{Name: "limit", Bare: true}, "a\nlimit = 1m\n", "1m@output:2"},
		{"bare colon", spec.Extract{Name: "limit", Bare: true}, "limit: 1m", "1m@output:1"},
		{"bare crlf, quotes, comma", spec.Extract{Name: "limit", Bare: true}, "  \"limit\": \"1 m\",\r\n", "1 m@output:1"},
		{"bare comment after", spec.Extract{Name: "limit", Bare: true}, "limit 1m # was 20m\n", "1m@output:1"},
		{"bare commented out", spec.Extract{Name: "limit", Bare: true}, "# limit 1m\n; limit 2m\n// limit 3m\n", "missing_value"},
		{"bare longer name", spec.Extract{Name: "limit", Bare: true}, "limits 1m\nlimit_req 2\nmy limit 3\n", "missing_value"},
		{"bare colour", spec.Extract{Name: "limit", Bare: true}, "\x1b[32mlimit\x1b[0m \x1b[1m1m\x1b[0m\n", "1m@output:1"},
		{"bare no value", spec.Extract{Name: "limit", Bare: true}, "limit\nlimit   \n", "missing_value"},
		{"same value twice", spec.Extract{Name: "limit", Bare: true}, "limit 1m\nlimit 1m\n", "1m@output:1"},
		{"conflict", spec.Extract{Name: "limit", Bare: true}, "limit 1m\nlimit 20m\n", "ambiguous_value [1m 20m]"},
		{"first", spec.Extract{Name: "limit", Bare: true, Which: "first"}, "limit 1m\nlimit 20m\n", "1m@output:1"},
		{"last", spec.Extract{Name: "limit", Bare: true, Which: "last"}, "limit 1m\nlimit 20m\n", "20m@output:2"},
		{"all", spec.Extract{Name: "limit", Bare: true, Which: "all"}, "limit 1m\nlimit 20m\n", "[1m 20m]@output:1"},
		{"effective of plain text", spec.Extract{Name: "limit", Bare: true, Which: "effective"}, "limit 1m\nlimit 20m\n", "ambiguous_value [1m 20m]"},
		{"map", spec.Extract{Name: "limit", Bare: true, Type: spec.Bytes, TypeSet: true, Map: map[string]string{"0": "unlimited"}}, "limit 0\n", "unlimited@output:1"},
		{"mismatch", spec.Extract{Name: "limit", Bare: true, Type: spec.Bytes, TypeSet: true}, "limit lots\n", "type_mismatch lots"},
		{"all with a mismatch", spec.Extract{Name: "n", Bare: true, Which: "all", Type: spec.Number, TypeSet: true}, "n 1\nn x\n", "type_mismatch [1 x]"},
		{"kv", spec.Extract{Name: "m", KV: "maxmemory"}, "# Memory\r\nmaxmemory_human:3M\r\nmaxmemory:3145728\r\n", "3145728@output:3"},
		{"kv export", spec.Extract{Name: "m", KV: "PORT"}, "export PORT='3000'\n", "3000@output:1"},
		{"kv needs a sign", spec.Extract{Name: "m", KV: "PORT"}, "PORT 3000\n", "missing_value"},
		{"kv empty", spec.Extract{Name: "m", KV: "PORT"}, "PORT=\n", "@output:1"},
		{"line", spec.Extract{Name: "t", Line: "timeout server"}, "backend b\n  timeout  server 1500ms\n  timeout server-fin 1s\n", "1500ms@output:2"},
		{"line needs a space", spec.Extract{Name: "t", Line: "limit"}, "limit=3\n", "missing_value"},
		{"regex", spec.Extract{Name: "w", Regex: `^workers (?P<value>\d+)$`}, "x\nworkers 3\r\nworkers 3\n", "3@output:3"},
		{"regex group", spec.Extract{Name: "w", Regex: `^v(?P<value>\d+)?`}, "v\n", "missing_value"},
		{"regex without group", spec.Extract{Name: "w", Regex: `x`}, "x\n", "missing_value"},
		{"regex broken", spec.Extract{Name: "w", Regex: `(`}, "x\n", "missing_value"},
		{"lines", spec.Extract{Name: "n", Lines: `worker process`}, ps, "2@output"},
		{"lines none", spec.Extract{Name: "n", Lines: `worker process`}, "", "0@output"},
		{"exit", spec.Extract{Name: "x", Exit: true, Map: map[string]string{"1": "unlimited"}}, "", "unlimited@exit"},
		{"json", spec.Extract{Name: "v", JSON: "a.b"}, `{"a":{"b":20.10}}`, "20.10@json"},
		{"json string", spec.Extract{Name: "v", JSON: "a.b"}, `{"a":{"b":"x y"}}`, "x y@json"},
		{"json bool", spec.Extract{Name: "v", JSON: "a", Type: spec.Bool, TypeSet: true}, `{"a":true}`, "true@json"},
		{"json null", spec.Extract{Name: "v", JSON: "a"}, `{"a":null}`, "missing_value"},
		{"json object", spec.Extract{Name: "v", JSON: "a"}, `{"a":{}}`, "ambiguous_value"},
		{"json list", spec.Extract{Name: "v", JSON: "#.v", Which: "all"}, `[{"v":"2.4.0"},{"v":"2.3.9"}]`, "[2.4.0 2.3.9]@json"},
		{"json list unasked", spec.Extract{Name: "v", JSON: "#.v"}, `[{"v":"2.4.0"},{"v":"2.3.9"}]`, "ambiguous_value [2.4.0 2.3.9]"},
		{"json list with null", spec.Extract{Name: "v", JSON: "a", Which: "all"}, `{"a":["x",null]}`, "ambiguous_value x"},
		{"json broken", spec.Extract{Name: "v", JSON: "a"}, `{"a":1`, "missing_value"},
		{"json lines", spec.Extract{Name: "v", JSON: "..#.v"}, "{\"v\":1}\n{\"v\":1}\n", "1@json"},
		{"json lines broken", spec.Extract{Name: "v", JSON: "..#.v"}, "{\"v\":1}\n{\"v\":\n", "ambiguous_value"},
		{"table ps", spec.Extract{Name: "p", Table: &spec.Table{Column: "PID", Where: map[string]string{"USER": "root"}}}, ps, "1@output:2"},
		{"table ps two", spec.Extract{Name: "p", Table: &spec.Table{Column: "PID", Where: map[string]string{"USER": "www-data"}}}, ps, "ambiguous_value [712 713]"},
		{"table ps rest", spec.Extract{Name: "p", Table: &spec.Table{Column: "command", Where: map[string]string{"PID": "712"}}}, ps, "nginx: worker process@output:3"},
		{"table docker", spec.Extract{Name: "i", Table: &spec.Table{Column: "IMAGE", Where: map[string]string{"NAMES": "app"}}}, docker, "shop:2.4.0@output:3"},
		{"table docker empty cell", spec.Extract{Name: "i", Table: &spec.Table{Column: "STATUS", Where: map[string]string{"NAMES": "app"}}}, docker, "@output:3"},
		{"table docker heading of two words", spec.Extract{Name: "i", Table: &spec.Table{Column: "CONTAINER ID", Where: map[string]string{"NAMES": "edge"}}}, docker, "ab12@output:2"},
		{"table psql", spec.Extract{Name: "e", Table: &spec.Table{Column: "tgenabled", Where: map[string]string{"tgname": "audit"}}}, psql, "D@output:3"},
		{"table mysql", spec.Extract{Name: "e", Table: &spec.Table{Column: "value", Where: map[string]string{"name": "mode"}}}, mysql, "strict@output:4"},
		{"table csv", spec.Extract{Name: "e", Table: &spec.Table{Column: "b", Where: map[string]string{"a": "x,y"}}}, "a,b\n\"x,y\",2\nz,3\n", "2@output:2"},
		{"table tabs", spec.Extract{Name: "e", Table: &spec.Table{Column: "b"}}, "a\tb\nx\t2\n", "2@output:2"},
		{"table df", spec.Extract{Name: "e", Table: &spec.Table{Column: "Available", Where: map[string]string{"Mounted on": "/my disk"}}},
			"Filesystem     1K-blocks  Used Available Use% Mounted on\n/dev/sda1         100    50        50  50% /\n/dev/sdb1         100    50        40  60% /my disk\n", "40@output:3"},
		{"table row too short", spec.Extract{Name: "e", Table: &spec.Table{Column: "B", Where: map[string]string{"A": "x"}}}, "A B C\nx 1\n", "ambiguous_value"},
		{"table other row too short", spec.Extract{Name: "e", Table: &spec.Table{Column: "B", Where: map[string]string{"A": "x"}}}, "A B C\ny 1\nx 1 2\n", "1@output:3"},
		{"table no such column", spec.Extract{Name: "e", Table: &spec.Table{Column: "Z"}}, "A B C\nx 1 2\n", "missing_value"},
		{"table column twice", spec.Extract{Name: "e", Table: &spec.Table{Column: "A"}}, "A A C\nx 1 2\n", "missing_value"},
		{"nothing", spec.Extract{Name: "x", Bare: true}, "", "missing_value"},
		{"not text", spec.Extract{Name: "x", Bare: true}, "x \xff\xfe\x00\n", "\uFFFD\x00@output:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Extract(&spec.Sensor{Extract: []spec.Extract{tc.e}}, []byte(tc.out), 1)
			if len(got) != 1 || got[0].Key != tc.e.Name {
				t.Fatalf("%+v", got)
			}
			if s := short(got[0]); s != tc.want {
				t.Errorf("got %s, want %s", s, tc.want)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	e := spec.Extract{Name: "x", Bare: true}
	v := Extract(&spec.Sensor{Extract: []spec.Extract{e}}, []byte("x "+strings.Repeat("y", maxText+1)), 0)[0]
	if v.Problem != Mismatch || len(v.Text) != maxText {
		t.Errorf("%s, %d bytes", v.Problem, len(v.Text))
	}
	e.Which = "all"
	v = Extract(&spec.Sensor{Extract: []spec.Extract{e}}, []byte(strings.Repeat("x 1\n", maxMatches+1)), 0)[0]
	if v.Problem != Ambiguous {
		t.Errorf("more matches than are kept: %q", v.Problem)
	}
}

func effective(t *testing.T, conf, directive string) string {
	t.Helper()
	e := spec.Extract{Name: "v", Line: directive, Which: "effective"}
	return short(Extract(&spec.Sensor{Extract: []spec.Extract{e}}, []byte(conf), 0)[0])
}

func TestNginxInclude(t *testing.T) {
	dump, err := os.ReadFile("testdata/nginx_include.conf")
	if err != nil {
		t.Fatal(err)
	}
	conf := string(dump)
	for directive, want := range map[string]string{
		"client_max_body_size": "1m@/run/t/conf.d/10-upload.conf:2",
		"worker_processes":     "2@/run/t/nginx.conf:1",
		"worker_connections":   "64@/run/t/nginx.conf:2",
		"proxy_timeout":        "3s@/run/t/nginx.conf:22",
		"proxy_read_timeout":   "missing_value",
		"server_name":          "shop;example@/run/t/nginx.conf:11",
	} {
		if got := effective(t, conf, directive); got != want {
			t.Errorf("%s: %s, want %s", directive, got, want)
		}
	}
	// Without `effective` both places stand, and settle nothing.
	v := Extract(&spec.Sensor{Extract: []spec.Extract{{Name: "client_max_body_size", Bare: true}}}, dump, 0)[0]
	if diff := cmp.Diff([]string{"/run/t/nginx.conf:5", "/run/t/conf.d/10-upload.conf:2"}, v.Places); diff != "" || v.Problem != Ambiguous {
		t.Errorf("%s\n%s", v.Problem, diff)
	}
}

func TestNginxEffective(t *testing.T) {
	for _, tc := range []struct{ name, conf, want string }{
		{"http level", "http {\n d 20m;\n server {\n listen 80; } }", "20m@output:2"},
		{"server over http", "http {\n d 20m;\n server {\n d 1m;\n } }", "1m@output:4"},
		{"location over server", "http { server { d 1m;\n location / {\n d 5m; } } }", "5m@output:3"},
		{"location beside server", "http { server { d 1m; location /up { d 5m; } } }", "ambiguous_value [5m 1m]"},
		{"nested location", "http { server { location / { d 1m; location /up { d 5m; } } } }", "ambiguous_value [1m 5m]"},
		{"locations that agree", "http { server { d 1m; location /a { } location = /b { d 1m; } } }", "1m@output:1"},
		{"servers differ", "http { server { d 1m; } server { d 2m; } }", "ambiguous_value [1m 2m]"},
		{"servers agree", "http { d 1m; server { } server { d 1m; } }", "1m@output:1"},
		{"one server on the default", "http { server { d 1m; } server { listen 81; } }", "ambiguous_value 1m"},
		{"redirecting server aside", "http { d 20m; server { return 301 /; } server { d 1m; } }", "1m@output:1"},
		{"only redirecting", "http { d 20m; server { return 301 /; } }", "20m@output:1"},
		{"in an if", "http { server { d 1m; if ($a) { d 2m; } } }", "ambiguous_value 1m"},
		{"twice in a block", "http { server { d 1m; d 2m; } }", "ambiguous_value 1m"},
		{"http without servers", "http { d 1m; }", "1m@output:1"},
		{"fragment", "server { d 1m; location / { } }\n", "ambiguous_value"},
		{"fragment on lines", "server {\n d 1m;\n}\n", "1m@output:2"},
		{"commented", "http {\n # d 9m;\n d 1m;\n server { } }", "1m@output:3"},
		{"quoted", "http {\n x \"; d 9m;\";\n d '1m';\n server { } }", "1m@output:3"},
		{"unbalanced is no configuration", "http {\n d 1m;\n server {\n d 2m;\n", "ambiguous_value [1m 2m]"},
	} {
		conf := tc.conf
		if !strings.Contains(conf, "http {\n") && !strings.HasPrefix(conf, "server") {
			conf = "# configuration file output:\n" + conf
		}
		got := effective(t, conf, "d")
		if tc.name == "fragment" {
			// One line that only looks a bit like nginx is read as a plain line.
			if !strings.HasPrefix(got, "missing") {
				t.Errorf("%s: %s", tc.name, got)
			}
			continue
		}
		if got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

// A dump that cannot be read holds no value: neither an include that includes
// itself nor a cut file is searched line by line for something that fits.
func TestNginxBroken(t *testing.T) {
	for _, conf := range []string{
		"# configuration file /a/nginx.conf:\nhttp { include b.conf; }\n# configuration file /a/b.conf:\nd 1m; include c.conf;\n# configuration file /a/c.conf:\ninclude b.conf;\n",
		"# configuration file /a/nginx.conf:\nhttp {\nd 20m;\nserver {\n",
	} {
		if got := effective(t, conf, "d"); got != "ambiguous_value" {
			t.Errorf("got %s", got)
		}
	}
}

func TestParses(t *testing.T) {
	for _, tc := range []struct {
		t    spec.Type
		text string
		ok   bool
	}{
		{spec.Number, "12", true}, {spec.Number, "-1.5", true}, {spec.Number, ".5", true}, {spec.Number, "1e3", true}, {spec.Number, "+3", true},
		{spec.Number, "1e", false}, {spec.Number, "1e+-3", false}, {spec.Number, "1e999", false}, {spec.Number, "", false}, {spec.Number, "1.2.3", false},
		{spec.Number, "0x10", false}, {spec.Number, "1,5", false}, {spec.Number, "12,345,678", true}, {spec.Number, "1234,567,890", false}, {spec.Number, "1,234", false},
		{spec.Number, strings.Repeat("9", 65), false}, {spec.Number, "NaN", false}, {spec.Number, "Inf", false}, {spec.Number, "unlimited", true}, {spec.Number, "1/3", false},
		{spec.Bool, "on", true}, {spec.Bool, "T", true}, {spec.Bool, "enabled", false}, {spec.Bool, "unlimited", false},
		{spec.Bytes, "1m", true}, {spec.Bytes, "1.5 GiB", true}, {spec.Bytes, "10 b", true}, {spec.Bytes, "-1m", false}, {spec.Bytes, "1 mx", false}, {spec.Bytes, "m", false},
		{spec.Duration, "30s", true}, {spec.Duration, "1h 30m", true}, {spec.Duration, "90 min", true}, {spec.Duration, "0", true}, {spec.Duration, "30", false},
		{spec.Duration, "1M", false}, {spec.Duration, "-3s", false}, {spec.Duration, "1s-2s", false}, {spec.Duration, "s", false}, {spec.Duration, "5 S", true},
		{spec.Version, "v1.2.3-rc.1+b", true}, {spec.Version, "PostgreSQL 15.3", true}, {spec.Version, "1.22.1~deb12", true}, {spec.Version, "18.x", true},
		{spec.Version, "latest", false}, {spec.Version, "2.4.0 2.3.9", false}, {spec.Version, "14.11 (Debian 14.11-1)", true}, {spec.Version, "1..2", false}, {spec.Version, ".1", false}, {spec.Version, "", false}, {spec.Version, "1.2.3.4.5.6.7.8.9", false},
		{spec.String, "anything", true},
	} {
		if got := Parses(tc.t, tc.text); got != tc.ok {
			t.Errorf("%s %q: %v", tc.t, tc.text, got)
		}
	}
}

func FuzzExtract(f *testing.F) {
	dump, err := os.ReadFile("testdata/nginx_include.conf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(dump, "client_max_body_size", "effective", 0)
	f.Add([]byte(`{"a":[1,"x",null]}`), "a", "all", 0)
	f.Add([]byte("A  B\nx  1\n"), "B", "", 1)
	f.Add([]byte("http { server { d 1m; location / { d 2m; } } }"), "d", "effective", 0)
	f.Fuzz(func(t *testing.T, out []byte, name, which string, exit int) {
		kinds := []spec.Extract{
			{Bare: true}, {Regex: `(?P<value>\S+);`}, {JSON: name}, {JSON: "..#." + name}, {KV: name}, {Line: name}, {Lines: name},
			{Table: &spec.Table{Column: name, Where: map[string]string{"A": "x"}}}, {Table: &spec.Table{Column: name}}, {Exit: true},
		}
		types := []spec.Type{spec.String, spec.Number, spec.Bool, spec.Bytes, spec.Duration, spec.Version}
		for i := range kinds {
			kinds[i].Name, kinds[i].Which = name, which
			kinds[i].Type, kinds[i].TypeSet = types[i%len(types)], true
		}
		for _, v := range Extract(&spec.Sensor{Extract: kinds}, out, exit) {
			if len(v.All) > maxMatches || len(v.Text) > maxText || v.Problem == "" && !Parses(v.Type, v.Text) {
				t.Fatalf("%+v", v)
			}
			if v.Problem == "" && v.Which != "all" && len(v.All) > 0 {
				t.Fatalf("several values without a problem: %+v", v)
			}
		}
	})
}

func BenchmarkExtractNginx(b *testing.B) {
	dump, err := os.ReadFile("testdata/nginx_include.conf")
	if err != nil {
		b.Fatal(err)
	}
	var big strings.Builder
	big.Write(dump)
	for i := range 400 {
		fmt.Fprintf(&big, "# configuration file /run/t/sites/%d.conf:\nserver { listen %d; location / { proxy_pass http://127.0.0.1:3000; } }\n", i, i)
	}
	s := &spec.Sensor{Extract: []spec.Extract{{Name: "v", Line: "client_max_body_size", Which: "effective", Type: spec.Bytes}}}
	out := []byte(big.String())
	b.SetBytes(int64(len(out)))
	b.ReportAllocs()
	for b.Loop() {
		Extract(s, out, 0)
	}
}
