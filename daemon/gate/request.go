package gate

import (
	"gettier.dev/gettierd/daemon/route"
	"gettier.dev/gettierd/ledger/lemma"
)

// RequestClass classes a routed request by the words that it is about, the
// newest prompt and what a person said since. A client's own errand and a request
// without words change nothing by themselves.
func RequestClass(rt route.Route, tools bool) (lemma.Class, []string) {
	if rt.Kind.Side() {
		return lemma.Explore, []string{"side request"}
	}
	if rt.Kind == route.Unknown || rt.PersonText == "" && len(rt.Queued) == 0 {
		return lemma.Explore, []string{"words.none"}
	}
	class, why := PromptClass(rt.PersonText, tools)
	for _, q := range rt.Queued {
		c, w := PromptClass(q, tools)
		class = lemma.MaxClass(class, c)
		for _, r := range w {
			why = append(why, "mid-loop "+r)
		}
	}
	return class, why
}
