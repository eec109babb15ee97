package redact

import (
	"bytes"
	"strings"
)

// strength says how much a key's name promises.
type strength int

const (
	none   strength = iota
	weak            // the value has to look random and long
	medium          // token, api key, secret: the value has to look like one
	strong          // password: any literal will do
)

// words of key names. A key is judged by all its segments: AUTH_TOKEN is a
// secret, token_type and max_tokens are not.
var keyWords = []keyWord{
	{"password", strong}, {"passwd", strong}, {"passwort", strong}, {"passphrase", strong}, {"passcode", strong}, {"pwd", strong},
	{"requirepass", strong}, {"masterauth", strong}, {"_pass", strong}, {"-pass", strong}, {"userpass", strong}, {"dbpass", strong}, {"pass=", strong}, {"pass:", strong}, {`pass"`, strong},
	{"secret", medium}, {"token", medium}, {"apikey", medium}, {"api_key", medium}, {"api-key", medium}, {"api key", medium},
	{"access_key", medium}, {"accesskey", medium}, {"access-key", medium}, {"private_key", medium}, {"privatekey", medium}, {"private-key", medium},
	{"signing_key", medium}, {"signingkey", medium}, {"signing-key", medium}, {"encryption_key", medium}, {"encryptionkey", medium}, {"encryption-key", medium},
	{"master_key", medium}, {"masterkey", medium}, {"master-key", medium}, {"auth_key", medium}, {"authkey", medium}, {"account_key", medium}, {"accountkey", medium},
	{"application_key", medium}, {"applicationkey", medium}, {"consumer_key", medium}, {"consumerkey", medium}, {"app_key", medium}, {"appkey", medium}, {"license_key", medium}, {"licensekey", medium}, {"service_key", medium}, {"jwt_key", medium},
	{"credential", medium}, {"sessionid", medium}, {"session_id", weak}, {"session_key", medium}, {"_salt", weak}, {"hmac", weak},
	{"_auth", weak}, {"auth_code", weak}, {"connection_string", weak}, {"webhook", weak}, {"_key", weak}, {"-key", weak}, {"bearer_", medium},
}

type keyWord struct {
	word string
	by   strength
}

// keyStems are the words without the operators that some carry as keywords.
var keyStems = func() []keyWord {
	out := make([]keyWord, len(keyWords))
	for i, w := range keyWords {
		out[i] = keyWord{strings.TrimRight(w.word, `=:"`), w.by}
	}
	return out
}()

func secretWords() []string {
	out := make([]string, len(keyWords))
	for i, w := range keyWords {
		out[i] = w.word
	}
	return out
}

// harmless are last segments that make a key a description of a secret, not
// the secret: token_type, password_file, key_id, secret_name.
var harmless = wordSet("type types count counts length len size limit limits max min name names file files path paths dir ttl age expiry expires expiration expire exp " +
	"url uri urls endpoint host id ids arn ref refs version encryption policy policies format index manager field fields input label hint prompt placeholder prefix suffix header headers " +
	"usage used budget rate cost price tokens passwords secrets credentials keys error errors invalid required enabled disabled provider providers source store storage scope scopes " +
	"algorithm alg method mode kind class status state strategy validator validation rotation rotated reset changed change set exists present valid check checks regex pattern " +
	"timeout attempts retries created updated at date time in out by for from to of and or is are was has not with without via per minute hour day second sec ms " +
	"env var variable variables command cmd helper generator service servicename namespace environment account user username email role group digest fingerprint thumbprint mount " +
	"authentication auth_method required_actions strength hash hashes hasher hashing stdin only mapping selector template volume projected list table column page cursor bucket window pool queue manager_name")

// carrying are last segments under which the key still names the secret itself.
var carrying = wordSet("value val values string str text plain plaintext raw b64 base64 base key token secret password pass pwd prod production dev development staging stage live test new old current next previous primary secondary main default db database admin root app api user client server access refresh private auth session master service bearer jwt hex data 0 1 2 3 4 5 6 7 8 9")

func wordSet(s string) map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

const (
	keyMost   = 96
	valueMost = 8 << 10
)

func isKeyByte(c byte) bool { return isWord(c) || c == '-' || c == '.' }

