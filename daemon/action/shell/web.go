package shell

import "strings"

// webTool is a tool that fetches: what it does hangs on its method.
func webTool(name string, f fields) Action {
	target := f.str("url", "uri", "query", "prompt")
	a := Action{Kind: "http", Effect: ReadOnly, External: true, Rule: "tool.web", Why: "reads the web", Summary: name + " " + target}
	method := strings.ToUpper(f.str("method", "http_method", "verb"))
	_, sends := f.m["body"]
	switch {
	case method == "DELETE":
		a.Effect, a.Rule, a.Why = Destroy, "http.delete", "asks a server to delete"
	case method != "" && method != "GET" && method != "HEAD" && method != "OPTIONS", method == "" && sends:
		a.Effect, a.Rule, a.Why = Mutate, "http.write", "sends "+orUnknown(method)+" to a server"
		args := []word{{s: name}, {s: target}}
		if b := f.str("body", "data", "json"); strings.Contains(b, "mutation") {
			args = append(args, word{s: b})
		}
		if what := destructiveRequest(args); what != "" {
			a.Effect, a.Rule, a.Why = Destroy, "http.destroy", "asks a server to "+what
		}
	}
	return a
}

func orUnknown(method string) string {
	if method == "" {
		return "data"
	}
	return method
}
