package verdict

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/spec"
)

func TestCompare(t *testing.T) {
	data, err := os.ReadFile("testdata/compare.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, l := range strings.Split(string(data), "\n") {
		if l == "" || l[0] == '#' {
			continue
		}
		c := strings.Split(l, "|")
		if len(c) != 5 {
			t.Fatalf("line %d: %d columns", i+1, len(c))
		}
		for j := range c {
			c[j] = strings.TrimSpace(c[j])
		}
		n++
		holds, ok := Compare(spec.Type(c[0]), c[1], lemma.Operator(c[2]), c[3])
		got := map[bool]string{true: "true", false: "false"}[holds]
		if !ok {
			got = "-"
			if holds {
				t.Errorf("line %d: it holds though nothing is settled", i+1)
			}
		}
		if got != c[4] {
			t.Errorf("line %d: %s: got %s", i+1, l, got)
		}
		// != is the exact negation of =.
		if c[2] == "=" {
			if not, ok2 := Compare(spec.Type(c[0]), c[1], lemma.Ne, c[3]); ok2 != ok || ok && not == holds {
				t.Errorf("line %d: != is not the negation of =", i+1)
			}
		}
	}
	if n < 100 {
		t.Fatalf("only %d rows", n)
	}
}

func sensor(id string, verifies ...string) *spec.Sensor {
	return &spec.Sensor{ID: id, Level: "user", Verifies: verifies, Effects: spec.None}
}

// I-98: a negated claim and a decisive sentence must be a catch.
func TestI98NegatedClaimWithDecisiveFalsifier(t *testing.T) {
	s := sensor("db.role", "db.role")
	s.Extract = []spec.Extract{{Name: "is_superuser", Bare: true, Type: spec.String}}
	s.Judge = []spec.Rule{{When: `(?i)role is restricted`, Key: "is_superuser", Operator: lemma.Eq, Value: "false"}}
	l := &lemma.Lemma{Claim: "The connected role does NOT have superuser privileges", Provenance: lemma.Believed, LoadBearing: true,
		Falsifier: "db.role sensor returns is_superuser = true"}
	got, _ := Match(*l, Sensors{InForce: []*spec.Sensor{s}})
	if len(got) != 1 || got[0].ID != "db.role" {
		t.Fatalf("matched %v", got)
	}
	for _, printed := range []string{"is_superuser = true", "is_superuser: t", "is_superuser on"} {
		ev := spec.Evidence{Values: extract.Extract(s, []byte(printed+"\n"), 0)}
		if r := Judge(Claim{Lemma: l}, s, ev); r.Verdict != lemma.Contradicted || r.Rule != RuleFalsifier {
			t.Errorf("%s: %+v", printed, r)
		}
	}
	ev := spec.Evidence{Values: extract.Extract(s, []byte("is_superuser = false\n"), 0)}
	if r := Judge(Claim{Lemma: l}, s, ev); r.Verdict != lemma.Unjudged {
		t.Errorf("an unmet falsifier says %+v", r)
	}
}

// I-126: a sensor that could not run is inconclusive with its reason, never
// unjudged, and a gap in the rules of another sensor does not hide it.
func TestI126CouldNotRunIsNotUnjudged(t *testing.T) {
	failed := CouldNotRun("db.role", "i_7", "exit")
	if failed.Verdict != lemma.Inconclusive || failed.Reason != "could_not_run:exit" || failed.Sensor != "db.role" {
		t.Fatalf("%+v", failed)
	}
	r := Combine(Result{Verdict: lemma.Unjudged, Reason: NoRule}, failed)
	if diff := cmp.Diff(failed, r); diff != "" {
		t.Error(diff)
	}
	// The 43 bytes of that error, read as output, hold no value either.
	s := sensor("db.role")
	s.Extract = []spec.Extract{{Name: "is_superuser", Bare: true, Type: spec.String}}
	for _, v := range extract.Extract(s, []byte("no configuration file provided: not found\n"), 1) {
		if v.Problem != extract.Missing {
			t.Errorf("an error message yields %+v", v)
		}
	}
}

