package verdict

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxClaim bounds the claims that are read at all; a longer one is no single
// statement.
const maxClaim = 1000

// The one table of words that stand between a claim and a verdict. Each entry
// errs towards no verdict.
var (
	// negations turn a statement round. Words that begin with a negating
	// prefix and a hyphen (non-root) count too.
	negations = words(`not no never none neither nor nothing nobody nowhere without cannot cant
		isnt arent doesnt dont didnt wont wouldnt shouldnt couldnt hasnt havent hadnt wasnt werent mustnt aint
		unable hardly rarely seldom barely scarcely untrue incorrect wrong wrongly mistaken mistakenly impossible myth doubtful`)

	// denials turn it round by their meaning. A rule that itself says the word
	// and is not marked negated reads it as the statement.
	denials = words(`fail fails failed failing lack lacks lacking lacked absent refuse refuses refused reject rejects rejected rejecting
		deny denies denied disallow disallows disallowed forbid forbids forbidden prohibit prohibits prohibited prevent prevents prevented
		exclude excludes excluded omit omits omitted false`)
	negatingPrefixes = []string{"non-", "no-", "not-"}

	// compounds join a second statement, or a condition, to the first.
	compounds = words(`and or but while whereas although though however because since so therefore thus hence which who whose whom
		where if unless when whenever once otherwise except excluding besides else then nor plus both either neither
		assuming depending regardless despite yet versus vs unlike`)
	compoundMarks = regexp.MustCompile(`[;\n()\[\]{}&]|,(\s|$)|\s[-–—]+\s|—|[.!?…]+["')\]]*\s+\S|\S\s+:|\s/\s|\s\+\s`)
	compoundColon = regexp.MustCompile(`:\s`)
	soleKeyColon  = regexp.MustCompile(`^[\w.-]+:\s+\S+( \S+)?$`)

	// hedges say that the sentence is no plain statement about now and here:
	// a wish, a guess, the past, a plan, or what somebody else says.
	hedges = words(`should must would could might may shall ought needs need needed want wants wanted wish expected expect expects supposed
		assume assumes assumed assuming suppose supposing imagine imagining pretend pretending presume presumably probably likely perhaps maybe possibly apparently seemingly
		usually typically often sometimes generally normally mostly occasionally
		was were had previously formerly originally initially yesterday
		says say said states claims claim claimed mentions suggests implies recommends according reportedly supposedly allegedly
		documented documentation docs readme manual tutorial specification planned intended soon eventually later tomorrow future hypothetically ideally
		staging qa elsewhere`)
	hedgePhrases = regexp.MustCompile(`\bby default\b|\bused to\b|\b(?:until|till)\b|\bprovided (?:that|the)\b|\bgiven that\b|\bat (?:a time|once|first)\b|\bin (?:theory|turn|ci|some cases)\b|\bper (?:host|pod|container|core|cpu|node|machine|worker|process|region|user|page|client|ip|address|connection|request|session|query|table|database|project|account|key|token|tenant|file|route|endpoint|upstream|zone|group|team|role|customer|item|row|batch|thread|job|queue|shard|replica|server|service|cluster|namespace|call|test|repo|repository|branch)\b|\brequired to\b|\bhave to\b|\bhas to\b|\bgoing to\b|\bwill be (raised|changed|set|configured|increased|enabled|disabled|updated|upgraded|deployed)\b|` +
		`\b(after|before|upon) (the |this |that |a |my |our |its |any |each |every )?(next |last |first |new |coming |upcoming |following |latest |second )?(change|deploy\w*|upgrade|reload|restart|migration|update|fix|roll-?out|release|edit|patch|raising|increasing|changing|setting|editing|adding|we|it|i|you)\b|` +
		`\b(another|other|different|remote|test|old|backup|standby|demo|preview) (server|host|machine|node|cluster|environment|instance|system|vm)\b|\bon (host|server|machine|pod|vm) \w|\b(upstream|downstream) of\b|` +
		`\b(next|coming|upcoming|following) (change|deploy\w*|upgrade|restart|reload|migration|update|fix|roll-?out|release|version|sprint|week|month|year|time|start|boot|run)\b|\?`)

	// elsewhere names places that are not this project on this machine. What holds
	// there is no matter of what was measured here.
	elsewhere = regexp.MustCompile(`\b(?:in|on|inside|within|at|from) (?:the |an? |our |your |their |its |each |every |any |all )?(?:[\w-]+ ){0,2}?` +
		`(?:images?|containers?|ci|pipelines?|workflows?|runners?|production|prod|clusters?|vms?|virtual machines?|the cloud|fixtures?|samples?|examples?|tests|test suite|backlog|roadmap|design system|firewall|build (?:machine|server|agent|host)s?|servers|devices|laptops)\b|` +
		`\b(?:another|other|different|second|sibling|parent|upstream|downstream|vendored|third-party|neighbou?ring) (?:[\w-]+ )?(?:repo|repository|project|package|checkout|work ?tree|team|branch|module|service|app|directory|library)\b|` +
		`\b(?:of|in) (?:the |an? |our |another |every |each )?(?:[\w-]+ )?(?:submodules?|dependency|dependencies|library|libraries|upstream)\b`)

	// places are the words on which elsewhere turns: without one it is not looked for.
	places = words(`image images container containers ci pipeline pipelines workflow workflows runner runners production prod cluster clusters vm vms machine machines
		cloud fixture fixtures sample samples example examples tests suite backlog roadmap system firewall server servers agent agents host hosts devices laptops
		another other different second sibling parent upstream downstream vendored third-party neighboring neighbouring
		submodule submodules dependency dependencies library libraries`)

	// existential words make a claim about some of several values.
	existential = regexp.MustCompile(`\b(some|any|several|most|many|few|part of|half|one of|(an?|one|another) (backend|server|replica|worker|node|instance|process|host|pod|machine|container|service|of))\b`)

	// bounds before a number say which side of it is meant. They must agree
	// with the operator that a rule brings, unless the rule itself names them.
	upperBound  = regexp.MustCompile(`(?:\b(?:at most|at maximum|no more than|not more than|less than|fewer than|smaller than|lower than|shorter than|older than|earlier than|under|below|only|just|merely|limited to|capped at|restricted to|(?:a )?max(?:imum)?(?: of)?|(?:limit|cap|restrict|reduc)\w*(?: \w+){0,3} (?:to|at)|not exceed|not exceeding|within)|<=?|≤)\s*(?:(?:a|an|the|about)\s+)?$`)
	lowerBound  = regexp.MustCompile(`(?:\b(?:at least|at minimum|no less than|not less than|no fewer than|more than|greater than|larger than|bigger than|higher than|longer than|newer than|later than|over|above|exceed|exceeds|exceeding|beyond|(?:a )?min(?:imum)?(?: of)?)|>=?|≥)\s*(?:(?:a|an|the|about)\s+)?$`)
	strictBound = regexp.MustCompile(`(?:less|fewer|smaller|lower|shorter|older|earlier|more|greater|larger|bigger|higher|longer|newer|later) than\s*$|\b(?:under|below|over|above|exceed|exceeds|exceeding|beyond)\s*$|[<>]\s*$`)
	approximate = regexp.MustCompile(`(?:\b(?:about|around|approximately|approx|roughly|circa|ca|nearly|almost|close to|near|some)|~|≈|` +
		// the amount of something else, or a part of one
		`\b(?:by|from|half|with|using|after \w+ing|into(?: the)?|(?:half|third|quarter|fifth|tenth|twentieth|fraction|multiple|chunks?|parts?|pieces?|batches|steps|increments|cache|memory|ram|disk|quotas?) of)\s+(?:an? |the )?)\s*$`)
	trailBound = regexp.MustCompile(`^\s*(?:or (?:more|less|fewer|newer|older|later|above|below)|(?:[a-z]+ )?(?:max(?:imum)?|min(?:imum)?|at (?:most|least))\b|\+|-?ish\b|(?:per|each|every)\b|an? (?:second|minute|hour|day|week|month|year)\b|(?:less|more|larger|smaller|bigger|faster|slower|higher|lower|longer|shorter|fewer|down|apart|altogether|combined)\b|in total\b|(?:of )?(?:ram|memory|disk|swap|cache|quotas?|storage|space|bandwidth)\b|of (?:the|its|our|these|those|all|\d+|two|three|four|five|six)\b|` +
		`-?(?:compatible|based|only|style|like|era)\b|(?:syntax|clients?|drivers?|dialect|docs|documentation|features?|api|protocol|semantics|support)\b)`)

	// compatibility is about what something could run with, not what runs.
	compatibility = words(`support supports supported compatible compatibility requires require required targets target targeting tested works
		available introduced recommends recommended needs upgrade upgrades upgrading migrate migrates migrating driver client syntax dialect`)

	// fragments of a phrase that a rule can take for a name: `connects as the owner`.
	determiners = words(`a an the its our their his her my your this that these those another other own`)

	// ordinary words of a sentence that a pattern can take for a value: the
	// package manager is now npm, deploys from any branch, the time zone is wrong.
	// Words that are values of settings (none, off, default) are not among them.
	ordinary = words(`now still currently always never already just only exactly also again then not really actually effectively simply
		any every each all some several many few most more fewer enough no another either neither whichever whatever which what one's whose both
		called named known unknown clear unclear wrong right correct incorrect fine good bad okay ok valid invalid broken healthy ready done safe unsafe
		same different identical equal consistent inconsistent similar present absent missing available unavailable up down here there
		set unset configured defined undefined used unused needed required optional supported installed pinned locked fixed changed unchanged
		large small big tiny huge
		being been going very quite too so such something anything nothing everything`)

	// after a value a sentence may say where or since when; any other word makes
	// the value a part of something longer.
	afterValue = words(`in on at for from to of by with via under inside within across during through as here now today too locally everywhere is`)

	// capable verbs make a claim about a size a lower bound on a limit.
	capable = words(`accepts accept accepted allows allow allowed permits permit permitted supports support supported handles handle handled
		takes take passes pass passed fits fit reaches reach holds hold survives survive lasts last up`)

	// positive and negative states, for claims about a switch.
	offWords = words(`off disabled disables disable inactive unset stopped deactivated unenforced`)
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}