// keyValue reads name, operator and value round a word of keyWords.
func (s *scan) keyValue(start, end int) {
	t := s.text
	if end <= s.kvEnd {
		return
	}
	if c := t[end-1]; c == '=' || c == ':' || c == '"' {
		end-- // the operator belongs to what follows
	}
	ks := start
	for ks > 0 && start-ks < keyMost && isKeyByte(t[ks-1]) {
		ks--
	}
	ke := end
	for ke < len(t) && ke-end < keyMost && isKeyByte(t[ke]) {
		ke++
	}
	// A full stop or a dash at the end is punctuation.
	for ke > end && (t[ke-1] == '.' || t[ke-1] == '-') {
		ke--
	}
	s.kvEnd = ke
	key := t[ks:ke]
	op, vs := pairOf(t, ks, ke)
	close := op != opNone
	if op == opNone {
		op, vs = operator(t, ks, ke)
	}
	if op == opNone {
		// redis.conf has no operator.
		if w := t[start:end]; ke >= len(t) || t[ke] != ' ' || !bytes.EqualFold(w, []byte("requirepass")) && !bytes.EqualFold(w, []byte("masterauth")) {
			return
		}
		op, vs, close = opAssign, ke+1, true
	}
	st := keyStrength(key)
	if st == none && bytes.EqualFold(key, []byte("pwd")) && op == opAssign && inConnectionString(t, ks) {
		st = strong
	}
	if st == none {
		return
	}
	if !s.kv.enter(vs) {
		return
	}
	a, b, quoted := value(t, ks, vs, op)
	s.kv.left(b)
	if b <= a {
		return
	}
	// "Authorization: Bearer x", "token: Bearer x": the scheme is not the secret.
	if !quoted || op == opColon {
		if rest, ok := afterScheme(t[a:b]); ok {
			a = b - rest
		} else if !quoted && schemeWord(t[a:b]) {
			return // the header matcher takes it
		}
	}
	if literal(key, t[a:b], st, op, quoted, follows(t, b, quoted), close || tight(t, ke, vs)) {
		id := "secret"
		if st == strong {
			id = "password"
		}
		s.add(a, b, id)
	}
}

// keyStrength judges a key by its segments.
func keyStrength(key []byte) strength {
	var letters [64]byte // on the stack, as short strings are: keys are everywhere
	low := string(appendLower(letters[:0], key))
	var parts [16]Span
	segs := segments(parts[:0], key)
	if len(segs) == 0 {
		return none
	}
	last := low[segs[len(segs)-1].Start:segs[len(segs)-1].End]
	if harmless[last] {
		return none
	}
	best, bestEnd := none, 0
	for _, w := range keyStems {
		word := w.word
		if i := strings.LastIndex(low, word); i >= 0 && (w.by > best || w.by == best && i+len(word) > bestEnd) {
			if word == "pwd" && !segmentIs(low, segs, "pwd") && !strings.HasSuffix(low, "pwd") {
				continue
			}
			if word == "pass" && !segmentIs(low, segs, "pass") {
				continue // compass, minipass
			}
			if (word == "_pass" || word == "-pass") && i+len(word) < len(low) && isAlpha(low[i+len(word)]) {
				continue // bypass is no word of ours, and _passive neither
			}
			if (word == "_key" || word == "-key" || word == "_auth" || word == "_salt") && i+len(word) < len(low) {
				continue
			}
			best, bestEnd = w.by, i+len(word)
		}
	}
	if best == none {
		return none
	}
	switch {
	case bestEnd == len(low) || carrying[last] || strings.HasSuffix(low, "key"):
	case isDigits(last):
	default:
		// Something unknown follows: tokenizer, passwordless, secretAgent.
		if best > weak {
			best = weak
		}
	}
	if low == "pwd" || low == "oldpwd" {
		if string(key) != low { // PWD is the shell's directory
			return none
		}
	}
	if strings.HasPrefix(low, "public") || strings.Contains(low, "public_key") || strings.Contains(low, "publickey") || strings.Contains(low, "public-key") || strings.HasPrefix(low, "csrf-param") {
		return none
	}
	return best
}

func segmentIs(low string, segs []Span, w string) bool {
	for _, s := range segs {
		if low[s.Start:s.End] == w {
			return true
		}
	}
	return false
}

type op int

const (
	opNone   op = iota
	opAssign    // = := => ?= += .= ::=
	opColon     // :
	opFlag      // --password VALUE
	opComma     // setProperty("KEY", "VALUE")
	opTag       // <password>VALUE</password>
)

