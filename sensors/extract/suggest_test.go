package extract

import (
	"fmt"
	"strings"
	"testing"

	"gettier.dev/gettierd/sensors/spec"
)

func TestSuggest(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{"client_max_body_size 20m;\nworkers 4;\n", "client_max_body_size:bytes workers:number"},
		{"a = 1\nb = on\nc = x y\na = 2\n", "b:bool c:string"},
		{"{\"version\": \"1.2.3\", \"n\": 4, \"ok\": true, \"o\": {}}", "version:version n:number ok:bool"},
		{"v20.11.1\n", "version:version"},
		{"main\n", "value:string"},
		{"Filesystem       Inodes  IUsed    IFree IUse% Mounted on\n/dev/vda       16777216 529973 16247243    4% /\n", "ifree:number iuse:string"},
		{"NAME   STATUS   AGE\nweb    Ready    3d\ndb     Down     4d\n", "status:string age:duration"},
		{"", ""},
		{"one line\nanother one, and more of it; nothing: to: see\n", "one:string"},
		{strings.Repeat("x", 300), "value:string"},
	} {
		var got []string
		for _, e := range Suggest([]byte(c.raw)) {
			got = append(got, fmt.Sprintf("%s:%s", e.Name, e.Type))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%.60q: %s, want %s", c.raw, s, c.want)
		}
	}
}

// Whatever a program prints, what is offered works on it.
func FuzzSuggest(f *testing.F) {
	f.Add([]byte("a = 1\n"))
	f.Add([]byte(`{"a":1}`))
	f.Add([]byte("v1.2.3"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		list := Suggest(raw)
		if len(list) > maxSuggested {
			t.Fatal(len(list))
		}
		for _, v := range Extract(&spec.Sensor{Extract: list}, raw, 0) {
			if v.Problem != "" {
				t.Fatalf("%q: %+v", raw, v)
			}
		}
	})
}
