package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// Secrets are made here, so that no scanner finds any in the repository.
func random(n int, from string) string {
	r := rand.New(rand.NewPCG(7, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = from[r.IntN(len(from))]
	}
	return string(b)
}

const (
	alnum = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	lower = "0123456789abcdef"
)

func password() string { return "T4" + "^zq!" + "Lm9xW" }

func jwt() string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + enc([]byte(`{"sub":"1234567890","name":"x"}`)) + "." + random(43, alnum)
}

func pem() string {
	body := ""
	for i := range 6 {
		body += random(64-i, alnum) + "\n"
	}
	return "-----BEGIN RSA PRIVATE " + "KEY-----\n" + body + "-----END RSA PRIVATE " + "KEY-----"
}

var slot = regexp.MustCompile(`\{\{(pw|tok|hex|b64|aws|jwt|pem)(?: ([^}]*))?\}\}`)

func expand(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, `\n`, "\n"), `\t`, "\t")
	return slot.ReplaceAllStringFunc(s, func(m string) string {
		g := slot.FindStringSubmatch(m)
		n, _ := strconv.Atoi(g[2])
		switch g[1] {
		case "tok":
			return random(n, alnum)
		case "hex":
			return random(n, lower)
		case "aws":
			return random(n, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
		case "b64":
			return base64.StdEncoding.EncodeToString([]byte(g[2]))
		case "jwt":
			return jwt()
		case "pem":
			return pem()
		}
		return password()
	})
}

func ownCases(t testing.TB) (in, want []string) {
	data, err := os.ReadFile("testdata/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "=> "):
			out := strings.ReplaceAll(line[3:], "[r:", markOpen)
			if line == "=> same" {
				out = in[len(in)-1]
			} else {
				out = strings.ReplaceAll(out, `\n`, "\n")
			}
			want = append(want, out)
		default:
			in = append(in, expand(line))
		}
	}
	if len(in) != len(want) || len(in) < 80 {
		t.Fatalf("%d cases, %d answers", len(in), len(want))
	}
	return in, want
}

func TestCases(t *testing.T) {
	e := New()
	in, want := ownCases(t)
	for i := range in {
		got, hits := e.String(in[i])
		if got != want[i] {
			t.Errorf("\n   in %q\n  got %q\n want %q", in[i], got, want[i])
		}
		checkHits(t, []byte(in[i]), []byte(got), hits)
	}
}

// In the middle of other text each case comes out the same.
func TestCasesInContext(t *testing.T) {
	e := New()
	in, want := ownCases(t)
	before, after := "2026-01-02 log line one\n", "\nthe end, with nothing in it\n"
	for i := range in {
		if got, _ := e.String(before + in[i] + after); got != before+want[i]+after {
			t.Errorf("\n   in %q\n  got %q", in[i], got)
		}
	}
}

// Hits describe exactly what was replaced, and a second time nothing is.
func checkHits(t *testing.T, in, out []byte, hits []Hit) {
	t.Helper()
	var all []found
	for _, h := range hits {
		if h.Count != len(h.Spans) || !knownRule(h.Rule) {
			t.Errorf("hit %+v", h)
		}
		for _, s := range h.Spans {
			if s.Start < 0 || s.End > len(in) || s.Start >= s.End {
				t.Fatalf("span %+v of %d bytes", s, len(in))
			}
			all = append(all, found{s.Start, s.End, h.Rule})
		}
	}
	sortFound(all)
	if again, _ := replace(in, all); !bytes.Equal(again, out) {
		t.Errorf("spans give %q, not %q", again, out)
	}
	if twice, more := New().Bytes(out); !bytes.Equal(twice, out) || len(more) > 0 {
		t.Errorf("twice: %q → %q", out, twice)
	}
}