// sentence is a claim as the rules see it.
type sentence struct {
	text     string // NFKC, one line, plain quotes
	lower    string
	negated  int      // how many negating words, denials included
	negWord  string   // the first of them
	denials  []string // those that negate by meaning
	compound string   // what makes it compound, "" when it is not
	hedges   []string // what makes it no plain statement about here
	some     bool     // about some of several
	tokens   []string
}

var quoteMarks = strings.NewReplacer("’", "'", "‘", "'", "“", `"`, "”", `"`, "´", "'", "`", "`", "\u00a0", " ", "…", "...")

// plain brings a text into one form: NFKC, plain quotes, no invisible
// characters, single spaces.
func plain(s string) string {
	s = s[:min(len(s), 4*maxClaim)]
	s = quoteMarks.Replace(norm.NFKC.String(strings.ToValidUTF8(s, " ")))
	var b strings.Builder
	var space bool
	for _, r := range s {
		switch {
		case strings.ContainsRune("\n\r\u2028\u2029", r):
			b.WriteByte('\n')
		case unicode.IsSpace(r) || unicode.IsControl(r):
			space = true
		case unicode.Is(unicode.Cf, r):
		default:
			if space {
				b.WriteByte(' ')
			}
			space = false
			b.WriteRune(r)
		}
	}
	return strings.TrimSpace(b.String())
}

