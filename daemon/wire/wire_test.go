package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

func skim(r *Reader) error { _, err := r.Value(); return err }

func TestFaultsHaveAPlace(t *testing.T) {
	for _, c := range []struct {
		body, what string
		line, col  int
	}{
		{"", "", 1, 1},
		{"{\n \"a\": tru}", "not JSON", 2, 10},
		{"{\"a\":1,\n\"a\":2}", `duplicate key at "/a"`, 2, 1},
		{`[{"b":{"c":1,"\u0063":2}}]`, `duplicate key at "/0/b/c"`, 1, 14},
		{"[\"\xc3\x28\"]", "invalid UTF-8", 1, 3},
		{`[1] [2]`, "data after the end", 1, 4},
		{`[1,]`, "not JSON", 1, 4},
		{"\xef\xbb\xbf{}", "not JSON", 1, 1},
	} {
		err := Whole([]byte(c.body), skim)
		var m *Malformed
		if !errors.As(err, &m) || !strings.Contains(m.What, c.what) || m.Line != c.line || m.Column != c.col {
			t.Errorf("%q: %v, want %q at %d:%d", c.body, err, c.what, c.line, c.col)
		}
	}
	if err := Whole([]byte(`{"a":"\ud800"}`), skim); err != nil {
		t.Errorf("a lone surrogate, as JavaScript clients send: %v", err)
	}
	if got := string(Unquote([]byte(`"\ud800\u0041\n"`))); got != "\uFFFDA\n" {
		t.Errorf("%q", got)
	}
}

