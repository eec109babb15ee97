package redact

import (
	"bytes"
	"slices"
	"strings"
)

// plainWords are values that stand behind secret-sounding keys without being
// secrets: types, states, schema words, prose.
var plainWords = wordSet("string str text number int integer boolean bool true false yes no on off null none nil undefined void required optional any object array varchar char bytes byte " +
	"hidden redacted masked removed omitted filtered sensitive secret secrets token tokens bearer basic digest ntlm negotiate incorrect invalid wrong missing expired empty unset default auto automatic " +
	"enabled disabled valid failed changed updated rotated reset ok here below above see use using the a an is are was not must should may can will for from with when your my this that it its and or if " +
	"scram-sha-256 md5 trust peer ident cert plain oauth oauth2 saml ldap kerberos sha256 sha512 bcrypt argon2 argon2id scrypt pbkdf2 hs256 rs256 es256 input field label button prompt manager reset-password forgot-password " +
	"login logout change create update delete get set new old current test-only unknown n/a na tbd")

// placeholder reports whether v stands for a secret instead of being one.
func placeholder(v []byte) bool {
	if len(v) == 0 {
		return true
	}
	switch v[0] {
	case '$', '<', '{':
		// ${VAR}, $VAR, $(cmd), <your key>, {{ x }}, {0}. A password may begin
		// with one of them too, so the rest has to fit.
		if reference(v) {
			return true
		}
	case '%':
		if len(v) > 2 && v[len(v)-1] == '%' && allBytes(v[1:len(v)-1], isWord) {
			return true
		}
		if len(v) == 2 && isAlpha(v[1]) {
			return true
		}
	case '@':
		if len(v) > 2 && v[len(v)-1] == '@' && allBytes(v[1:len(v)-1], isWord) {
			return true
		}
	case '[':
		if v[len(v)-1] == ']' && allBytes(v[1:len(v)-1], func(c byte) bool { return isWord(c) || c == ' ' || c == '-' || c == '.' }) {
			return true
		}
	}
	if bytes.Contains(v, []byte(markOpen)) && len(markers(v)) > 0 {
		return true // done already
	}
	if bytes.Contains(v, []byte("...")) || bytes.Contains(v, []byte("…")) || bytes.Contains(v, []byte("***")) {
		return true
	}
	if s := strings.ToLower(string(v)); s == "redacted" || s == "<redacted>" || s == "[redacted]" || s == "(redacted)" {
		return true
	}
	if uniform(v) {
		return true
	}
	low := strings.ToLower(string(v[:min(len(v), 128)]))
	for _, p := range []string{"your-", "your_", "your ", "yourpass", "yoursecret", "yourtoken", "yourapi", "yourkey", "<your", "my-secret-", "insert-", "insert_", "replace", "change-me", "change_me", "changeme", "changeit", "placeholder", "example", "dummy", "xxxx", "todo", "fixme", "enter-", "enter_", "enter your"} {
		if strings.HasPrefix(low, p) {
			return true
		}
	}
	for _, p := range []string{"xxxxxxxx", "00000000000", "your_api", "your-api", "_here", "-here", "example_", "placeholder"} {
		if strings.Contains(low, p) {
			return true
		}
	}
	return false
}

// reference reports whether v, which begins with $, < or {, is a variable, a
// template or a slot.
func reference(v []byte) bool {
	switch {
	case bytes.HasPrefix(v, []byte("${")), bytes.HasPrefix(v, []byte("$(")), bytes.HasPrefix(v, []byte("{{")), bytes.HasPrefix(v, []byte("<%")), bytes.HasPrefix(v, []byte("$[")):
		return true
	case v[0] == '$':
		name := v[1:]
		if i := bytes.IndexAny(name, "/.\""); i > 0 {
			name = name[:i] // $dir/private/key.pem
		}
		return len(name) > 0 && (allBytes(name, isWord) && !mixed(name) || name[0] == '$')
	case v[0] == '<':
		return v[len(v)-1] == '>' || bytes.IndexByte(v, '>') < 0 && allBytes(v[1:], func(c byte) bool { return isAlpha(c) || c == '-' || c == '_' })
	}
	return v[len(v)-1] == '}' && len(v) < 40
}

