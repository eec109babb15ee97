package gate

import (
	"strings"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/ledger/lemma"
)

// maxClassified bounds how much of a prompt is looked at: its head and tail.
const maxClassified = 8 << 10

// token is a word of a prompt in lower case. fresh: a sentence, a clause or the
// prompt starts with it.
type token struct {
	s     string
	fresh bool
}

// Sets of words that the rules below are made of. They are everyday words of
// tickets, not a language model; a miss costs a declaration, which the first
// action makes up for.
var (
	fillers = words(`please hi hello hey ok okay so and but now then also just quick curious well great thanks right sure yes no can could will would you we kindly`)
	asking  = words(`what why how where when which who whose whats what's why's how's where's is are was were does did has have had should explain describe list find search summarize summarise review compare check inspect read print count locate understand analyze analyse investigate show tell look am isn't aren't doesn't`)
	pronoun = words(`we you i they these those the any all my our it`)
	acting  = words(`fix fixes fixing implement add change update edit refactor rename remove delete replace rewrite write create make build move extract convert port introduce enable disable raise lower increase decrease set bump patch clean format improve optimize optimise handle support wire hook merge rebase commit revert undo redo
 apply run start stop restart kill generate scaffold finish complete do reset deploy drop wipe install upgrade migrate configure push release roll publish truncate purge destroy erase nuke recreate downgrade uninstall pin rollback turn put let adjust tweak modify correct resolve extend reduce switch allow limit`)
	infraWords = words(`nginx apache haproxy traefik caddy envoy kubernetes k8s helm terraform ansible docker dockerfile compose docker-compose systemd ingress loadbalancer balancer proxy cdn dns firewall iam vpc cron crontab cronjob ci ci/cd pipeline workflow gunicorn uwsgi pm2 supervisor worker workers`)
	dataWords  = words(`migrate migration migrations schema schemas backfill seed seeds replica replicas replication database databases db postgres postgresql mysql mariadb mongodb mongo redis sqlite bucket queue queues kafka column columns elasticsearch`)
	depWords   = words(`upgrade downgrade bump pin install uninstall dependency dependencies package.json go.mod cargo.toml requirements requirements.txt pyproject pyproject.toml lockfile runtime`)
	confWords  = words(`config configs configure configuration setting settings .env env secret secrets credential credentials certificate certificates tls ssl auth authentication authorization permission permissions timeout timeouts ratelimit rate-limit limiter limit limits quota quotas cors`)
	destroying = words(`drop truncate wipe nuke destroy purge erase obliterate`)
	precious   = words(`database databases db dbs table tables schema schemas bucket buckets volume volumes cluster clusters namespace namespaces disk disks partition partitions backup backups data everything environment env infra infrastructure stack server servers instance instances index indexes indices queue queues topic topics collection collections repo repository production prod staging`)
	clearing   = words(`delete remove clear empty`)
	sweeping   = words(`all every whole entire production prod database db bucket table volume cluster namespace data users user backups backup`)
)

// forceful are spellings that stand for themselves.
var forceful = [...]string{"force-push", "force push", "push --force", "push -f", "reset --hard", "rm -r", "rm -fr", "git clean -", "--force-reset", "migrate reset", "db:drop", "db:reset", "terraform destroy", "kubectl delete", "mkfs", "dd if="}

func tokens(t string) []token {
	out := make([]token, 0, len(t)/5+1)
	fresh := true
	for i := 0; i < len(t); {
		c := t[i]
		if isWord(c) || (c == '.' || c == '-' || c == '_') && i+1 < len(t) && isWord(t[i+1]) {
			j := i + 1
			for j < len(t) && (isWord(t[j]) || (t[j] == '.' || t[j] == '-' || t[j] == '/' || t[j] == ':' || t[j] == '\'') && j+1 < len(t) && isWord(t[j+1])) {
				j++
			}
			out = append(out, token{t[i:j], fresh})
			fresh, i = false, j
			continue
		}
		switch c {
		case '.', ';', '!', '?', '\n', ',', ':', '(':
			fresh = true
		}
		i++
	}
	return out
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}