func TestEveryRuleCompiles(t *testing.T) {
	for i, f := range compiled() {
		re, _ := f()
		if r := tokenRules[i]; r.keyed && re.String()[:1] != "^" && re.String()[:5] != "(?i)^" {
			t.Errorf("%s is keyed and not anchored", r.id)
		}
		if !regexp.MustCompile(`^[a-z0-9.-]{1,64}$`).MatchString(tokenRules[i].id) {
			t.Errorf("%q is no rule id", tokenRules[i].id)
		}
	}
}

func TestLongSecretsAndWindows(t *testing.T) {
	e := New()
	pw := random(300, alnum)
	for _, text := range []string{
		strings.Repeat("x ", 5000) + "api_token=" + pw + strings.Repeat(" y", 5000),
		"Authorization: Bearer " + random(3000, alnum),
		jwt() + random(8000, alnum),
		"-----BEGIN PRIVATE " + "KEY-----\n" + random(4000, alnum),
	} {
		out, hits := e.String(text)
		if len(hits) == 0 || len(out) > len(text)-250 {
			t.Errorf("%.60q… left %d of %d bytes", text, len(out), len(text))
		}
	}
}

// Nothing in a text switches the engine off, and no forged marker shelters a
// secret.
func TestNoSwitch(t *testing.T) {
	e := New()
	pw := password()
	for _, text := range []string{
		"DB_PASSWORD=" + pw + " # gitleaks:allow",
		"[redacted:" + pw + "] DB_PASSWORD=" + pw,
		"DB_PASSWORD=[redacted:no-such-rule]" + pw,
	} {
		if out, _ := e.String(text); strings.Contains(strings.TrimPrefix(out, "[redacted:"+pw+"]"), pw) {
			t.Errorf("%q left %q", text, out)
		}
	}
}

func TestUnchangedIsSame(t *testing.T) {
	in := []byte("nothing to see here, " + random(40, lower))
	out, hits := New().Bytes(in)
	if hits != nil || &out[0] != &in[0] {
		t.Error("harmless bytes were copied")
	}
}

func TestJSON(t *testing.T) {
	e := New()
	pw := password()
	q := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	for _, c := range []struct{ in, want string }{
		{`{"password":` + q(pw) + `}`, `{"password":"[redacted:password]"}`},
		{`{"a":{"db_password" : ` + q(pw) + ` ,"n":1}}`, `{"a":{"db_password" : "[redacted:password]" ,"n":1}}`},
		{`{"pin":1234,"password":123456}`, `{"pin":1234,"password":"[redacted:password]"}`},
		{`{"t":` + q("line\nDB_PASSWORD="+pw+"\nnext") + `}`, `{"t":` + q("line\nDB_PASSWORD=[redacted:password]\nnext") + `}`},
		{`{"passwords":["x"],"tokens":12,"token_type":"bearer"}`, `{"passwords":["x"],"tokens":12,"token_type":"bearer"}`},
		{`{"headers":{"Authorization":` + q("Bearer "+random(40, alnum)) + `}}`, `{"headers":{"Authorization":"Bearer [redacted:authorization]"}}`},
		{`{"arguments":` + q(`{"api_key":`+q(random(32, alnum))+`,"x":"é"}`) + `}`, `{"arguments":` + q(`{"api_key":"[redacted:secret]","x":"é"}`) + `}`},
		{`["postgres://u:` + pw + `@h/d","x"]`, `["postgres://u:[redacted:url-userinfo]@h/d","x"]`},
		{`{"hash":"` + random(64, lower) + `","prev":"` + random(64, lower) + `"}`, ""},
		{`{"claim":"the token bucket refills","key":"` + random(64, lower) + `"}`, ""},
	} {
		want := c.want
		if want == "" {
			want = c.in
		}
		got, hits := e.JSON([]byte(c.in))
		if string(got) != want {
			t.Errorf("\n   in %s\n  got %s\n want %s", c.in, got, want)
		}
		if !json.Valid(got) {
			t.Errorf("no JSON: %s", got)
		}
		if (len(hits) == 0) != (want == c.in) {
			t.Errorf("hits %v for %s", hits, c.in)
		}
	}
	if out, hits := e.JSON([]byte("DB_PASSWORD=" + pw)); len(hits) != 1 || bytes.Contains(out, []byte(pw)) {
		t.Errorf("what is no JSON: %s", out)
	}
}

