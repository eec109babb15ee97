package gate

import (
	"regexp"
	"strings"

	"gettier.dev/gettierd/daemon/action/shell"
	"gettier.dev/gettierd/ledger/lemma"
)

// heuristic is a named rule on a prompt's words. The names stand on the chain.
type heuristic struct {
	name  string
	class lemma.Class
	re    *regexp.Regexp
	// act: the rule asks for something to be done, so a question does not trigger it.
	act bool
}

// maxClassified bounds how much of a prompt is looked at: its head and tail.
const maxClassified = 8 << 10

var heuristics = []heuristic{
	{"words.destroy", lemma.Destructive, regexp.MustCompile(`(?i)\b(drop|truncate|wipe|nuke|destroy|purge|erase)\s+(?:the\s+|all\s+|our\s+|this\s+|that\s+|my\s+|every\s+|whole\s+|entire\s+|old\s+|prod(?:uction)?\s+|staging\s+|test\s+|dev\s+|local\s+)*(?:\S+\s+){0,2}?(databases?|db|tables?|schemas?|buckets?|volumes?|clusters?|namespaces?|disks?|partitions?|backups?|data|everything|environment|infra\w*|stack|servers?|instances?|indexes|indices|queues?|topics?|collections?|repo(?:sitory)?)\b`), true},
	{"words.delete-data", lemma.Destructive, regexp.MustCompile(`(?i)\b(delete|remove|clear|empty)\s+(?:all|every|the\s+(?:whole|entire|prod\w*|database|db|bucket|table|volume|cluster|namespace|data|users?|backups?)|prod\w*)\b`), true},
	{"words.force", lemma.Destructive, regexp.MustCompile(`(?i)\b(force[- ]push|push\s+--?f(?:orce)?\b|reset\s+--hard|rm\s+-[a-z]*r[a-z]*f?|git\s+clean\s+-|--force-reset|migrate\s+reset|db:(?:drop|reset)|terraform\s+destroy|kubectl\s+delete|mkfs|dd\s+if=)`), true},
	{"words.reset-db", lemma.Destructive, regexp.MustCompile(`(?i)\b(reset|recreate|re-create|reinitiali[sz]e)\s+(?:the\s+|our\s+|my\s+)?(?:\w+\s+)?(database|db|cluster|volume|environment)\b`), true},
	{"words.release", lemma.Change, regexp.MustCompile(`(?i)\b(deploy|release|roll\s*out|roll\s*back|rollback|publish|ship\s+(?:it|this|to)|promote\s+to|go\s+live|cut\s+a\s+release|push\s+to\s+(?:prod\w*|staging|main|master))\b`), true},
	{"words.infra", lemma.Change, regexp.MustCompile(`(?i)\b(nginx|apache|haproxy|traefik|caddy|envoy|kubernetes|k8s|helm|terraform|ansible|docker(?:file|[- ]compose)?|systemd|ingress|load\s*balancer|proxy|cdn|dns|firewall|iam|vpc|cron(?:tab|job)?|ci(?:/cd)?|pipeline|github\s+actions?|workflow\s+file)\b`), true},
	{"words.data", lemma.Change, regexp.MustCompile(`(?i)\b(migrat(?:e|ion|ions)|schema|backfill|seed\s+(?:the\s+)?(?:db|database)|alter\s+table|add\s+(?:a\s+)?column|index\s+on|foreign\s+key|replica\w*|database|postgres\w*|mysql|mongodb|redis|sqlite|bucket|queue)\b`), true},
	{"words.deps", lemma.Change, regexp.MustCompile(`(?i)\b(upgrade|downgrade|bump|pin|install|uninstall|add\s+(?:the\s+)?(?:dependency|package|library)|dependenc(?:y|ies)|package\.json|go\.mod|cargo\.toml|requirements(?:\.txt)?|pyproject|lock\s*file|node\s+version|runtime\s+version)\b`), true},
	{"words.config", lemma.Change, regexp.MustCompile(`(?i)\b(config(?:ure|uration)?|settings?|env(?:ironment)?\s+var\w*|\.env|secrets?|credentials?|api\s+keys?|certificates?|tls|ssl|auth(?:entication|orization)?|permissions?|rate\s*limit\w*|timeouts?|body\s+size|upload\s+(?:limit|size)|max\s+\w+\s+size|(?:\d+\s*(?:mb|gb|kb)))\b`), true},
	{"words.edit", lemma.Edit, regexp.MustCompile(`(?i)\b(fix(?:es|ing)?|implement|add|change|update|edit|refactor|rename|remove|delete|replace|rewrite|write|create|make|build|move|extract|convert|port|introduce|enable|disable|raise|lower|increase|decrease|set|bump|patch|clean\s*up|format|improve|optimi[sz]e|handle|support|wire\s+up|hook\s+up|merge|rebase|commit|revert|undo|redo|apply|run|start|stop|restart|kill|generate|scaffold|finish|complete|do)\b`), true},
}

