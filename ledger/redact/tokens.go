package redact

import (
	"regexp"
	"sync"
)

// tokenRule finds secrets that are known by their shape, or by a vendor's name
// and an operator before them. The keyword finds the place, the expression
// decides, and only in a window round the keyword.
type tokenRule struct {
	id       string
	keywords []string // lower case
	expr     string   // RE2; the first group that took part is the secret, else the whole match
	keyed    bool     // expr starts at the keyword itself
	entropy  float64  // bits per byte that the secret has at least
	allow    string   // secrets that match are well-known examples
	check    func(text []byte, start, end int) bool
	reach    int // bytes after the keyword that expr may need; 0 is reachDefault
}

// ownTokens are rules that no list has in this form, and those whose keyword
// is so common that a look at its neighbours has to come first.
var ownTokens = []tokenRule{
	{id: "gettier-key", keywords: []string{"gt_live_", "gt_test_"}, expr: `^gt_(?:live|test)_[A-Za-z0-9_-]{8,200}`, keyed: true, check: wordStart},
	{id: "openai-api-key", keywords: []string{"sk-"}, expr: `^sk-(?:proj-|svcacct-|admin-|or-v1-|live-|test-)?[A-Za-z0-9_-]{16,256}`, keyed: true, check: openaiStart, entropy: 3.2},
	{id: "anthropic-api-key", keywords: []string{"sk-ant-"}, expr: `^sk-ant-[a-z]{2,8}[0-9]{2}-[A-Za-z0-9_-]{20,256}`, keyed: true, check: tokenStart, entropy: 3},
	{id: "jwt", keywords: []string{"eyj"}, expr: `^eyJ[A-Za-z0-9_-]{8,}\.(?:eyJ?[A-Za-z0-9_-]{8,}|[A-Za-z0-9_-]{16,})\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+){0,2}`, keyed: true, check: jwtStart, reach: 16 << 10},
	{id: "jwt", keywords: []string{"ey"}, expr: `^ey[A-Za-z0-9]{17,}\.ey[A-Za-z0-9/\\_-]{17,}\.(?:[A-Za-z0-9/\\_-]{10,}={0,2})?`, keyed: true, check: jwtStart, reach: 16 << 10, entropy: 3},
	{id: "jwt-base64", keywords: []string{"zxlk"}, expr: `^ZXlK[A-Za-z0-9+/]{60,}={0,2}`, keyed: true, check: wordStart, reach: 16 << 10, entropy: 3},
	{id: "vault-service-token", keywords: []string{"hvs."}, expr: `^hvs\.[\w-]{90,120}`, keyed: true, check: wordStart, entropy: 3.5},
	{id: "vault-service-token", keywords: []string{"s."}, expr: `^s\.[A-Za-z0-9]{24}\b`, keyed: true, check: vaultStart, entropy: 3.5, allow: `^s\.[A-Za-z]{24}$`},
	{id: "azure-ad-client-secret", keywords: []string{"q~"}, expr: "(?:^|[\\\\'\"`\\s>=:(,])([a-zA-Z0-9_~.]{3}\\dQ~[a-zA-Z0-9_~.-]{31,34})(?:$|[\\\\'\"`\\s<),])", entropy: 3},
	{id: "twilio-api-key", keywords: []string{"sk"}, expr: `^SK[0-9a-fA-F]{32}\b`, keyed: true, check: twilioStart, entropy: 3},
	{id: "github-token", keywords: []string{"github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, expr: `^(?:github_pat_[0-9A-Za-z_]{22,255}|gh[pousr]_[0-9A-Za-z]{36,255})`, keyed: true, check: tokenStart, entropy: 3},
	{id: "slack-token", keywords: []string{"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xapp-"}, expr: `^(?:xox[a-z](?:\.xox[bp])?|xapp)-[0-9A-Za-z%/+=_.-]{10,255}`, keyed: true, check: slackStart, entropy: 2.8},
	{id: "google-oauth-token", keywords: []string{"ya29.", "gocspx-", "1//0"}, expr: `^(?:ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,40}|1//0[\w-]{30,})`, keyed: true, check: tokenStart, entropy: 3},
	{id: "vendor-token", keywords: []string{
		"ccipat_", "ccdb1_", "apk_", "cog_", "vck_", "vca_", "vcp_", "vci_", "vcr_", "gsk_", "xai-", "r8_", "tgp_v1_", "nvapi-", "dckr_pat_", "lin_api_", "phx_", "sbp_", "whsec_",
		"figd_", "rubygems_", "tskey-", "tvly-", "jina_", "e2b_", "bkua_", "pscale_", "sts.", "ctx7sk-", "hvb.", "rnd_", "mdb_sa_sk_", "essu_", "polar_", "pina_", "lsv2_", "pcsk_", "lip_",
	}, expr: `^(?:(?i:ccipat_|ccdb1_)|apk_(?:user_)?|cog_|vc[kapir]_|gsk_|xai-|r8_|tgp_v1_|nvapi-|dckr_pat_|lin_api_|phx_|sbp_|whsec_|figd_|rubygems_|tskey-|tvly-|jina_|e2b_|bkua_|pscale_[a-z]{2,6}_|STS\.|ctx7sk-|hvb\.|rnd_|mdb_sa_sk_|essu_|polar_[a-z]{2,4}_|pina_|lsv2_[a-z]{2}_|pcsk_|lip_)[A-Za-z0-9_=-]{22,400}`, keyed: true, check: tokenStart, entropy: 3.6},
	{id: "new-relic-key", keywords: []string{"nrak-", "nrii-", "nrjs-"}, expr: `(?i)^(?:NRAK-[A-Z0-9]{27}|NRII-[A-Z0-9-]{32}|NRJS-[a-f0-9]{19})`, keyed: true, check: wordStart, entropy: 3},
	{id: "typeform-token", keywords: []string{"tfp_"}, expr: `^tfp_[A-Za-z0-9_.=-]{44,59}`, keyed: true, check: wordStart, entropy: 3.5},
	{id: "fly-token", keywords: []string{"flyv1 "}, expr: `^FlyV1 (\S{30,1000}\S*)`, keyed: true, check: wordStart, entropy: 4, reach: 4096},
	{id: "salesforce-token", keywords: []string{"00d"}, expr: `^00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{60,200}`, keyed: true, check: wordStart, entropy: 3},
	{id: "github-token", keywords: []string{"ghs_"}, expr: `^ghs_[0-9]{2,12}_eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,}`, keyed: true, check: tokenStart, reach: 4096},
	{id: "password-hash", keywords: []string{"$1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$y$", "$7$", "$argon2", "scram-sha-256$", "$pbkdf2", "{ssha}"}, expr: `(?i)^(?:\$(?:1|5|6|7|y)\$[^\s:"'$]{1,64}\$[./A-Za-z0-9$]{20,}|\$2[aby]\$[0-9]{2}\$[./A-Za-z0-9]{53}|\$(?:argon2|pbkdf2)[a-z0-9-]{0,12}\$[^\s:"']{20,}|SCRAM-SHA-256\$[0-9]+:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=]+:[A-Za-z0-9+/=]+|\{SSHA\}[A-Za-z0-9+/=]{20,})`, keyed: true},
	{id: "azure-sas", keywords: []string{"sig="}, expr: `^sig=([A-Za-z0-9%+/]{30,}(?:=|%3[dD]){0,2})`, keyed: true, check: wordStart},
	{id: "aws-presigned", keywords: []string{"x-amz-signature"}, expr: `(?i)^x-amz-signature(?:=|: ?)([0-9a-f]{64})`, keyed: true},
	{id: "aws-authorization", keywords: []string{"aws4-hmac-sha256"}, expr: `(?i)^aws4-hmac-sha256 [^\n\r"']{0,400}?signature=([0-9a-f]{64})`, keyed: true},
	{id: "sql-password", keywords: []string{"identified", "password"}, expr: `(?i)^(?:identified\s+(?:with\s+\S{1,64}\s+)?(?:by|as)(?:\s+password)?|(?:encrypted\s+)?password)\s+(?:'([^'\n]{1,256})'|"([^"\n]{1,256})")`, keyed: true, allow: `^[a-z_]+$|^PASSWORD$`},
	{id: "netrc-password", keywords: []string{"machine ", "login "}, expr: `(?i)^(?:machine\s+\S{1,255}\s+)?login\s+\S{1,128}\s+password\s+(\S{1,256})`, keyed: true, check: wordStart, allow: `^["']?[{<]|^"?PASSWORD"?$|^[a-z]{1,4}$`},
	{id: "oracle-connect", keywords: []string{"thin:"}, expr: `(?i)^thin:[^\s/:@"']{1,64}/([^\s@"']{1,128})@`, keyed: true},
	{id: "cli-password", keywords: []string{"mysql", "mariadb"}, expr: `^(?:mysql|mariadb)[a-z-]{0,12}\b[^\n|;]{0,300}?\s-p(?:'([^'\n]+)'|"([^"\n]+)"|([^\s'"]+))`, keyed: true, check: pathStart},
	{id: "cli-password", keywords: []string{"sshpass", "redis-cli", "valkey-cli", "ldapsearch", "ldapmodify", "ldapadd", "ldappasswd", "smbclient", "mongosh", "mongodump", "mongorestore", "docker login", "helm registry login", "podman login"}, expr: `^(?:sshpass\b[^\n|;]{0,40}?\s-p|(?:redis|valkey)-cli\b[^\n|;]{0,300}?\s-a|ldap[a-z]{3,6}\b[^\n|;]{0,300}?\s-w|smbclient\b[^\n|;]{0,300}?\s-U\s*[^\s%]+%|mongo[a-z]{1,8}\b[^\n|;]{0,300}?\s-p|(?:docker|podman|helm registry) login\b[^\n|;]{0,300}?\s-p)[ =]?(?:'([^'\n]+)'|"([^"\n]+)"|([^\s'"]+))`, keyed: true, check: pathStart},
	{id: "openssl-pass", keywords: []string{"pass:"}, expr: `^pass:(\S{1,256})`, keyed: true, check: opensslStart},
	{id: "azure-account-key", keywords: []string{"accountkey=", "sharedaccesskey="}, expr: `(?i)^(?:accountkey|sharedaccesskey)=([A-Za-z0-9+/]{20,}={0,2})`, keyed: true},
	{id: "slack-webhook-url", keywords: []string{"hooks.slack.com/"}, expr: `^hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{24,80})`, keyed: true},
	{id: "discord-webhook-url", keywords: []string{"/api/webhooks/"}, expr: `^/api/webhooks/[0-9]{15,22}/([\w-]{40,100})`, keyed: true},
	{id: "databricks-token", keywords: []string{"dapi"}, expr: `^dapi[0-9a-f]{32}(?:-\d)?`, keyed: true, check: wordStart, entropy: 3},
	{id: "npm-auth", keywords: []string{"_auth=", "_authtoken=", "_password="}, expr: `(?i)^_(?:auth|authtoken|password)=\s*"?([A-Za-z0-9+/=_.-]{8,})`, keyed: true},
	{id: "age-secret-key", keywords: []string{"age-secret-key-"}, expr: `(?i)^AGE-SECRET-KEY-1[0-9A-Z]{58}`, keyed: true},
	{id: "registry-auth", keywords: []string{`"auth":`}, expr: `^"auth":\s*"([A-Za-z0-9+/]{8,}={0,2})"`, keyed: true},
}

const (
	reachDefault = 640
	// A free rule's window starts this far before the keyword, at a blank if
	// there is one.
	reachBack = 96
)

func wordStart(text []byte, start, _ int) bool { return start == 0 || !isWord(text[start-1]) }

// tokenStart also allows an underscore or a letter in upper case before: names
// are glued to tokens in logs (TOKENghp_…) more often than one thinks. Behind a
// dash (model-sk-…) the token itself has to look drawn at random.
func tokenStart(text []byte, start, end int) bool {
	if start == 0 {
		return true
	}
	if text[start-1] == '-' {
		return drawn(text, end)
	}
	return !isLower(text[start-1]) && !isDigit(text[start-1])
}

// drawn: what follows holds a run of at least 16 letters and digits that change
// often, as no name of a thing does; of hex digits alone, which name files and
// commits as well, at least 32.
func drawn(text []byte, at int) bool {
	for n := 0; n < 256 && at < len(text) && (isWord(text[at]) || text[at] == '-'); {
		a := at
		for at < len(text) && isAlnum(text[at]) && n < 256 {
			at++
			n++
		}
		if run := text[a:at]; len(run) >= 16 && alternations(run) >= 3 && (len(run) >= 32 || !allBytes(run, isHex)) {
			return true
		}
		at++
		n++
	}
	return false
}

// openaiStart wants a digit within the token's first bytes: sk-learn and
// classes of web frameworks begin the same way.
func openaiStart(text []byte, start, end int) bool {
	if !tokenStart(text, start, end) {
		return false
	}
	digits, n := 0, end
	for n < len(text) && n-end < 64 && (isWord(text[n]) || text[n] == '-') {
		if isDigit(text[n]) {
			digits++
		}
		n++
	}
	return n-end >= 16 && digits >= 2
}

// slackStart wants digits, as all of these tokens have them and the names of
// variables and repositories that begin alike have not.
func slackStart(text []byte, start, end int) bool {
	if !tokenStart(text, start, end) {
		return false
	}
	digits, n := 0, end
	for n < len(text) && n-end < 256 && (isAlnum(text[n]) || text[n] == '-') {
		if isDigit(text[n]) {
			digits++
		}
		n++
	}
	return n-end >= 18 && digits >= 6
}

func pathStart(text []byte, start, _ int) bool {
	return start == 0 || !isWord(text[start-1]) && text[start-1] != '-'
}

// jwtStart wants the two dots where a token has them, so that the expression,
// which may have to read far, is rarely asked.
func jwtStart(text []byte, start, end int) bool {
	if !wordStart(text, start, end) || text[start] != 'e' {
		return false
	}
	at := end
	for _, most := range []int{512, 8 << 10} { // a header is short
		from := at
		for at < len(text) && at-from < most && (isWord(text[at]) || text[at] == '-' || text[at] == '/' || text[at] == '\\') {
			at++
		}
		if at-from < 6 || at >= len(text) || text[at] != '.' {
			return false
		}
		at++
	}
	return true
}

func vaultStart(text []byte, start, end int) bool {
	return wordStart(text, start, end) && end+24 <= len(text) && text[start] == 's' && isAlnum(text[end]) && alternations(text[end:end+24]) >= 3
}

// alternations counts changes between letters and digits: names have one
// number in them, random strings several.
func alternations(b []byte) int {
	n := 0
	for i := 1; i < len(b); i++ {
		if isDigit(b[i]) != isDigit(b[i-1]) {
			n++
		}
	}
	return n
}

func twilioStart(text []byte, start, end int) bool {
	return wordStart(text, start, end) && end+32 <= len(text) && text[start] == 'S' && text[start+1] == 'K' && isHex(text[end])
}

func opensslStart(text []byte, start, _ int) bool {
	return start > 0 && (text[start-1] == ' ' || text[start-1] == '=' || text[start-1] == '\'' || text[start-1] == '"')
}

// compiled keeps one expression per rule, made on first use: most texts touch
// a handful of the rules.
var compiled = sync.OnceValue(func() []func() (*regexp.Regexp, *regexp.Regexp) {
	out := make([]func() (*regexp.Regexp, *regexp.Regexp), len(tokenRules))
	for i := range tokenRules {
		r := &tokenRules[i]
		out[i] = sync.OnceValues(func() (re, allow *regexp.Regexp) {
			if r.allow != "" {
				allow = regexp.MustCompile(r.allow)
			}
			return regexp.MustCompile(r.expr), allow
		})
	}
	return out
})

// token runs one rule in the window round a keyword.
func (s *scan) token(rule, start, end int) {
	r := &tokenRules[rule]
	if r.check != nil && !r.check(s.text, start, end) {
		return
	}
	lo := start
	if !r.keyed {
		for lo > 0 && start-lo < reachBack && !isBlank(s.text[lo-1]) {
			lo--
		}
		if lo < s.done[rule] {
			lo = s.done[rule]
		}
	}
	reach := cmpOr(r.reach, reachDefault)
	hi := min(len(s.text), end+reach)
	for hi < len(s.text) && hi < end+4*reach && !isBlank(s.text[hi]) {
		hi++ // never ends inside a word: an end would look like a boundary
	}
	if lo >= hi {
		return
	}
	if r.keyed && !s.tries[rule].enter(start) {
		return
	}
	re, allow := compiled()[rule]()
	window := s.text[lo:hi]
	for at := 0; at < len(window); {
		m := re.FindSubmatchIndex(window[at:])
		if m == nil {
			break
		}
		a, b := m[0], m[1]
		for g := 2; g+1 < len(m); g += 2 {
			if m[g] >= 0 && m[g+1] > m[g] {
				a, b = m[g], m[g+1]
				break
			}
		}
		secret := window[at+a : at+b]
		if (r.entropy == 0 || entropy(secret) >= r.entropy) && (allow == nil || !allow.Match(secret)) && !placeholder(secret) {
			s.add(lo+at+a, lo+at+b, r.id)
		}
		if r.keyed {
			s.tries[rule].left(lo + m[1])
			return
		}
		at += max(m[1], 1)
	}
	if r.keyed {
		s.tries[rule].left(hi)
	} else {
		s.done[rule] = hi
	}
}