// operator reads what stands between key and value and returns where the value
// (its quote, if it has one) begins.
func operator(t []byte, ks, ke int) (op, int) {
	i := ke
	// Closing quotes and brackets of the key: "key", ['key'], \"key\".
	closed := false
	for n := 0; n < 4 && i < len(t) && (t[i] == '"' || t[i] == '\'' || t[i] == '`' || t[i] == '\\' || t[i] == ']'); n++ {
		closed = closed || t[i] == '"' || t[i] == '\''
		i++
	}
	j := i
	for j < len(t) && j-i < 24 && (t[j] == ' ' || t[j] == '\t') {
		j++
	}
	if j >= len(t) {
		return opNone, 0
	}
	// A flag's value may stand behind a blank.
	if ks >= 2 && t[ks-1] != '=' && (t[ks] == '-' && t[ks+1] == '-') && !closed && j > i && t[j] != '-' && t[j] != '=' && t[j] != '|' && t[j] != '<' && t[j] != ';' {
		return opFlag, j
	}
	if ks < 2 && ke-ks > 2 && t[ks] == '-' && t[ks+1] == '-' && j > i && t[j] != '-' && t[j] != '=' {
		return opFlag, j
	}
	// A type between name and operator: var token string = "x", pw: str = "x".
	if isAlpha(t[j]) && j > i && !closed {
		k := j
		for k < len(t) && k-j < 20 && (isWord(t[k]) || t[k] == '*') {
			k++
		}
		m := skipBlank(t, k)
		if m < len(t) && m > k && (t[m] == '=' || t[m] == ':' && m+1 < len(t) && t[m+1] == '=') {
			j = m
		} else {
			return opNone, 0
		}
	}
	switch t[j] {
	case '=':
		j++
		if j < len(t) && t[j] == '>' {
			j++
		} else {
			for j < len(t) && t[j] == '=' && j+1 < len(t) && (t[j+1] == '"' || t[j+1] == '\'' || t[j+1] == ' ') {
				j++ // == "literal" gives the literal away as well
			}
		}
		return opAssign, skipBlank(t, j)
	case ':':
		k := j
		for k < len(t) && t[k] == ':' && k-j < 3 {
			k++
		}
		if k < len(t) && t[k] == '=' {
			return opAssign, skipBlank(t, k+1)
		}
		if k-j > 1 {
			return opNone, 0
		}
		v := skipBlank(t, k)
		// Go and Python: pw: str = "x".
		if v < len(t) && isAlpha(t[v]) {
			e := v
			for e < len(t) && isWord(t[e]) {
				e++
			}
			if m := skipBlank(t, e); m > e && m+1 < len(t) && t[m] == '=' && t[m+1] == ' ' && typeWord(t[v:e]) {
				return opAssign, skipBlank(t, m+1)
			}
		}
		return opColon, v
	case '?', '+', '.', '|':
		if j+1 < len(t) && t[j+1] == '=' {
			return opAssign, skipBlank(t, j+2)
		}
		if t[j] == '|' && j+1 < len(t) && t[j+1] == '|' {
			return opAssign, skipBlank(t, j+2)
		}
	case ',':
		if v := skipBlank(t, j+1); closed && ks > 0 && t[ks-1] == t[ke] && v < len(t) && t[v] == t[ke] {
			return opComma, v
		}
	case '>':
		if j == ke && ks > 0 && t[ks-1] == '<' {
			return opTag, j + 1
		}
	case 'v', 'V': // <add key="Password" value="x"/>
		if closed && len(t)-j > 7 && strings.EqualFold(string(t[j:j+6]), "value=") {
			return opAssign, j + 6
		}
	}
	return opNone, 0
}