func TestMerge(t *testing.T) {
	got := Merge([]Hit{{Rule: "b", Count: 1}, {Rule: "a", Count: 2}}, []Hit{{Rule: "b", Count: 3, Spans: []Span{{1, 2}}}})
	want := []Hit{{Rule: "a", Count: 2}, {Rule: "b", Count: 4}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	e := New()
	text := mixedText(32 << 10)
	want, _ := e.Bytes(text)
	done := make(chan bool)
	for range 4 {
		go func() {
			got, _ := e.Bytes(slices.Clone(text))
			done <- bytes.Equal(got, want)
		}()
	}
	for range 4 {
		if !<-done {
			t.Error("another result in parallel")
		}
	}
}

// TestSecondLook: in long texts the second pass looks only near what the first one
// replaced, and comes to the same end as passes over all of it.
func TestSecondLook(t *testing.T) {
	in, _ := ownCases(t)
	e := New()
	r := rand.New(rand.NewPCG(5, 6))
	quick := 0
	for range 150 {
		var b bytes.Buffer
		for b.Len() < 16<<10 {
			if r.IntN(12) == 0 {
				b.WriteString(in[r.IntN(len(in))] + "\n")
			}
			b.Write(mixedText(256 + r.IntN(1024)))
		}
		text := b.Bytes()
		m := &memory{}
		var all []found
		want := text
		var segs []segment
		for pass := range maxPasses { // as settled does, and never taken short
			if pass == 1 && e.quietNear(want, segs) {
				quick++
			}
			spans := e.find(want, m)
			if len(spans) == 0 {
				break
			}
			for _, f := range spans {
				all = append(all, found{back(segs, f.start), back(segs, f.end), f.rule})
			}
			sortFound(all)
			want, segs = replace(text, all)
		}
		got, hits := e.Bytes(text)
		if !bytes.Equal(got, want) {
			t.Fatalf("%q\nbecame %q\nnot    %q", text, got, want)
		}
		checkHits(t, text, got, hits)
	}
	if quick < 50 {
		t.Errorf("only %d of 150 second passes were short", quick)
	}
}

func FuzzBytes(f *testing.F) {
	in, _ := ownCases(f)
	for _, s := range in {
		f.Add([]byte(s))
	}
	e := New()
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 64<<10 {
			return // says nothing here
		}
		before := bytes.Clone(in)
		out, hits := e.Bytes(in)
		if !bytes.Equal(in, before) {
			t.Fatal("the input was changed")
		}
		if utf8.Valid(in) && !utf8.Valid(out) {
			t.Fatalf("%q became invalid: %q", in, out)
		}
		checkHits(t, in, out, hits)
	})
}

func FuzzJSON(f *testing.F) {
	in, _ := ownCases(f)
	for _, s := range in {
		b, _ := json.Marshal(map[string]any{"text": s, "password": s})
		f.Add(b)
	}
	f.Add([]byte("{\"\":\"0://0000102789ABCYZX@0://00001112789\xa4AB@\"}")) // no UTF-8
	e := New()
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 64<<10 || !json.Valid(in) {
			return // says nothing here
		}
		out, hits := e.JSON(in)
		if !json.Valid(out) {
			t.Fatalf("%s became %s", in, out)
		}
		if len(hits) == 0 && !bytes.Equal(in, out) {
			t.Fatal("changed without a hit")
		}
		if twice, _ := e.JSON(out); !bytes.Equal(twice, out) {
			t.Fatalf("twice: %s → %s", out, twice)
		}
	})
}