// PromptClass classes a person's words by named rules, in microseconds and the
// same way every time. tools reports a client that can act: without one a
// question for advice is as good as the act, since the person will do what it says.
func PromptClass(text string, tools bool) (lemma.Class, []string) {
	t := strings.TrimSpace(text)
	if t == "" {
		return lemma.Explore, []string{"words.none"}
	}
	if BareContinuation(t) {
		return lemma.Explore, []string{"words.continue"}
	}
	if len(t) > maxClassified {
		t = strings.ToValidUTF8(t[:maxClassified/2], "") + "\n" + strings.ToValidUTF8(t[len(t)-maxClassified/2:], "")
	}
	t = strings.ToLower(t)
	ts := tokens(t)
	start := 0
	for start < len(ts) && fillers[ts[start].s] {
		start++
	}
	advice := howTo(ts, start)
	if asks(ts, start) && !then(ts, start) && (tools || !advice) {
		return lemma.Explore, []string{"words.question"}
	}
	found, acts := rules(t, ts)
	class := lemma.Explore
	why := make([]string, 0, len(found)+1)
	for _, f := range found {
		class = lemma.MaxClass(class, f.class)
		why = append(why, f.name)
	}
	switch {
	case !acts && !advice && len(why) == 0:
		return lemma.Explore, []string{"words.plain"}
	case !acts && !advice:
		return lemma.Explore, append(why, "words.no-act")
	case len(why) == 0:
		return lemma.Edit, []string{"words.how-to"}
	}
	return class, why
}

// asks: the prompt begins as a question or a wish to be shown something.
func asks(ts []token, i int) bool {
	if i >= len(ts) {
		return false
	}
	if ts[i].s == "do" {
		return i+1 < len(ts) && pronoun[ts[i+1].s] && ts[i+1].s != "the" && ts[i+1].s != "it"
	}
	return asking[ts[i].s]
}

// then: after the question something is to be done.
func then(ts []token, from int) bool {
	for i := from + 1; i < len(ts); i++ {
		if !acting[ts[i].s] {
			continue
		}
		for k := i; k > from; k-- {
			if ts[k].fresh || ts[k-1].s == "and" || ts[k-1].s == "then" {
				return true
			}
			if !fillers[ts[k-1].s] {
				break
			}
		}
	}
	return false
}

// howTo asks for advice that will be followed.
func howTo(ts []token, i int) bool {
	at := func(k int) string {
		if i+k < len(ts) {
			return ts[i+k].s
		}
		return ""
	}
	self := func(s string) bool { return s == "i" || s == "we" || s == "you" }
	switch at(0) {
	case "how":
		return at(1) == "to" || (at(1) == "do" || at(1) == "can" || at(1) == "should" || at(1) == "would" || at(1) == "could") && self(at(2))
	case "what":
		return (at(1) == "should" || at(1) == "would" || at(1) == "do") && self(at(2))
	case "should":
		return self(at(1))
	case "write", "give":
		return at(1) == "me"
	}
	return false
}

type hit struct {
	name  string
	class lemma.Class
}

