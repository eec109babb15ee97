package verdict

import (
	"fmt"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/spec"
)

// saying is a way to say something of a system whose reading is known. Its core
// says it of the value n, truth tells whether that is so at reading m.
type saying struct {
	core  string // with %d
	key   string
	truth func(n, m int) bool
}

// A claimed megabyte may be the smaller one, a measured one is not. The sizes
// used here are far enough apart for both readings to agree.
func atLeast(n, m int) bool { return n*1000*1000 <= m*1024*1024 }

func same(n, m int) bool { return n == m }

var sayings = []saying{
	{"nginx accepts uploads of %d MB", "limit", atLeast},
	{"nginx accepts uploads of up to %d MB", "limit", atLeast},
	{"the edge proxy accepts bodies of at least %d MB", "limit", atLeast},
	{"the server listens on port %d", "port", same},
	{"the server runs on port %d", "port", same},
	{"there are %d replicas", "count", same},
	{"exactly %d replicas serve it", "count", same},
}

// catchSensor reads all of the sayings, and their denials where it can.
func catchSensor() *spec.Sensor {
	return &spec.Sensor{ID: "s", Level: "user",
		Extract: []spec.Extract{
			{Name: "limit", Bare: true, Type: spec.Bytes, TypeSet: true},
			{Name: "port", Bare: true, Type: spec.Number, TypeSet: true},
			{Name: "count", Bare: true, Type: spec.Number, TypeSet: true},
		},
		Judge: []spec.Rule{
			{When: `(?i)\b(nginx|proxy)\b.*\baccepts?\b.*?\b(?P<n>\d+\s*[kmg]b?)\b`, Key: "limit", Operator: lemma.Ge, Value: "{{n}}"},
			{When: `(?i)\b(nginx|proxy)\b.*\baccepts?\b.*?\b(?P<n>\d+\s*[kmg]b?)\b`, Key: "limit", Operator: lemma.Lt, Value: "{{n}}", Negated: true},
			{When: `(?i)\bserver\b.*\bport (?P<n>\w+)`, Key: "port", Operator: lemma.Eq, Value: "{{n}}"},
			{When: `(?i)\b(?P<n>\w+) replicas\b`, Key: "count", Operator: lemma.Eq, Value: "{{n}}"},
		},
	}
}

// What may stand round a statement. Plain ones leave it the statement that it
// is; turned ones deny it; open ones make it something that no reading settles:
// a wish, a guess, a condition, another time, another place, part of more.
var (
	plainRound  = []string{"%s", "%s.", "Currently, %s", "%s here", "%s!", "  %s  ", "On this machine, %s", "%s today"}
	turnedRound = []string{"it is not true that %s", "it is wrong that %s", "it is false that %s", "nothing says that %s, never", "no, %s", "it isn't so that %s"}
	openRound   = []string{
		"%s after the deploy", "%s once it is restarted", "if all is well %s", "%s unless overridden", "probably %s", "%s?", "does it hold that %s?",
		"the docs say %s", "%s in staging", "%s by default", "%s, and the app too", "%s but not for long", "%s until Friday", "it should be that %s", "maybe %s",
		"%s or so", "according to the ticket %s", "last year %s, previously", "either %s or it fails", "%s (in theory)", "we assume %s", "%s; the rest follows",
		"when it rains, %s", "the plan is intended so that %s", "%s in ci", "%s whereas the other does not", "one could say %s", "it was said: %s", "%s\nand more", "%s\nthe rest follows", "%s\rthe rest follows", "%s\u2028the rest follows",
	}
	// Around a number: what makes it another number, or no plain one.
	otherNumbers = []string{"-%d", "%d.5", "%d-", "~%d", "about %d", "roughly %d", "%d,000", "1,%d", "%d/2", "%d%%", "0.%d", "almost %d", "less than %d", "fewer than %d", "%d to 99"}
)