// mixed: digits as well as both cases, as random strings have and variables
// have not.
func mixed(v []byte) bool {
	var d, u, l bool
	for _, c := range v {
		d, u, l = d || isDigit(c), u || isUpper(c), l || isLower(c)
	}
	return d && u && l
}

// uniform: one or two different bytes all along, such as xxxx, **** or ......
func uniform(v []byte) bool {
	if len(v) < 3 {
		return false
	}
	for _, c := range v[1:] {
		if c != v[0] && !(v[0]|0x20 == c|0x20 && isAlpha(c)) {
			return false
		}
	}
	return true
}

func allBytes(v []byte, ok func(byte) bool) bool {
	for _, c := range v {
		if !ok(c) {
			return false
		}
	}
	return true
}

func isDigits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

// literal decides whether v, found behind key, is a secret that is written
// out. Everything that refers to one (a variable, a call, a path, a type) is
// not: taking it away would only hide how the program works.
func literal(key, v []byte, st strength, o op, quoted bool, next byte, tight bool) bool {
	if len(v) < 3 || placeholder(v) {
		return false
	}
	low := strings.ToLower(string(v[:min(len(v), 64)]))
	if plainWords[strings.TrimRight(low, ".,;!")] || strings.EqualFold(string(key), string(v)) {
		return false
	}
	if pathLike(v) || address(low) {
		return false
	}
	letters, digits, others, spaces := kinds(v)
	if bare := strings.ToLower(string(key)); bare == "pass" && (o == opComma || o == opColon && digits == 0) {
		return false // results of tests
	}
	if !quoted {
		// Code: calls, members, subscripts.
		if v[len(v)-1] == '(' || bytes.HasSuffix(v, []byte("()")) || callLike(v) {
			return false
		}
		if digits == 0 && memberLike(v) && !(o == opAssign && tight && capitals(key)) || !tight && codeLike(v) {
			return false
		}
	}
	switch st {
	case strong:
		if spaces > 0 {
			// A sentence: "Password must have 8 characters".
			return quoted && spaces < 4 && (digits > 0 || others > spaces) && o != opComma
		}
		if o == opComma && (digits == 0 || len(v) < 6) && (!constant(key) || capitals(v)) && (identifierLike(v) && !(bothCases(v) && len(v) >= 10 && entropy(v) >= 3)) {
			return false // a list of words more often than a call that sets one
		}
		if !quoted && !tight && digits == 0 && (nameOfSecret(low) || o == opAssign && !scrambled(v) && allBytes(v, func(c byte) bool { return isAlpha(c) || c == '_' || c == '.' })) {
			return false // another variable
		}
		if digits == 0 && others == 0 {
			// Only letters: a variable, a word, or a weak password.
			if !quoted && o == opColon && endOfLine(next) && bytes.ContainsAny(key, "_-.") {
				return len(v) >= 6 && !nameOfSecret(low) // db_password: hunter
			}
			if o == opFlag && bothCases(v) && len(v) >= 8 {
				return !nameOfSecret(low)
			}
			if !quoted && (!tight || next == ')' || next == ',' || o == opColon && !endOfLine(next) || nameOfSecret(low)) {
				return entropy(v) >= 3.5 && len(v) >= 12 && bothCases(v) || len(v) >= 8 && scrambled(v)
			}
			if o == opComma && constant(key) {
				return len(v) >= 4 && !nameOfSecret(low) && !capitals(v)
			}
			if quoted && (o == opColon || o == opComma) && (nameOfSecret(low) || len(v) < 6) {
				return false
			}
			return !nameOfSecret(low)
		}
		if digits == 0 && identifierLike(v) && nameOfSecret(low) {
			return false
		}
		return letters+digits+others >= 3
	case medium:
		if spaces > 0 || len(v) < 8 {
			return false
		}
		if digits == 0 {
			// my-tls-secret, kubernetes.io/tls, user_token, accessTokenProvider:
			// names of things.
			if others > 0 && letters > 0 && (identifierLike(v) || !bothCases(v)) {
				return len(v) >= 12 && entropy(v) >= 3.8 && !identifierLike(v)
			}
			return len(v) >= 10 && scrambled(v) || others > 0 && len(v) >= 14 && bothCases(v) && entropy(v) >= 3.4
		}
		if allDigits := letters == 0 && others == 0; allDigits {
			return quoted && len(v) >= 14 || tight && len(v) >= 14
		}
		if wordsWithNumber(v) {
			return false
		}
		if letters == 0 && o == opColon && !quoted {
			return false
		}
		return entropy(v) >= 2.7
	case weak:
		if spaces > 0 || len(v) < 16 || digits == 0 || letters == 0 || wordsWithNumber(v) {
			return false
		}
		if bytes.ContainsAny(v, ",=") && wordsWithNumber(bytes.TrimRight(v[:bytes.IndexAny(v, ",=")+1], ",=")) || bytes.Count(v, []byte(",")) > 1 {
			return false // varint,1,opt,name=key
		}
		if hexOnly(v) && !mixedHexKey(key) {
			return false
		}
		if bytes.Count(v, []byte(".")) > 1 && alternations(v) <= 4 {
			return false // com.example.v2.name
		}
		return entropy(v) >= 3.3
	}
	return false
}