// rules are the named heuristics. A subject alone ("the nginx config") is no
// act; words of release and of dependencies are one by themselves.
func rules(t string, ts []token) (found []hit, acts bool) {
	has := map[string]bool{}
	add := func(name string, c lemma.Class) {
		if !has[name] {
			has[name] = true
			found = append(found, hit{name, c})
		}
	}
	for _, f := range forceful {
		if strings.Contains(t, f) {
			add("words.force", lemma.Destructive)
			acts = true
			break
		}
	}
	for i, k := range ts {
		next, after := "", ""
		if i+1 < len(ts) {
			next = ts[i+1].s
		}
		if i+2 < len(ts) {
			after = ts[i+2].s
		}
		if acting[k.s] {
			add("words.edit", lemma.Edit)
			acts = true
		}
		switch {
		case destroying[k.s] && near(ts, i, precious, 7):
			add("words.destroy", lemma.Destructive)
		case clearing[k.s] && (sweeping[next] && next != "user" || next == "the" && (sweeping[after] && after != "user")):
			add("words.delete-data", lemma.Destructive)
		case (k.s == "reset" || k.s == "recreate" || k.s == "re-create" || k.s == "reinitialize") && near(ts, i, resettable, 3):
			add("words.reset-db", lemma.Destructive)
			acts = true
		}
		switch {
		case k.s == "deploy", k.s == "redeploy", k.s == "release", k.s == "rollout", k.s == "rollback", k.s == "publish", k.s == "roll" && (next == "out" || next == "back"), k.s == "go" && next == "live", k.s == "promote" && next == "to",
			k.s == "ship" && (next == "it" || next == "this" || next == "to"), k.s == "push" && next == "to" && (strings.HasPrefix(after, "prod") || after == "staging" || after == "main" || after == "master"):
			add("words.release", lemma.Change)
			acts = true
		}
		switch {
		case infraWords[k.s], k.s == "github" && strings.HasPrefix(next, "action"):
			add("words.infra", lemma.Change)
		case dataWords[k.s], k.s == "alter" && next == "table", k.s == "foreign" && next == "key", k.s == "index" && next == "on":
			add("words.data", lemma.Change)
		case depWords[k.s], k.s == "lock" && next == "file", k.s == "node" && next == "version", k.s == "add" && (next == "dependency" || next == "package" || next == "library"):
			add("words.deps", lemma.Change)
			acts = acts || acting[k.s]
		case confWords[k.s], k.s == "rate" && strings.HasPrefix(next, "limit"), k.s == "api" && strings.HasPrefix(next, "key"), k.s == "body" && next == "size", k.s == "environment" && strings.HasPrefix(next, "var"), quantity(k.s, next):
			add("words.config", lemma.Change)
		}
	}
	return found, acts
}

var resettable = words(`database db cluster volume volumes environment schema`)

// near finds one of set among the n words after i, in the same sentence.
func near(ts []token, i int, set map[string]bool, n int) bool {
	for k := i + 1; k < len(ts) && k <= i+n; k++ {
		if set[ts[k].s] {
			return true
		}
	}
	return false
}

// quantity: 20 MB, 5gb.
func quantity(s, next string) bool {
	n := numberLen(s)
	if n == 0 {
		return false
	}
	u := s[n:]
	if u == "" {
		u = next
	}
	switch u {
	case "kb", "mb", "gb", "tb", "kib", "mib", "gib", "megabytes", "gigabytes":
		return true
	}
	return false
}

// BareContinuation reports words that only say go on: they tell nothing new.
func BareContinuation(text string) bool {
	t := strings.TrimSpace(text)
	if len(t) > 60 {
		return false
	}
	t = strings.ToLower(t)
	t = strings.Trim(t, ".!… \t\n")
	t = strings.Join(strings.FieldsFunc(t, func(r rune) bool { return r == ' ' || r == ',' || r == '.' || r == '!' || r == '\n' || r == '\t' }), " ")
	t = strings.TrimSuffix(strings.TrimPrefix(t, "please "), " please")
	switch t {
	case "y", "yes", "yep", "yeah", "yup", "sure", "ok", "okay", "k", "go", "go on", "go ahead", "goahead", "continue", "carry on", "proceed", "next", "keep going", "do it", "do that", "yes do it", "yes go ahead", "yes continue", "yes proceed",
		"ok go", "ok go on", "ok go ahead", "ok continue", "ok do it", "sounds good", "looks good", "lgtm", "looks good go ahead", "sounds good go ahead", "fine", "right", "correct", "exactly", "approved", "try again", "again", "retry", "resume", "finish", "finish it", "yes please", "sure go ahead", "thanks", "thank you", "great", "perfect", "weiter", "ja", "mach weiter", "oui", "continuez", "sí", "si", "sigue":
		return true
	}
	return false
}

// ActionClass classes an action by its effect and the files it touches.
func ActionClass(effect shell.Effect, paths []string) lemma.Class {
	switch effect {
	case "", shell.ReadOnly:
		return lemma.Explore
	case shell.Destroy, shell.Catastrophe:
		return lemma.Destructive
	case shell.Mutate:
		for _, p := range paths {
			if k := pathKind(p); k != plainFile && k != docFile && k != testFile {
				return lemma.Change
			}
		}
		return lemma.Edit
	}
	return lemma.Change
}