// everyCategory is a registry with a sensor for each category that the table
// knows: more than anyone has.
func everyCategory() []*spec.Sensor {
	var all []*spec.Sensor
	for _, c := range KnownCategories() {
		all = append(all, sensor("s."+c, c))
	}
	return all
}

// I-147: ordinary claims about a language or a library match no sensor.
func TestI147OrdinaryClaimsMatchNothing(t *testing.T) {
	in := Sensors{InForce: everyCategory()}
	for _, claim := range []string{
		"fs.promises.readFile is available in Node.js",
		"fs.promises.readFile is available in Node.js 18",
		"fs.promises.readFile is available since Node version 10",
		"Express middleware receives (req, res, next)",
		"Array.prototype.map returns a new array",
		"JSON.parse throws a SyntaxError on invalid input",
		"Python dictionaries preserve insertion order",
		"async functions return a promise",
		"The reduce callback takes an accumulator",
		"CSS grid is supported by modern browsers",
		"React effects run after render",
		"A Go map is unordered",
		"strings.Builder avoids copying",
		"TypeScript narrows unions by discriminant",
		"HTTP is stateless",
		"JavaScript numbers are doubles",
		"useState returns a pair",
		"A class can implement two interfaces",
		"The function is pure",
		"slices.Sort sorts in place",
		"pathlib.Path.read_text returns a string",
		"Promise.all rejects on the first rejection",
		"The component takes a title prop",
		"The helper formats a price",
		"ECMAScript 2023 has Array.prototype.toSorted",
		"A generator is lazy",
		"Rust moves values by default",
	} {
		if got, _ := Match(lemma.Lemma{Claim: claim}, in); len(got) > 0 {
			t.Errorf("%q is matched to %v", claim, got)
		}
	}
}

type installed map[string]Presence

func (m installed) Presence(path string) (Presence, string) { return m[path], "node_modules/yaml" }

// I-148: the claim names no dotted path, its symbols do.
func TestI148FabricatedSymbolIsCaught(t *testing.T) {
	l := &lemma.Lemma{Claim: "The project can use a 'stringifyAll' helper from a yaml package", Provenance: lemma.Believed, LoadBearing: true,
		Symbols: []string{"yaml.parse", "yaml.stringifyAll"}}
	known := installed{"yaml.parse": Exists, "yaml.stringifyAll": Absent}
	r, ok := JudgeSymbols(Claim{Lemma: l, Symbols: known})
	if !ok || r.Verdict != lemma.Contradicted || r.Rule != RuleSymbols || r.Key != "yaml.stringifyAll" || r.Place == "" {
		t.Fatalf("%v %+v", ok, r)
	}
	if r := Judge(Claim{Lemma: l, Symbols: known}, sensor("node.packages"), spec.Evidence{}); r.Verdict != lemma.Contradicted {
		t.Errorf("with a sensor: %+v", r)
	}
	// Three-valued: existing proves nothing, unknown proves nothing.
	for _, m := range []installed{{"yaml.stringifyAll": Exists}, {}} {
		if r, ok := JudgeSymbols(Claim{Lemma: l, Symbols: m}); ok {
			t.Errorf("%v settles %+v", m, r)
		}
	}
	for _, claim := range []string{
		"The installed yaml package has no stringifyAll helper",
		"yaml.stringifyAll should exist after the upgrade",
		"yaml has parse and stringifyAll",
	} {
		l := *l
		l.Claim = claim
		if r, ok := JudgeSymbols(Claim{Lemma: &l, Symbols: known}); ok {
			t.Errorf("%q settles %+v", claim, r)
		}
	}
	if _, ok := JudgeSymbols(Claim{Lemma: l}); ok {
		t.Error("without a resolver something settles")
	}
}