var (
	question   = regexp.MustCompile(`(?i)^\s*(?:(?:please|hi|hello|hey|ok(?:ay)?|so|and|but|now|quick question|i wonder|just curious)[\s,:!.-]+)*(what|why|how|where|when|which|who|whose|is|are|was|were|does|do\s+(?:we|you|i|they|these|those|the|any|all|my|our)|did|has|have|should|would|explain|describe|show\s+me|tell\s+me|list|find|search|look\s+(?:at|for|up|into)|summari[sz]e|review|compare|check|inspect|read|print|count|locate|understand|analy[sz]e|investigate)\b`)
	politeness = regexp.MustCompile(`(?i)^\s*(?:please\s+)?(?:can|could|will|would)\s+(?:you|we)\s+(?:please\s+)?(?:also\s+)?`)
	then       = regexp.MustCompile(`(?i)(?:[.;!?\n]|\band\b|\bthen\b|,)\s*(?:then\s+|also\s+|please\s+|now\s+|and\s+)*(fix|implement|add|change|update|edit|refactor|rename|remove|delete|replace|rewrite|write|create|make|build|move|set|raise|increase|lower|deploy|drop|wipe|apply|run|install|upgrade|migrate|reset|configure|enable|disable|restart|push|commit|merge|release|roll)\b`)
	howTo      = regexp.MustCompile(`(?i)^\s*(?:how\s+(?:do|can|should|would)\s+(?:i|we|you)\b|what\s+(?:should|would|do)\s+(?:i|we)\b|should\s+(?:i|we)\b|write\s+me\b|give\s+me\b)`)
	reading    = regexp.MustCompile(`(?i)^\s*(?:list|find|search|look|show|print|count|locate|check|inspect|read|summari[sz]e|review|compare|describe|explain|analy[sz]e|investigate)\b`)
)

// PromptClass classes a person's words by the named rules above, in
// microseconds and the same way every time. tools reports a client that can
// act: without one a question for advice is as good as the act, since the person
// will do what it says.
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
	ask := politeness.ReplaceAllString(t, "")
	asks := question.MatchString(ask) && !then.MatchString(ask)
	if asks && tools {
		return lemma.Explore, []string{"words.question"}
	}
	if asks && (!howTo.MatchString(ask) || reading.MatchString(ask)) {
		return lemma.Explore, []string{"words.question"}
	}
	class, acts := lemma.Explore, howTo.MatchString(ask)
	var why []string
	for _, h := range heuristics {
		if !h.re.MatchString(ask) {
			continue
		}
		switch h.class {
		case lemma.Edit:
			acts = true
			class = lemma.MaxClass(class, lemma.Edit)
			why = append(why, h.name)
		case lemma.Destructive:
			acts = true
			fallthrough
		default:
			// A subject alone ("the nginx config") is no act; release words are one.
			class = lemma.MaxClass(class, h.class)
			why = append(why, h.name)
			acts = acts || h.name == "words.release" || h.name == "words.deps"
		}
	}
	if !acts {
		if len(why) == 0 {
			return lemma.Explore, []string{"words.plain"}
		}
		return lemma.Explore, append(why, "words.no-act")
	}
	if len(why) == 0 {
		why = []string{"words.how-to"}
		class = lemma.Edit
	}
	return class, why
}

// BareContinuation reports words that only say go on: they tell nothing new.
func BareContinuation(text string) bool {
	t := strings.ToLower(strings.TrimSpace(text))
	if len(t) > 60 {
		return false
	}
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