// capitals: PGPASSWORD, as environments and definitions spell names.
func capitals(key []byte) bool {
	return allBytes(key, func(c byte) bool { return isUpper(c) || isDigit(c) || c == '_' })
}

// constant: capitals with an underscore, which no word of a text has.
func constant(key []byte) bool { return bytes.IndexByte(key, '_') > 0 && capitals(key) }

// mixedHexKey: behind an unclear name a bare hash is more often a digest.
func mixedHexKey(key []byte) bool {
	low := strings.ToLower(string(key))
	for _, w := range []string{"secret", "token", "apikey", "api_key", "private", "password"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// scrambled: the case changes too often for words that are run together.
func scrambled(v []byte) bool {
	n := 0
	for i := 1; i < len(v); i++ {
		if isAlpha(v[i]) && isAlpha(v[i-1]) && isUpper(v[i]) != isUpper(v[i-1]) {
			n++
		}
	}
	return n >= 4 && 3*n >= len(v)
}

func hexOnly(v []byte) bool {
	return allBytes(v, func(c byte) bool { return isHex(c) || c == '-' })
}

func kinds(v []byte) (letters, digits, others, spaces int) {
	for _, c := range v {
		switch {
		case isAlpha(c) || c >= 0x80:
			letters++
		case isDigit(c):
			digits++
		case isBlank(c):
			spaces++
		default:
			others++
		}
	}
	return
}

func endOfLine(c byte) bool {
	return c == '\n' || c == '\r' || c == '"' || c == '\'' || c == '&' || c == ';'
}

func bothCases(v []byte) bool {
	var u, l bool
	for _, c := range v {
		u, l = u || isUpper(c), l || isLower(c)
	}
	return u && l
}

// nameOfSecret: password=user_password, token: accessToken name another
// variable.
func nameOfSecret(low string) bool {
	for _, w := range []string{"password", "passwd", "passphrase", "secret", "token", "apikey", "api_key", "credential", "pwd", "privatekey", "accesskey"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// identifierLike: letters and separators only.
func identifierLike(v []byte) bool {
	return allBytes(v, func(c byte) bool { return isAlpha(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == ':' })
}

// memberLike: a.b, a->b, a::b, a[b], !a.
func memberLike(v []byte) bool {
	dots := 0
	for i, c := range v {
		switch {
		case isWord(c) || c == '!' && i == 0:
		case c == '.' && i > 0 && i+1 < len(v), c == '[' || c == ']' || c == '>' || c == ':' || c == '?':
			dots++
		case c == '-' && i+1 < len(v) && v[i+1] == '>':
		case c == '\'' || c == '"':
		default:
			return false
		}
	}
	return dots > 0
}

// codeLike: a value of a program rather than a literal: a composite, a number
// in hex, an expression in brackets, a variable named after what it holds.
func codeLike(v []byte) bool {
	if v[0] == '(' || bytes.IndexByte(v, '{') >= 0 || bytes.HasPrefix(v, []byte("[]")) || bytes.HasPrefix(v, []byte("map[")) {
		return true
	}
	if i := bytes.IndexAny(v, "[("); i > 0 && isAlpha(v[0]) && allBytes(v[:i], func(c byte) bool { return isWord(c) || c == '.' }) {
		return true
	}
	if bytes.HasPrefix(v, []byte("0x")) && len(v) <= 10 {
		return true
	}
	return isAlpha(v[0]) && allBytes(v, func(c byte) bool { return isWord(c) || c == '.' }) && nameOfSecret(strings.ToLower(string(v)))
}

// callLike: os.Getenv("X"), env('X'), hash(pw).
func callLike(v []byte) bool {
	i := bytes.IndexByte(v, '(')
	return i > 1 && allBytes(v[:i], func(c byte) bool { return isWord(c) || c == '.' || c == ':' || c == '>' || c == '-' || c == '!' }) && isAlpha(v[i-1])
}

func pathLike(v []byte) bool {
	for _, p := range []string{"/", "./", "../", "~/", "C:\\", "file:"} {
		if bytes.HasPrefix(v, []byte(p)) {
			// A base64 secret may begin with a slash.
			return p != "/" || len(v) < 16 || !mixed(v) || !slices.ContainsFunc(bytes.Split(v, []byte("/")), func(part []byte) bool { return len(part) >= 8 && mixed(part) && alternations(part) >= 3 })
		}
	}
	return false
}

// address: a URL without credentials of its own, an ARN, a reference to a vault.
func address(low string) bool {
	for _, p := range []string{"http://", "https://", "arn:", "vault:", "projects/", "ref:", "secretref:", "op://", "sops:", "enc[", "ssm:", "kms:", "env:", "process.env", "os.environ", "system.getenv", "sha256:", "sha512-", "data:"} {
		if strings.HasPrefix(low, p) {
			return true
		}
	}
	return false
}

// wordsWithNumber: nginx-tls-2, step1_token, 2024-01-31, 10.0.0.1, v1beta1:
// words or numbers with separators, as names, dates and addresses are.
func wordsWithNumber(v []byte) bool {
	if len(v) > 40 {
		return false
	}
	run, change := 0, 0
	for i, c := range v {
		if !isAlnum(c) && c != '-' && c != '_' && c != '.' && c != ':' && c != '/' {
			return false
		}
		if isUpper(c) && i > 0 && isAlnum(v[i-1]) && !isUpper(v[i-1]) {
			change++
		}
		if i > 0 && isDigit(c) != isDigit(v[i-1]) && isAlnum(c) && isAlnum(v[i-1]) {
			change++
		}
		if isAlpha(c) {
			run++
		}
	}
	seps := 0
	for _, c := range v {
		if !isAlnum(c) {
			seps++
		}
	}
	return seps > 0 && change <= 1 && len(v)/(seps+1) <= 9
}

// appendLower appends key in lower case; what is not ASCII stays.
func appendLower(to, key []byte) []byte {
	for _, c := range key {
		if isUpper(c) {
			c += 'a' - 'A'
		}
		to = append(to, c)
	}
	return to
}

// segments appends the parts of a name: it is split at _, -, . and where lower case
// meets upper case.
func segments(out []Span, key []byte) []Span {
	at := 0
	for i, c := range key {
		switch {
		case c == '_' || c == '-' || c == '.':
			if i > at {
				out = append(out, Span{at, i})
			}
			at = i + 1
		case i > 0 && isUpper(c) && isLower(key[i-1]):
			out = append(out, Span{at, i})
			at = i
		}
	}
	if len(key) > at {
		out = append(out, Span{at, len(key)})
	}
	return out
}
