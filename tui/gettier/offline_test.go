package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/ipc/ipctest"
	"gettier.dev/gettierd/sensors/spec"
)

// offline runs a command that needs no daemon.
func offline(t *testing.T, stdin io.Reader, args ...string) (int, string, string) {
	t.Helper()
	w := newWorld(t, ipctest.Anyone)
	w.stop()
	w.stdin = stdin
	return w.gettier(args...)
}

// A secret for tests, put together here.
func testPassword() string { return "T4" + "^zq!" + "Lm9xW" }

func TestRedactText(t *testing.T) {
	pw := testPassword()
	code, out, errs := offline(t, strings.NewReader("a\nDB_PASSWORD="+pw+"\n\x00\xff no newline"), "redact")
	if code != exitOK || out != "a\nDB_PASSWORD=[redacted:password]\n\x00\xff no newline" {
		t.Errorf("exit %d: %q", code, out)
	}
	if errs != "gettier: redacted 1 secret (password 1)\n" {
		t.Errorf("stderr %q", errs)
	}
	if code, out, errs := offline(t, strings.NewReader("DB_PASSWORD="+pw), "redact", "-q"); code != exitOK || strings.Contains(out, pw) || errs != "" {
		t.Errorf("exit %d: %q, %q", code, out, errs)
	}
	if _, out, errs := offline(t, strings.NewReader(""), "redact"); out+errs != "" {
		t.Errorf("nothing gives %q", out+errs)
	}
}