// pairOf finds the value of a key that is itself a value: name: KEY and then
// value: X, as manifests, task definitions and pipelines list variables; and of
// ENV KEY X, as image files do.
func pairOf(t []byte, ks, ke int) (op, int) {
	i := ks
	for i > 0 && ks-i < 3 && (t[i-1] == '"' || t[i-1] == '\'' || t[i-1] == '\\') {
		i--
	}
	quoted := i < ks
	for i > 0 && ks-i < 16 && (t[i-1] == ' ' || t[i-1] == '\t') {
		i--
	}
	if !quoted && i < ks && ke < len(t) && (t[ke] == ' ' || t[ke] == '\t') {
		for _, w := range []string{"env", "setenv", "set -x", "set -gx"} {
			at := i - len(w)
			if at >= 0 && bytes.EqualFold(t[at:i], []byte(w)) && (at == 0 || isBlank(t[at-1])) {
				return opAssign, skipBlank(t, ke)
			}
		}
	}
	if i < 5 || t[i-1] != ':' && t[i-1] != '=' {
		return opNone, 0
	}
	i--
	for i > 0 && (t[i-1] == ' ' || t[i-1] == '"' || t[i-1] == '\'' || t[i-1] == '\\') && ks-i < 24 {
		i--
	}
	if i < 3 || !(i >= 4 && bytes.EqualFold(t[i-4:i], []byte("name")) || bytes.EqualFold(t[i-3:i], []byte("key"))) {
		return opNone, 0
	}
	// What may stand between the two: the name's quote, a comma, a line's end.
	j := ke
	for j < len(t) && j-ke < 128 && (isBlank(t[j]) || t[j] == '"' || t[j] == '\'' || t[j] == '\\' || t[j] == ',') {
		j++
	}
	if j == ke || j+6 >= len(t) || !bytes.EqualFold(t[j:j+5], []byte("value")) {
		return opNone, 0
	}
	j += 5
	for n := 0; n < 3 && j < len(t) && (t[j] == '"' || t[j] == '\'' || t[j] == '\\'); n++ {
		j++
	}
	if j = skipBlank(t, j); j >= len(t) || t[j] != ':' && t[j] != '=' {
		return opNone, 0
	}
	return opAssign, skipBlank(t, j+1)
}

// inConnectionString: the key follows another pair, as in UID=u;PWD=x. Anywhere
// else PWD is the shell's directory.
func inConnectionString(t []byte, ks int) bool {
	for ks > 0 && t[ks-1] == ' ' {
		ks--
	}
	if ks == 0 || t[ks-1] != ';' {
		return false
	}
	line := t[max(0, ks-200):ks]
	if n := bytes.LastIndexByte(line, '\n'); n >= 0 {
		line = line[n:]
	}
	return bytes.IndexByte(line, '=') >= 0
}

func typeWord(w []byte) bool {
	switch string(w) {
	case "str", "string", "String", "bytes", "SecretStr", "Optional", "any", "Secret":
		return true
	}
	return false
}

func skipBlank(t []byte, i int) int {
	for n := 0; n < 32 && i < len(t) && (t[i] == ' ' || t[i] == '\t'); n++ {
		i++
	}
	return i
}