// leadIn is an opening that says here and now, and nothing else.
var leadIn = regexp.MustCompile(`(?i)^(?:currently|here|at present|right now|today|on this (?:system|machine|host|server)|in this (?:project|repo|repository|environment|system|deployment)),\s+`)

// trailers are the marks a sentence ends with.
const trailers = ".!… \n"

func readSentence(claim string) sentence {
	var s sentence
	s.text = strings.TrimRight(leadIn.ReplaceAllString(plain(claim), ""), trailers)
	s.lower = strings.ToLower(s.text)
	s.tokens = tokens(s.text)
	for _, t := range s.tokens {
		neg := negations[strings.ReplaceAll(t, "'", "")]
		if denials[t] {
			s.denials = append(s.denials, t)
			neg = true
		}
		for _, p := range negatingPrefixes {
			neg = neg || strings.HasPrefix(t, p)
		}
		if neg || strings.HasSuffix(t, "n't") {
			if s.negated++; s.negWord == "" {
				s.negWord = t
			}
		}
		if hedges[t] {
			s.hedges = append(s.hedges, t)
		}
	}
	if found := strings.TrimSpace(hedgePhrases.FindString(s.lower)); found != "" {
		s.hedges = append(s.hedges, found)
	}
	if slices.ContainsFunc(s.tokens, func(t string) bool { return places[t] }) {
		if found := elsewhere.FindString(code.ReplaceAllString(s.lower, "X")); found != "" {
			s.hedges = append(s.hedges, found)
		}
	}
	s.compound = compoundIn(s.text)
	s.some = existential.MatchString(s.lower)
	return s
}