// judged is the verdict on text when every key reads m.
func judged(text string, m int) Result {
	s := catchSensor()
	ev := spec.Evidence{Values: []spec.Value{
		extract.Typed(&s.Extract[0], fmt.Sprintf("%dm", m)),
		extract.Typed(&s.Extract[1], fmt.Sprint(m)),
		extract.Typed(&s.Extract[2], fmt.Sprint(m)),
	}}
	return Judge(Claim{Text: text}, s, ev)
}

// checkCatch holds one decorated statement against what is known to be true.
func checkCatch(t *testing.T, sy saying, round []string, i, n, m int, open, turned bool) {
	t.Helper()
	text := fmt.Sprintf(round[i], fmt.Sprintf(sy.core, n))
	truth := sy.truth(n, m) != turned
	r := judged(text, m)
	switch {
	case open && r.settled():
		t.Fatalf("%q at %d is open, and yet %s by %s", text, m, r.Verdict, r.Rule)
	case truth && r.Verdict == lemma.Contradicted:
		t.Fatalf("%q at %d is true, and yet %s by %s", text, m, r.Verdict, r.Rule)
	case !truth && r.Verdict == lemma.Confirmed:
		t.Fatalf("%q at %d is false, and yet %s by %s", text, m, r.Verdict, r.Rule)
	}
}

// No way of saying what is true is a catch, and nothing that is open settles.
func TestNoFabricatedCatch(t *testing.T) {
	settled := 0
	for _, sy := range sayings {
		for _, m := range []int{1, 2, 10, 25, 80} {
			for _, n := range []int{1, 2, 10, 25, 80, 90} {
				for i := range plainRound {
					checkCatch(t, sy, plainRound, i, n, m, false, false)
				}
				for i := range turnedRound {
					checkCatch(t, sy, turnedRound, i, n, m, false, true)
				}
				for i := range openRound {
					checkCatch(t, sy, openRound, i, n, m, true, false)
				}
				if judged(fmt.Sprintf(sy.core, n), m).settled() {
					settled++
				}
				for _, o := range otherNumbers {
					text := strings.Replace(sy.core, "%d", fmt.Sprintf(o, n), 1)
					if r := judged(text, n); r.Verdict == lemma.Contradicted && r.Claimed == fmt.Sprint(n) {
						t.Fatalf("%q is a catch at its own number: %+v", text, r)
					}
				}
			}
		}
	}
	if want := len(sayings) * 30; settled != want {
		t.Errorf("%d of %d plain statements settle", settled, want)
	}
}

// Whatever text is put round a true statement, it is no catch: at most it is
// not judged. Text that holds a number or a denial may change what is said, so
// it is left out.
func FuzzNoFabricatedCatch(f *testing.F) {
	f.Add("", "", uint8(0), uint8(10), uint8(20))
	f.Add("the team says that ", " for now", uint8(3), uint8(25), uint8(25))
	f.Add("on port ", " replicas", uint8(5), uint8(2), uint8(2))
	f.Fuzz(func(t *testing.T, before, after string, which, n, m uint8) {
		sy := sayings[int(which)%len(sayings)]
		if !sy.truth(int(n), int(m)) || len(before)+len(after) > 200 {
			return // says nothing here
		}
		rest := readSentence(before + " " + after)
		if rest.negated > 0 || aNumber.MatchString(strings.ToLower(plain(before+" "+after))) || strings.ContainsAny(before+after, "0123456789") {
			return // says nothing here
		}
		// Another unit, port or count named beside it is another statement.
		for _, w := range []string{"port", "replicas", "b", "k", "m", "g"} {
			for _, tok := range append(tokens(plain(before)), tokens(plain(after))...) {
				if strings.HasSuffix(tok, w) {
					return // says nothing here
				}
			}
		}
		text := before + " " + fmt.Sprintf(sy.core, n) + " " + after
		if r := judged(text, int(m)); r.Verdict == lemma.Contradicted {
			t.Fatalf("%q at %d is true, and yet a catch: %+v", text, m, r)
		}
	})
}
