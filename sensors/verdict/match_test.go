package verdict

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/spec"
)

// Claims of daily work, and the category that must be among those found.
func TestCategories(t *testing.T) {
	for claim, want := range map[string]string{
		"The edge proxy accepts request bodies of 25 MB":          "request_path.size_limits",
		"nginx allows uploads up to 25 MB":                        "request_path.size_limits",
		"Uploads of 25 MB pass the reverse proxy":                 "request_path.size_limits",
		"The app's body parser limit is what rejects large PDFs":  "request_path.size_limits",
		"The upload size limit is 25MB":                           "request_path.size_limits",
		"client_max_body_size is 25m":                             "proxy.configuration",
		"The reverse proxy forwards bodies unbuffered":            "proxy.configuration",
		"The 30 s default timeout applies to the export":          "proxy.timeouts",
		"Requests time out after 30 seconds":                      "proxy.timeouts",
		"Request headers reach the app unchanged":                 "proxy.headers",
		"Session keys live until their TTL":                       "redis.memory",
		"Redis persists queued jobs to disk":                      "redis.persistence",
		"Queued jobs survive a Redis restart":                     "redis.persistence",
		"The app connects with a restricted role":                 "db.role",
		"The connected role does NOT have superuser privileges":   "db.role",
		"Row-level security policies isolate tenants":             "db.rls",
		"RLS binds the application's role":                        "db.rls",
		"Foreign keys are enforced":                               "db.foreign_keys",
		"ON DELETE CASCADE removes the orders":                    "db.foreign_keys",
		"A single process serves the login route":                 "route.workers",
		"The login route is served by one process":                "route.workers",
		"Only one worker handles logins":                          "route.workers",
		"The app runs as a single process":                        "route.workers",
		"An in-memory Map is enough to count logins":              "route.workers",
		"All login requests hit the same process":                 "process.model",
		"The unqualified table name customers resolves to public": "db.search_path",
		"The search path puts public first":                       "db.session",
		"The deployed runtime is the same as in CI":               "runtime.version",
		"The server runs Node 20":                                 "runtime.version",
		"The Node version in production is 20":                    "node.version",
		"The audit trigger on invoices is enabled":                "db.triggers",
		"The server serves the renewed certificate":               "tls.certificate",
		"The running process uses the current release":            "process.freshness",
		"The database session runs in UTC":                        "time.zone",
		"The session time zone is UTC":                            "db.timezone",
		"The installed version exports stringifyAll":              "dependency.version",
		"All backends run the new release":                        "deploy.version",
		"The /v2 field is deployed everywhere":                    "deploy.version",
		"The target database is on this machine":                  "db.target",
		"DATABASE_URL points to the local database":               "db.target",
		"The production database is Postgres 14":                  "db.version",
		"The working tree is clean":                               "git.dirty",
		"The current branch is main":                              "git.branch",
		"Port 3000 is free":                                       "ports.owner",
		"The project uses pnpm":                                   "package.manager",
		"The virtualenv is active":                                "python.env",
		"GNU sed is installed":                                    "os.tools",
		"The environment variable REDIS_URL is set":               "env.names",
		"kubectl points at the staging cluster":                   "infra.context",
		"docker compose starts this project's services":           "compose.project",
		"A recent backup exists":                                  "backup.age",
		"The migrations are applied":                              "db.migrations",
		"The users table has an email column":                     "db.schema",
		"The config file fixtures/app.json exists":                "file.exists",
		"The npm test script ends by itself":                      "test.command",
	} {
		found := ""
		for _, h := range Categories(claim, nil) {
			found += h.Category + " "
			if h.Category == want {
				found = ""
				break
			}
		}
		if found != "" || len(Categories(claim, nil)) == 0 {
			t.Errorf("%q: want %s, found %s", claim, want, found)
		}
	}
}

func TestCategoriesExplainThemselves(t *testing.T) {
	// Whole words only, and every word of the phrase.
	for _, claim := range []string{"The uploader bodyguards 25 MBA students", "superusers2 exist", "nginxish accepts", "The trigger"} {
		for _, h := range Categories(claim, nil) {
			t.Errorf("%q: %s by %q", claim, h.Category, h.Phrase)
		}
	}
	got := Categories("The Upload-Ceiling is high", map[string][]string{"request_path.size_limits": {"upload ceiling"}, "own.thing": {"low"}})
	if diff := cmp.Diff([]Hit{{"request_path.size_limits", "upload ceiling"}}, got); diff != "" {
		t.Error(diff)
	}
	if !Known("own.thing", map[string][]string{"own.thing": {"x"}}) || Known("feature.flags", nil) {
		t.Error("Known is wrong")
	}
	s := sensor("x", "feature.flags", "db.role")
	if p := Unreachable(s, nil); len(p) != 1 || !strings.Contains(p[0].What, "feature.flags") {
		t.Errorf("%v", p)
	}
	for c, phrases := range keywords {
		for _, p := range phrases {
			if p != strings.ToLower(p) || strings.HasPrefix(p, "!") || p == "" {
				t.Errorf("%s: phrase %q cannot be found", c, p)
			}
		}
	}
}

