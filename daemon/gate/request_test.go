package gate

import (
	"slices"
	"testing"

	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/ledger/lemma"
)

func TestRequestClass(t *testing.T) {
	for _, tc := range []struct {
		name string
		rt   route.Route
		want lemma.Class
		why  string
	}{
		{"a prompt", route.Route{Kind: route.New, PersonText: "Fix total."}, lemma.Edit, "words.edit"},
		{"a lap", route.Route{Kind: route.Loop, PersonText: "Fix total."}, lemma.Edit, "words.edit"},
		{"a sub-agent's task", route.Route{Kind: route.Subagent, PersonText: "Install lodash"}, lemma.Change, "words.deps"},
		{"words in mid-loop", route.Route{Kind: route.Loop, PersonText: "Fix total.", Queued: []string{"and push it"}}, lemma.Change, "mid-loop words.remote"},
		{"a refusal with words", route.Route{Kind: route.Loop, PersonText: "What is wrong?", Queued: []string{"No. Drop the users table instead."}}, lemma.Destructive, "mid-loop words.destroy"},
		{"a side request's words are not a person's", route.Route{Kind: route.SideCompaction, PersonText: "Drop the users table"}, lemma.Explore, "side request"},
		{"nothing said", route.Route{Kind: route.New}, lemma.Explore, "words.none"},
		{"an unknown request", route.Route{Kind: route.Unknown, PersonText: "Fix total."}, lemma.Explore, "words.none"},
	} {
		if got, why := RequestClass(tc.rt, true); got != tc.want || !slices.Contains(why, tc.why) {
			t.Errorf("%s: %s by %v, want %s by %s", tc.name, got, why, tc.want, tc.why)
		}
	}
}