// value returns the span of the value that begins at i, without its quotes.
func value(t []byte, ks, i int, o op) (int, int, bool) {
	if o == opTag {
		for i < len(t) && isBlank(t[i]) {
			i++
		}
		e := i
		for e < len(t) && e-i < valueMost && t[e] != '<' {
			e++
		}
		if e >= len(t) || t[e] != '<' || e+1 >= len(t) || t[e+1] != '/' {
			return 0, 0, false
		}
		for e > i && isBlank(t[e-1]) {
			e--
		}
		return i, e, true
	}
	// Prefixes of string literals, and backslashes before quotes in escaped text.
	esc := 0
	j := i
	if j+1 < len(t) && (t[j] == 'b' || t[j] == 'r' || t[j] == 'f' || t[j] == 'u' || t[j] == '@' || t[j] == 'L') && (t[j+1] == '"' || t[j+1] == '\'') {
		j++
	}
	for j < len(t) && t[j] == '\\' && esc < 8 {
		esc++
		j++
	}
	if j < len(t) && (t[j] == '"' || t[j] == '\'' || t[j] == '`') {
		q := t[j]
		n := 1
		for n < 3 && j+n < len(t) && t[j+n] == q && j+n+1 < len(t) && t[j+n+1] == q {
			n++
		}
		if n == 3 {
			j += 2
		}
		a := j + 1
		for e := a; e < len(t) && e-a < valueMost; e++ {
			switch c := t[e]; {
			case c == '\n' && q != '`' && n < 3:
				return a, trimEscape(t, a, e), true
			case c == q && backslashes(t, a, e) == esc:
				return a, e - esc, true
			case c == q && backslashes(t, a, e)%2 == 0 && esc == 0:
				return a, e, true
			}
		}
		return a, min(len(t), a+valueMost), true // an open quote hides what follows all the same
	}
	if esc > 0 {
		return 0, 0, false
	}
	// Unquoted: to the next blank, to the quote that stands before the key, or
	// to what separates pairs.
	var outer byte
	if p := keyPrefix(t, ks); p > 0 && (t[p-1] == '"' || t[p-1] == '\'') {
		outer = t[p-1]
	}
	e := i
	for e < len(t) && e-i < valueMost && !isBlank(t[e]) {
		c := t[e]
		if c == outer && outer != 0 || c == '"' && outer == 0 && e > i && o != opFlag && structural(t, e) {
			break
		}
		if c == '\\' && e+1 < len(t) && (t[e+1] == 'n' || t[e+1] == 'r' || t[e+1] == 't' || t[e+1] == '"') {
			break
		}
		if c == ';' && o != opFlag && (e+1 == len(t) || isBlank(t[e+1]) || pairAhead(t, e+1)) {
			break
		}
		if c == '&' && pairAhead(t, e+1) && bytes.IndexByte(t[e:e+bytes.IndexByte(t[e:], '=')], ' ') < 0 {
			break
		}
		if c == '<' && e > i && e+1 < len(t) && t[e+1] == '/' {
			break
		}
		e++
	}
	for e > i && (t[e-1] == ',' || t[e-1] == ';') {
		e--
	}
	// Brackets that close something outside the value, and def f(password=None):
	if e-i > 2 && t[e-1] == ':' && t[e-2] == ')' {
		e--
	}
	for e > i {
		c := t[e-1]
		open := map[byte]byte{')': '(', ']': '[', '}': '{'}[c]
		if open == 0 || bytes.IndexByte(t[i:e], open) >= 0 {
			break
		}
		e--
		for e > i && (t[e-1] == '"' || t[e-1] == '\'' || t[e-1] == ',') {
			e--
		}
	}
	return i, e, false
}

// keyPrefix steps over export, env assignments' dashes and the like to what
// stands directly before the key.
func keyPrefix(t []byte, ks int) int {
	for ks > 0 && isKeyByte(t[ks-1]) {
		ks--
	}
	return ks
}

// structural reports whether the quote at e ends something of the text's
// syntax rather than belonging to an unquoted value.
func structural(t []byte, e int) bool {
	if e+1 >= len(t) {
		return true
	}
	switch t[e+1] {
	case ',', '}', ']', ')', ' ', '\n', '\r', ';', '\t', '>', '/':
		return true
	}
	return false
}

func pairAhead(t []byte, i int) bool {
	j := i
	for j < len(t) && j-i < 40 && (isWord(t[j]) || t[j] == '-' || t[j] == '.' || t[j] == ' ' || t[j] == '%' || t[j] == '[' || t[j] == ']') {
		j++
	}
	return j > i && j < len(t) && t[j] == '='
}

func backslashes(t []byte, lo, e int) int {
	n := 0
	for e-1-n >= lo && t[e-1-n] == '\\' {
		n++
	}
	return n
}

func trimEscape(t []byte, a, e int) int {
	for e > a && isBlank(t[e-1]) {
		e--
	}
	return e
}

// follows returns the byte after the value and its quote.
func follows(t []byte, e int, quoted bool) byte {
	if quoted {
		e++
	}
	if e < len(t) {
		return t[e]
	}
	return '\n'
}

// tight reports whether no blank stands between name and value: env and
// connection strings, not code or prose.
func tight(t []byte, ke, vs int) bool {
	return bytes.IndexByte(t[ke:vs], ' ') < 0 && bytes.IndexByte(t[ke:vs], '\t') < 0
}

var schemes = wordSet("bearer basic token negotiate ntlm digest apikey")

func schemeWord(v []byte) bool { return len(v) < 12 && schemes[strings.ToLower(string(v))] }

// afterScheme returns the length of what follows "Bearer " in a quoted value.
func afterScheme(v []byte) (int, bool) {
	i := bytes.IndexByte(v, ' ')
	if i < 0 || !schemeWord(v[:i]) {
		return 0, false
	}
	rest := bytes.TrimLeft(v[i:], " ")
	return len(rest), true
}
