package redact

import "testing"

func TestSmoke(t *testing.T) {
	e := New()
	for _, s := range []string{
		"DATABASE_URL=postgres://admin:575^YX^8XM5mSL@db.internal:5432/app", "redis://:575^YX^8XM5mSL@db.internal:6379/0", `{"a":"password=abc123x\nfoo","password":"hunter2"}`,
	} {
		out, hits := e.String(s)
		t.Log(out, hits)
		if len(hits) == 0 {
			t.Errorf("nothing found in %q", s)
		}
	}
	out, hits := e.JSON([]byte(`{"a":"password=abc123x\nfoo","password":"hunter2"}`))
	t.Logf("%s %v", out, hits)
}

func TestEveryRuleCompiles(t *testing.T) {
	for i, f := range compiled() {
		re, _ := f()
		if r := tokenRules[i]; r.keyed && re.String()[:1] != "^" && re.String()[:5] != "(?i)^" {
			t.Errorf("%s is keyed and not anchored", r.id)
		}
	}
}