// What passes is JSON for other readers too, and what is JSON without duplicate
// names passes.
func FuzzWhole(f *testing.F) {
	f.Add([]byte(`{"a":[1,-0.5e3,true,null,{"b":"\u00e9"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		err := Whole(b, skim)
		valid := json.Valid(b)
		if err == nil && !valid {
			t.Fatal("passed what is no JSON")
		}
		var m *Malformed
		if err != nil && valid && !(errors.As(err, &m) && (strings.Contains(m.What, "duplicate key") || strings.Contains(m.What, "invalid UTF-8"))) {
			t.Fatalf("refused JSON: %v", err)
		}
	})
}

func TestNumbers(t *testing.T) {
	for raw, want := range map[string]int64{"0": 0, "null": 0, "12": 12, "-3": -3, "1e3": 1000, "2.9": 2, "9999999999999999999": 1<<63 - 1} {
		if n, err := Int([]byte(raw)); err != nil || n != want {
			t.Errorf("%s = %d, %v", raw, n, err)
		}
	}
	if _, err := Int([]byte(`"1"`)); err == nil {
		t.Error("a string is a number")
	}
}

// spaced writes an object with the white space of another hand.
func spaced(rt *rapid.T, names []string) []byte {
	ws := rapid.SampledFrom([]string{"", " ", "\n", "\t "})
	b := []byte("{" + ws.Draw(rt, "ws"))
	for i, n := range names {
		if i > 0 {
			b = append(b, ws.Draw(rt, "ws")+","+ws.Draw(rt, "ws")...)
		}
		b = append(AppendQuote(b, n), ws.Draw(rt, "ws")+":"+ws.Draw(rt, "ws")...)
		b = append(b, rapid.SampledFrom([]string{`1`, `"x"`, `[1, 2]`, `{"q":null}`}).Draw(rt, "v")...)
	}
	return append(b, ws.Draw(rt, "ws")+"}"...)
}

func TestObjectEdits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e\"", "f"})
		names := rapid.SliceOfNDistinct(name, 0, 5, rapid.ID[string]).Draw(rt, "names")
		raw := spaced(rt, names)
		want := map[string]any{}
		if err := json.Unmarshal(raw, &want); err != nil {
			rt.Fatal(err)
		}
		o := ObjectIn(raw)
		for _, n := range rapid.SliceOfDistinct(name, rapid.ID[string]).Draw(rt, "drop") {
			o.Drop(n)
			delete(want, n)
		}
		for i, n := range rapid.SliceOfDistinct(name, rapid.ID[string]).Draw(rt, "set") {
			o.Set(n, fmt.Appendf(nil, "%d", i))
			want[n] = float64(i)
		}
		got := o.Edited(raw)
		var have map[string]any
		if err := Whole(got, skim); err != nil {
			rt.Fatalf("%v\n%s → %s", err, raw, got)
		}
		if err := json.Unmarshal(got, &have); err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			rt.Fatalf("%s → %s\n%s", raw, got, diff)
		}
		if (o.Len() == 0) != (len(want) == 0) {
			rt.Fatalf("Len is %d for %s", o.Len(), got)
		}
	})
}

func TestCut(t *testing.T) {
	const list = `[ 1 , 2,3 ,4 ]`
	spans := ElementsOf([]byte(list), Span{0, len(list)})
	for drop, want := range map[string]string{"": list, "1": "[ 2,3 ,4 ]", "4": "[ 1 , 2,3 ]", "23": "[ 1 ,4 ]", "12": "[ 3 ,4 ]", "34": "[ 1 , 2 ]", "1234": "[  ]", "13": "[ 2 ,4 ]"} {
		got := Apply([]byte(list), Cut(spans, func(i int) bool { return strings.Contains(drop, fmt.Sprint(i+1)) }))
		if string(got) != want {
			t.Errorf("without %q: %q, want %q", drop, got, want)
		}
	}
}

func TestIsBlock(t *testing.T) {
	block := BlockOpen + ` id="v1">` + "\nx\n" + BlockClose
	for text, want := range map[string]bool{
		block: true, "\n " + block + "\n": true, BlockOpen + ">" + BlockClose: true,
		"": false, BlockOpen: false, BlockOpen + BlockClose: false, BlockOpen + "-2>" + BlockClose: false,
		"a " + block: false, block + " a": false, block + block: false, block + " and " + block: false,
		BlockOpen + " id=\"a\">" + BlockOpen + ">x" + BlockClose: false,
	} {
		if IsBlock(text) != want {
			t.Errorf("IsBlock(%q) is %v", text, !want)
		}
	}
}

func FuzzSplitter(f *testing.F) {
	f.Add([]byte("event: a\r\ndata: x\r\ndata: y\r\n\r\n: c\n\n\ndata\n\n"), 3)
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		step = max(1, step%max(1, len(b)))
		var one, two Splitter
		a, aerr := one.Feed(b)
		var c []Event
		var cerr error
		for rest := b; len(rest) > 0 && cerr == nil; {
			n := min(step, len(rest))
			var e []Event
			e, cerr = two.Feed(rest[:n])
			c = append(c, e...)
			rest = rest[n:]
		}
		if diff := cmp.Diff(a, c); diff != "" || fmt.Sprint(aerr) != fmt.Sprint(cerr) {
			t.Fatalf("%v %v %s", aerr, cerr, diff)
		}
		var raw []byte
		for _, e := range a {
			raw = append(raw, e.Raw...)
		}
		if !bytes.HasPrefix(b, raw) {
			t.Fatal("events are not the bytes that came")
		}
		if aerr == nil && len(raw) == len(b) == one.Rest() {
			t.Fatal("Rest does not say whether bytes wait")
		}
	})
}

func TestEventFields(t *testing.T) {
	var s Splitter
	events, err := s.Feed([]byte(": hi\n\nevent:a\nid: 7\ndata:  x\ndata: y\n\ndata\n\ndata: late"))
	if err != nil || len(events) != 3 || !s.Rest() {
		t.Fatal(events, err)
	}
	want := []Event{{Raw: []byte(": hi\n\n")}, {Raw: []byte("event:a\nid: 7\ndata:  x\ndata: y\n\n"), Name: "a", Data: []byte(" x\ny"), HasData: true}, {Raw: []byte("data\n\n"), Data: []byte{}, HasData: true}}
	for i := range want {
		if want[i].Data == nil {
			events[i].Data = nil
		}
		if diff := cmp.Diff(want[i].Raw, events[i].Raw); diff != "" || want[i].Name != events[i].Name || !bytes.Equal(want[i].Data, events[i].Data) || want[i].HasData != events[i].HasData {
			t.Errorf("event %d: %+v %s", i, events[i], diff)
		}
	}
	if got := string(AppendEvent(nil, "n", []byte("{\n}"))); got != "event: n\ndata: { }\n\n" {
		t.Errorf("%q", got)
	}
}

func TestDeclarationInText(t *testing.T) {
	const d = `{"plan_summary":"p {x}","lemmas":[{"claim":"}"}]}`
	for text, want := range map[string]int{
		d: 1, "  \n" + d + "\n": 1, "Here you are:\n```json\n" + d + "\n```\nDone {ok}.": 1, "{ broken " + d: 1,
		"<think>" + d + "</think>\n" + d: 1, d + "\n" + d: 2, `{"plan_summary":"p"}`: 0, `[` + d + `]`: 1,
		d[:len(d)-1]: 0, `{"lemmas":[],"lemmas":[]}`: 0, strings.Repeat("{", 10000): 0, "": 0, "{\"lemmas\":\"\xff\"}": 0,
	} {
		if got := declarationsIn(text); len(got) != want || want == 1 && string(got[0]) != d {
			t.Errorf("%.80q: %s", text, got)
		}
	}
}

func TestDeclarationErrorsAreShownSafely(t *testing.T) {
	a := &Answer{Text: "no \x1b[2J\u202e" + strings.Repeat("é", 200), Stop: "length"}
	_, err := a.Declaration(3)
	if !errors.Is(err, ErrNotCompliant) || strings.ContainsAny(err.Error(), "\x1b\u202e\n") || len(err.Error()) > 300 || !strings.Contains(err.Error(), "length") {
		t.Errorf("%q", err)
	}
	a = &Answer{Calls: []Call{{Name: DeclareTool, Args: []byte(`{"plan`), Broken: true}}, Stop: "max_tokens"}
	if _, err := a.Declaration(1); !errors.Is(err, ErrNotCompliant) {
		t.Error(err)
	}
}

func TestDeclareSchema(t *testing.T) {
	for _, closed := range []bool{false, true} {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(DeclareSchema(closed)))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("declare.json", doc); err != nil {
			t.Fatal(err)
		}
		schema, err := c.Compile("declare.json")
		if err != nil {
			t.Fatal(err)
		}
		lemma := func(more string) string {
			return `{"plan_summary":"p","lemmas":[{"claim":"c","provenance":"told","load_bearing":true` + more + `}]}`
		}
		for body, ok := range map[string]bool{
			lemma(``): true,
			lemma(`,"falsifier":"f","suggested_sensor":"s","symbols":["a.b"],"falsifying_observation":{"sensor":"s","key":"k","operator":"<=","value":1.5}`): true,
			lemma(`,"falsifying_observation":{"sensor":"s","key":"k","operator":"<=","value":[]}`):                                                           false,
			lemma(`,"falsifying_observation":{"sensor":"s","key":"k","operator":"~","value":1}`):                                                             false,
			lemma(`,"symbols":["1","2","3","4","5","6","7","8","9"]`):                                                                                        closed,
			lemma(`,"other":1`):                !closed,
			`{"plan_summary":"p","lemmas":[]}`: true,
			`{"plan_summary":"` + strings.Repeat("a", 501) + `","lemmas":[]}`: closed,
			`{"lemmas":[]}`: false,
			`{"plan_summary":"p","lemmas":[{"claim":"c","provenance":"guess","load_bearing":true}]}`: false,
		} {
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(v); (err == nil) != ok {
				t.Errorf("closed=%v %.200s: %v", closed, body, err)
			}
		}
	}
	if bytes.Contains(DeclareSchema(true), []byte("max")) {
		t.Error("constrained decoding refuses size limits")
	}
}

func TestCallArguments(t *testing.T) {
	for args, want := range map[string]struct{ broken, bad bool }{
		`{"a":1}`: {}, ` {"a":{}} `: {}, `{"a":1`: {broken: true}, `{} {}`: {broken: true}, `[1]`: {broken: true}, ``: {broken: true}, `null`: {broken: true},
		`{"a":1,"a":2}`: {bad: true}, `{"x":{"a":1,"\u0061":2}}`: {bad: true},
	} {
		c := Call{Name: "n", Args: []byte(args)}
		if err := c.Complete(); errors.Is(err, ErrUnreadable) != want.bad || c.Broken != want.broken {
			t.Errorf("%s: broken=%v, %v", args, c.Broken, err)
		}
	}
}