func TestMatchOrder(t *testing.T) {
	a, b, c := sensor("a", "proxy.size_limits"), sensor("b", "proxy.size_limits"), sensor("c")
	d, e, f := sensor("d"), sensor("e", "request_path.size_limits"), sensor("f", "proxy.size_limits")
	in := Sensors{InForce: []*spec.Sensor{a, b, c, d, e, f}, Pending: map[string]string{"new": "not approved"},
		Waiting: []*spec.Sensor{sensor("later", "proxy.size_limits")}}
	l := lemma.Lemma{Claim: "nginx allows uploads up to 25 MB", SuggestedSensor: "d",
		FalsifyingObservation: &lemma.FalsifyingObservation{Sensor: "user/c", Key: "k", Operator: lemma.Eq, Value: "v"}}
	got, note := Match(l, in)
	var ids []string
	for _, m := range got {
		ids = append(ids, m.ID+" "+m.Why)
	}
	if len(ids) != 4 || ids[0] != "d suggested_sensor" || ids[1] != "c falsifying_observation" || !strings.HasPrefix(ids[2], "a proxy.size_limits:") || !strings.HasPrefix(ids[3], "b proxy") {
		t.Errorf("got %q", ids)
	}
	if note != "pending:later" {
		t.Errorf("note %q", note)
	}
	l.SuggestedSensor, l.FalsifyingObservation = "new", nil
	if _, note := Match(l, in); note != "pending:new, pending:later" {
		t.Errorf("note %q", note)
	}
	l.SuggestedSensor = "nobody\nhas this"
	if got, note := Match(l, in); note != "unknown_sensor:nobody has this, pending:later" || len(got) != 4 {
		t.Errorf("%v, note %q", got, note)
	}
	if got, note := Match(lemma.Lemma{Claim: "The sky is blue"}, in); len(got) != 0 || note != "" {
		t.Errorf("%v, note %q", got, note)
	}
}

func TestMatchNeedsParams(t *testing.T) {
	empty, def := "", "/etc/nginx/nginx.conf"
	for _, tc := range []struct {
		name  string
		param spec.Param
		ok    bool
	}{
		{"required", spec.Param{Name: "p"}, false},
		{"empty default", spec.Param{Name: "p", Default: &empty}, false},
		{"default", spec.Param{Name: "p", Default: &def}, true},
		{"from the claim", spec.Param{Name: "p", FromClaim: `uploads up to (?P<value>\d+)`}, true},
		{"not in the claim", spec.Param{Name: "p", FromClaim: `port (?P<value>\d+)`}, false},
	} {
		s := sensor("s", "proxy.size_limits")
		s.Params = []spec.Param{tc.param}
		got, note := Match(lemma.Lemma{Claim: "nginx allows uploads up to 25 MB"}, Sensors{InForce: []*spec.Sensor{s}})
		if (len(got) == 1) != tc.ok || (note == "params:s") == tc.ok {
			t.Errorf("%s: %v, note %q", tc.name, got, note)
		}
	}
	s := sensor("s", "proxy.size_limits")
	asked := false
	in := Sensors{InForce: []*spec.Sensor{s}, Binds: func(b *spec.Sensor, claim string) bool { asked = b == s; return false }}
	if got, _ := Match(lemma.Lemma{Claim: "nginx allows uploads up to 25 MB"}, in); len(got) != 0 || !asked {
		t.Error("Binds is not asked")
	}
}

func TestSweep(t *testing.T) {
	amb, edge, other := sensor("amb"), sensor("edge", "proxy.size_limits"), sensor("other", "db.role")
	amb.Ambient = true
	in := Sensors{InForce: []*spec.Sensor{amb, edge, other}}
	got := Sweep([]string{"PDF uploads of 3 MB fail. Allow 25 MB.", "Raise the limit of the parser"}, in)
	if len(got) != 2 || got[0] != (lemma.SensorMatch{ID: "amb", Why: "ambient"}) || got[1].ID != "edge" {
		t.Errorf("%v", got)
	}
	// Words of different sentences make no phrase.
	if got := Sweep([]string{"Add a superpower. The user likes roles.\nIt has a database."}, in); len(got) != 1 {
		t.Errorf("%v", got)
	}
	if got := Sweep([]string{strings.Repeat("x ", maxSwept), "nginx allows uploads up to 25 MB"}, in); len(got) != 1 {
		t.Errorf("a sweep reads past its bound: %v", got)
	}
}

func TestCombine(t *testing.T) {
	r := func(v lemma.Verdict) Result { return Result{Verdict: v, Sensor: string(v)} }
	for _, tc := range []struct {
		in   []Result
		want lemma.Verdict
	}{
		{nil, lemma.Unverifiable},
		{[]Result{r(lemma.Unjudged)}, lemma.Unjudged},
		{[]Result{r(lemma.Unjudged), r(lemma.Inconclusive)}, lemma.Inconclusive},
		{[]Result{r(lemma.Inconclusive), r(lemma.Confirmed), r(lemma.Unjudged)}, lemma.Confirmed},
		{[]Result{r(lemma.Confirmed), r(lemma.Contradicted), r(lemma.Inconclusive)}, lemma.Contradicted},
	} {
		if got := Combine(tc.in...); got.Verdict != tc.want {
			t.Errorf("%v: %s", tc.in, got.Verdict)
		}
	}
}