func TestRedactJSONL(t *testing.T) {
	pw := testPassword()
	in := strings.Join([]string{
		`{"text":"é DB_PASSWORD=` + pw + `","label":7}`,
		`{"text":"harmless <b>&amp;</b>"}`,
		`{"text":7}`,
		``,
		`not json`,
		`{"label":1}`,
		`{"text":"a"} {"text":"b"}`,
		`{"text":"lone \ud800 half"}`,
		`{"text":"last, without an end"}`,
	}, "\n")
	code, out, errs := offline(t, strings.NewReader(in), "redact", "--jsonl")
	var got []string
	for l := range strings.Lines(out) {
		var v struct {
			Text     string
			Findings []finding
			Error    string
			Line     int
		}
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		if v.Error != "" {
			got = append(got, "error in line "+string(rune('0'+v.Line)))
			continue
		}
		for _, f := range v.Findings {
			if text := "é DB_PASSWORD=" + pw; text[f.Start:f.End] != pw {
				t.Errorf("the finding is %q", text[f.Start:f.End])
			}
		}
		got = append(got, strings.TrimSuffix(l, "\n"))
	}
	want := []string{
		`{"text":"é DB_PASSWORD=[redacted:password]","findings":[{"rule":"password","start":15,"end":26}]}`,
		`{"text":"harmless <b>&amp;</b>","findings":[]}`,
		"error in line 3", "error in line 4", "error in line 5", "error in line 6", "error in line 7",
		`{"text":"lone � half","findings":[]}`,
		`{"text":"last, without an end","findings":[]}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if code != exitFound || !strings.Contains(errs, "5 of the lines") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if strings.Contains(out+errs, pw) {
		t.Error("the password is shown")
	}
}

// A line beyond the limit is refused without being kept, and the next is read.
func TestLongJSONLine(t *testing.T) {
	long := io.MultiReader(strings.NewReader(`{"text":"`), io.LimitReader(zeros{}, maxJSONLine+5), strings.NewReader("\"}\n{\"text\":\"b\"}\n"))
	code, out, _ := offline(t, long, "redact", "--jsonl")
	lines := strings.Split(out, "\n")
	if code != exitFound || len(lines) != 3 || !strings.Contains(lines[0], `"line":1`) || !strings.Contains(lines[1], `"text":"b"`) {
		t.Errorf("exit %d: %.300s", code, out)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// Another program can hold a conversation: each answer comes before the next
// question is asked.
func TestRedactConversation(t *testing.T) {
	in, ask := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan int, 1)
	go func() {
		a := &app{in: in, out: out, err: new(bytes.Buffer), env: []string{"HOME=" + t.TempDir()}}
		done <- a.run(t.Context(), []string{"redact", "--jsonl"})
		out.Close()
	}()
	d := json.NewDecoder(answers)
	for range 3 {
		io.WriteString(ask, `{"text":"x"}`+"\n")
		var v redactedText
		if err := d.Decode(&v); err != nil || v.Text != "x" {
			t.Fatal(v, err)
		}
	}
	ask.Close()
	if code := <-done; code != exitOK {
		t.Errorf("exit %d", code)
	}
}

func TestJudgeJSONL(t *testing.T) {
	in := strings.Join([]string{
		`{"claim":"nginx accepts uploads of 25 MB","sensor":"proxy.config","output":"client_max_body_size 1m;\n"}`,
		`{"claim":"nginx accepts uploads of 25 MB","sensor":"user/proxy.config","output":"client_max_body_size 32m;\n"}`,
		`{"claim":"nginx accepts uploads of 25 MB","sensor":"proxy.config","output":"nothing of it"}`,
		`{"claim":"nginx accepts uploads of 25 MB","sensor":"proxy.config","output":"client_max_body_size 32m;","exit":1}`,
		`{"claim":"large files pass","lemma":{"falsifying_observation":{"sensor":"proxy.config","key":"limit","operator":"<","value":"25MB"}},"sensor":"proxy.config","output":"client_max_body_size 1m;"}`,
		`{"lemma":{"claim":"large files pass","falsifier":"limit < 25MB"},"sensor":"proxy.config","output":"client_max_body_size 1m;"}`,
		`{"claim":"large files pass","sensor":"proxy.config","output":"client_max_body_size 1m;"}`,
		`{"claim":"x","sensor":"no.such","output":""}`,
		`{"claim":"x","sensor":"proxy.config"}`,
		`{"sensor":"proxy.config","output":""}`,
		`{"claim":"x","lemma":[],"sensor":"proxy.config","output":""}`,
		`[]`,
	}, "\n") + "\n"
	code, out, errs := offline(t, strings.NewReader(in), "sensors", "judge", "--registry", "testdata/sensors.yaml", "--jsonl")
	want := []string{
		`{"verdict":"contradicted","reason":"","rule":"judge[1]","key":"limit","measured":"1m"}`,
		`{"verdict":"confirmed","reason":"","rule":"judge[1]","key":"limit","measured":"32m"}`,
		`{"verdict":"inconclusive","reason":"missing_value","rule":"judge[1]","key":"limit","measured":""}`,
		`{"verdict":"inconclusive","reason":"could_not_run:exit","rule":"","key":"","measured":""}`,
		`{"verdict":"contradicted","reason":"","rule":"falsifying_observation","key":"limit","measured":"1m"}`,
		`{"verdict":"contradicted","reason":"","rule":"falsifier","key":"limit","measured":"1m"}`,
		`{"verdict":"unjudged","reason":"no_rule","rule":"","key":"","measured":""}`,
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 12 {
		t.Fatalf("%d answers: %s", len(lines), out)
	}
	if diff := cmp.Diff(want, lines[:7]); diff != "" {
		t.Error(diff)
	}
	for i, l := range lines[7:] {
		var v badLine
		if err := json.Unmarshal([]byte(l), &v); err != nil || v.Error == "" || v.Line != 8+i {
			t.Errorf("answer %d is %s", 8+i, l)
		}
	}
	if code != exitFound || !strings.Contains(errs, "5 of the lines") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func TestJudgeOne(t *testing.T) {
	args := []string{"sensors", "judge", "--registry", "testdata/sensors.yaml", "--sensor", "proxy.config", "--claim", "nginx accepts uploads of 25 MB"}
	code, out, errs := offline(t, strings.NewReader("client_max_body_size 1m;\n"), args...)
	if code != exitFound || out != "contradicted\n  measured limit \"1m\" by judge[1]\n" {
		t.Errorf("exit %d: %q %s", code, out, errs)
	}
	if code, _, errs := offline(t, strings.NewReader(""), "sensors", "judge", "--registry", "testdata/broken.yaml", "--jsonl"); code != exitUsage || !strings.Contains(errs, "broken.yaml") {
		t.Errorf("exit %d: %s", code, errs)
	}
	for _, bad := range [][]string{{}, {"--registry", "testdata/sensors.yaml"}, {"--registry", "no/such.yaml", "--jsonl"}, append(args[2:], "--jsonl")} {
		if code, _, errs := offline(t, strings.NewReader(""), append([]string{"sensors", "judge"}, bad...)...); code != exitUsage {
			t.Errorf("%v: exit %d: %s", bad, code, errs)
		}
	}
}

// A new sensor is written from a command's output, is good by lint, and can be
// put into a registry that has others.
func TestSensorsNew(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "sensors.yaml")
	code, out, errs := offline(t, strings.NewReader(""), "sensors", "new", "greeting", "--to", file, "--", "echo", "limit = 20m")
	if code != exitOK || !strings.Contains(out, "gettier sensors lint") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	if code, out, errs := offline(t, strings.NewReader("a: on\nb: 7\n"), "sensors", "new", "other.one", "--output", "-", "--to", file, "--", "no-such-program", "--x", `a"b`); code != exitOK {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	reg, faults := spec.Parse(file, "user", data)
	if len(faults) > 0 || len(reg.Sensors) != 2 || !strings.HasPrefix(string(data), spec.Modeline) {
		t.Fatalf("%v\n%s", faults, data)
	}
	var got []string
	for _, s := range reg.Sensors {
		for _, e := range s.Extract {
			got = append(got, s.ID+" "+e.Name+" "+string(e.Type))
		}
	}
	if diff := cmp.Diff([]string{"greeting limit bytes", "other.one a bool", "other.one b number"}, got); diff != "" {
		t.Error(diff)
	}
	if code, out, errs := offline(t, strings.NewReader(""), "sensors", "lint", file); code != exitOK {
		t.Errorf("lint: exit %d: %s%s", code, out, errs)
	}
	for _, c := range []struct {
		args string
		code int
	}{
		{"greeting --to " + file + " -- echo x", exitFound}, // the id is taken
		{"9.. -- echo x", exitUsage},
		{"x -- sudo id", exitUsage},
		{"x -- no-such-program", exitFound},
		{"x", exitUsage},
	} {
		before, _ := os.ReadFile(file)
		code, out, errs := offline(t, strings.NewReader(""), append([]string{"sensors", "new"}, strings.Fields(c.args)...)...)
		if code != c.code {
			t.Errorf("%s: exit %d: %s%s", c.args, code, out, errs)
		}
		if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
			t.Errorf("%s changed the file", c.args)
		}
	}
}

func TestSensorsSchema(t *testing.T) {
	code, out, _ := offline(t, strings.NewReader(""), "sensors", "schema")
	if code != exitOK || out != spec.Schema() || !json.Valid([]byte(out)) {
		t.Errorf("exit %d: %.80s", code, out)
	}
}