// code is what stands in backquotes, or in quotes without a space: a name, not
// part of the sentence.
var code = regexp.MustCompile("`[^`\n]*`|\"[^\"\\s]*\"|'[^'\\s]+'|\\b[\\w.]+\\(\\)")

// compoundIn names what joins a second statement, "" if nothing does.
func compoundIn(text string) string {
	if len(text) > maxClaim {
		return "length"
	}
	bare := code.ReplaceAllString(text, "X")
	for _, t := range tokens(bare) {
		if compounds[t] {
			return t
		}
	}
	if m := compoundMarks.FindString(bare); m != "" {
		return strings.TrimSpace(firstRune(strings.TrimSpace(m), `","`))
	}
	if compoundColon.MatchString(bare) && !soleKeyColon.MatchString(bare) {
		return ":"
	}
	return ""
}

func firstRune(s, empty string) string {
	for _, r := range s {
		return string(r)
	}
	return empty
}

// tokens are the words of a text in lower case, as spelled: inner points,
// hyphens, apostrophes, underscores and plus signs belong to a word.
func tokens(text string) []string {
	var out []string
	lower := []rune(strings.ToLower(text))
	inner := func(r rune) bool { return strings.ContainsRune(".-'_:/@", r) }
	for i := 0; i < len(lower); {
		if !wordRune(lower[i]) {
			i++
			continue
		}
		j := i
		for j < len(lower) && (wordRune(lower[j]) || lower[j] == '+' ||
			inner(lower[j]) && lower[j] != ':' && lower[j] != '/' && j+1 < len(lower) && wordRune(lower[j+1])) {
			j++
		}
		out = append(out, string(lower[i:j]))
		i = j
	}
	return out
}

func wordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// plainWords are a phrase's words without what joins them.
func plainWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(plain(text)), func(r rune) bool { return !wordRune(r) })
}

var (
	sizeText = regexp.MustCompile(`\b\d[\d.,_]*(?: |-)?(?:[kmgt]i?b|[kmgt]ib|bytes?|kilobytes?|megabytes?|gigabytes?|megs?|gigs?|mebibytes?|kibibytes?|gibibytes?)\b|\b\d+[kmg]\b`)
	timeText = regexp.MustCompile(`\b\d[\d.,_]*(?: |-)?(?:ns|us|µs|ms|msecs?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|weeks?)\b`)
	digits   = regexp.MustCompile(`^v?\d`)
	numerals = words(`one two three four five six seven eight nine ten eleven twelve single`)
)

// wordSet is what keyword phrases are held against: words as spelled and their
// parts (reverse-proxy, reverse, proxy), and the signs #, #size, #time.
func wordSet(text string) map[string]bool {
	text = plain(text)
	set := map[string]bool{}
	for _, t := range tokens(text) {
		set[t] = true
		if numerals[t] || digits.MatchString(t) {
			set["#"] = true
		}
		for p := range strings.FieldsFuncSeq(t, func(r rune) bool { return !wordRune(r) }) {
			set[p] = true
		}
	}
	lower := strings.ToLower(text)
	if sizeText.MatchString(lower) {
		set["#size"] = true
	}
	if timeText.MatchString(lower) {
		set["#time"] = true
	}
	return set
}
