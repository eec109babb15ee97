package redact

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// url finds credentials before the @ of a URL. The password ends at the last
// @ that a host follows, since people do not escape what they should.
func (s *scan) url(start, end int) {
	t := s.text
	if start == 0 || !isAlnum(t[start-1]) {
		return
	}
	if !s.urls.enter(end) {
		return
	}
	stop, slash := end, -1
	for stop < len(t) && stop-end < 2048 {
		c := t[stop]
		if isBlank(c) || c == '"' || c == '\'' || c == '`' || c == '<' || c == '>' || c == '\\' {
			break
		}
		if slash < 0 && (c == '/' || c == '?' || c == '#') {
			slash = stop
		}
		stop++
	}
	s.urls.left(stop)
	auth := stop
	if slash >= 0 {
		auth = slash
	}
	at := bytes.LastIndexByte(t[end:auth], '@')
	if at < 0 {
		// The password itself may hold / ? or #: then a colon stands before
		// them, no port number, and a host follows a later @.
		colon := bytes.IndexByte(t[end:auth], ':')
		if slash < 0 || colon < 0 || t[slash] == '/' && end+colon+1 < auth && allBytes(t[end+colon+1:auth], isDigit) {
			return
		}
		at = bytes.LastIndexByte(t[end:stop], '@')
		if at < 0 || !hostAhead(t[end+at+1:stop]) {
			return
		}
	}
	info := t[end : end+at]
	colon := bytes.IndexByte(info, ':')
	if colon < 0 {
		// https://TOKEN@host
		if len(info) >= 16 && digitsIn(info) > 0 && !placeholder(info) && !wordsWithNumber(info) && entropy(info) >= 3.2 {
			s.add(end, end+at, "url-userinfo")
		}
		return
	}
	if info[0] == '[' {
		return // scheme://[user:password@]host describes the form
	}
	if pw := info[colon+1:]; len(pw) > 0 && !placeholder(pw) {
		s.add(end+colon+1, end+at, "url-userinfo")
	} else if len(pw) == 0 && len(info) > 17 && telling(info) {
		s.add(end, end+colon, "url-userinfo") // TOKEN:@host
	} else if strings.EqualFold(string(pw), "x-oauth-basic") {
		s.add(end, end+colon, "url-userinfo")
	}
}

func hostAhead(t []byte) bool {
	i := 0
	for i < len(t) && (isAlnum(t[i]) || t[i] == '.' || t[i] == '-') {
		i++
	}
	if i == 0 {
		return false
	}
	return i == len(t) || t[i] == ':' || t[i] == '/' || t[i] == '?' || t[i] == ',' || t[i] == ';'
}

// authorization finds what follows a scheme, with or without its header.
func (s *scan) authorization(start, end int) {
	t := s.text
	word := strings.ToLower(string(t[start:end]))
	if start > 0 && (isAlnum(t[start-1]) && word != "bearer" || t[start-1] == '_') {
		return
	}
	i := end
	header := word == "authorization"
	if header {
		for n := 0; n < 6 && i < len(t) && (t[i] == '"' || t[i] == '\'' || t[i] == '\\' || t[i] == ':' || t[i] == '=' || t[i] == ' ' || t[i] == '\t' || t[i] == ','); n++ {
			i++
		}
		if !bytes.ContainsAny(t[end:i], ":=,") {
			return
		}
		ss := i
		for i < len(t) && (isAlpha(t[i]) || t[i] == '-') {
			i++
		}
		scheme := strings.ToLower(string(t[ss:i]))
		switch {
		case scheme == "bearer" || scheme == "basic" || scheme == "negotiate":
			return // those have keywords of their own and come next
		case (scheme == "token" || scheme == "apikey" || scheme == "key" || scheme == "ntlm" || scheme == "api-key") && i < len(t) && t[i] == ' ':
		case i < len(t) && t[i] == ' ':
			return // a scheme we do not know, or prose
		default:
			i = ss // the bare credential
		}
	} else if word == "bearer" && (i >= len(t) || t[i] != ' ' && t[i] != ':' && t[i] != '=') {
		return
	}
	for n := 0; n < 4 && i < len(t) && (t[i] == ' ' || t[i] == ':' || t[i] == '=' || header && (t[i] == '"' || t[i] == '\'')); n++ {
		i++
	}
	if !s.auth.enter(i) {
		return
	}
	e := i
	for e < len(t) && e-i < valueMost && (isAlnum(t[e]) || strings.IndexByte("-._~+/=:|!@#$%^&*", t[e]) >= 0) {
		e++
	}
	s.auth.left(e)
	for e > i && (t[e-1] == '.' || t[e-1] == ':' || t[e-1] == ',') {
		e--
	}
	v := t[i:e]
	if len(v) < 6 || placeholder(v) || v[0] == '&' || e < len(t) && t[e] == '(' || bytes.HasPrefix(bytes.ToLower(v), []byte("aws4-hmac")) {
		return
	}
	named := header || precededBy(t, start, "authorization")
	letters, digits, others, _ := kinds(v)
	switch word {
	case "basic ", "negotiate ":
		if plain, ok := decode(v); ok && (word == "negotiate " && len(v) >= 24 && digits > 0 || bytes.IndexByte(plain, ':') > 0 && printable(plain)) {
			s.add(i, e, map[bool]string{true: "basic-auth", false: "authorization"}[word == "basic "])
		} else if named && len(v) >= 8 && digits > 0 {
			s.add(i, e, "basic-auth")
		}
		return
	}
	if named {
		if digits > 0 || others > 0 && letters > 0 && len(v) >= 8 && !identifierLike(v) || len(v) >= 20 && bothCases(v) && others == 0 {
			s.add(i, e, "authorization")
		}
		return
	}
	if word == "bearer" && start > 0 && isAlnum(t[start-1]) && digits == 0 {
		return // the end of a longer name
	}
	if len(v) >= 16 && digits > 0 && letters > 0 && entropy(v) >= 3 && !wordsWithNumber(v) || len(v) >= 24 && bothCases(v) && entropy(v) >= 3.8 && !memberLike(v) && (digits > 0 || scrambled(v)) {
		s.add(i, e, "authorization")
	}
}

func precededBy(t []byte, at int, word string) bool {
	lo := max(0, at-len(word)-8)
	return strings.Contains(strings.ToLower(string(t[lo:at])), word)
}

func decode(v []byte) ([]byte, bool) {
	v = bytes.TrimRight(v, "=")
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(v)))
	enc := base64.RawStdEncoding
	if bytes.ContainsAny(v, "-_") {
		enc = base64.RawURLEncoding
	}
	n, err := enc.Decode(out, v)
	return out[:n], err == nil && n > 0
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < 0x20 && c != '\n' && c != '\r' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return len(b) > 0
}

// cookie masks the values of cookies that carry a session.
func (s *scan) cookie(start, end int) {
	t := s.text
	i := end
	if !s.cookies.enter(i) {
		return
	}
	stop := i
	for stop < len(t) && stop-i < valueMost && t[stop] != '\n' && t[stop] != '\r' {
		stop++
	}
	s.cookies.left(stop)
	for i < stop {
		eq := bytes.IndexByte(t[i:stop], '=')
		if eq < 0 {
			return
		}
		name := bytes.Trim(t[i:i+eq], " \"';:,")
		a := i + eq + 1
		b := a
		for b < stop && t[b] != ';' && t[b] != ' ' && t[b] != '"' && t[b] != '\'' && t[b] != '\\' {
			b++
		}
		if v := t[a:b]; sessionCookie(name) && len(v) >= 8 && !placeholder(v) && !plainWords[strings.ToLower(string(v))] {
			s.add(a, b, "cookie")
		}
		i = b + 1
	}
}

func sessionCookie(name []byte) bool {
	low := strings.ToLower(string(name))
	for _, w := range []string{"sess", "sid", "token", "auth", "jwt", "csrf", "xsrf", "remember", "secret", "login"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// dataSource finds the password of user:password@tcp(host:port)/db, as Go's
// database drivers spell a source.
func (s *scan) dataSource(start, _ int) {
	t := s.text
	a := start
	for a > 0 && start-a < 512 && !isBlank(t[a-1]) && t[a-1] != '"' && t[a-1] != '\'' && t[a-1] != '`' {
		a--
	}
	colon := bytes.IndexByte(t[a:start], ':')
	if colon <= 0 || !allBytes(t[a+colon-1:a+colon], isWord) {
		return
	}
	if pw := t[a+colon+1 : start]; len(pw) > 0 && !placeholder(pw) {
		s.add(a+colon+1, start, "url-userinfo")
	}
}

// passwordFile reads lines of host:port:database:user:password.
func (s *scan) passwordFile(start, end int) {
	t := s.text
	a := start
	for a > 0 && start-a < 256 && t[a-1] != '\n' {
		if a--; isBlank(t[a]) || t[a] == ':' || t[a] == '/' {
			return
		}
	}
	i := end
	for field := 0; field < 2; field++ { // database, user
		b := i
		for i < len(t) && i-b < 128 && t[i] != ':' && !isBlank(t[i]) {
			i++
		}
		if i == b || i >= len(t) || t[i] != ':' {
			return
		}
		i++
	}
	e := i
	for e < len(t) && e-i < 512 && !isBlank(t[e]) {
		e++
	}
	if pw := t[i:e]; a < start && len(pw) >= 3 && !placeholder(pw) {
		s.add(i, e, "password")
	}
}

// userFlag reads -u user:password as curl and its kin take it. Containers and
// file owners use the same flag for uid:gid and user:group.
func (s *scan) userFlag(start, end int) {
	t := s.text
	if start > 0 && !isBlank(t[start-1]) && t[start-1] != '"' && t[start-1] != '\'' && t[start-1] != '[' {
		return
	}
	i := end
	if i < len(t) && (t[i] == '"' || t[i] == '\'') {
		// An element of a list: "-u", "user:password".
		own := t[i]
		if start == 0 || t[start-1] != own {
			return
		}
		i = skipBlank(t, i+1)
		if i >= len(t) || t[i] != ',' {
			return
		}
		i = skipBlank(t, i+1)
		if i >= len(t) || t[i] != own {
			return
		}
	} else if i < len(t) && (t[i] == ' ' || t[i] == '=') {
		i = skipBlank(t, i+1)
	}
	if i >= len(t) {
		return
	}
	var q byte
	if t[i] == '"' || t[i] == '\'' {
		q = t[i]
		i++
	}
	if !s.users.enter(i) {
		return
	}
	colon, e := -1, i
	for e < len(t) && e-i < 512 && t[e] != '\n' {
		if q != 0 && t[e] == q || q == 0 && (isBlank(t[e]) || t[e] == '"' || t[e] == '\'') {
			break
		}
		if t[e] == ':' && colon < 0 {
			colon = e
		}
		e++
	}
	s.users.left(e)
	if colon < 0 || colon == i && q == 0 {
		return
	}
	user, pw := t[i:colon], t[colon+1:e]
	if len(pw) < 2 || placeholder(pw) || allBytes(pw, isDigit) && allBytes(user, isDigit) || bytes.Equal(user, pw) || bytes.IndexByte(user, '/') >= 0 || bytes.HasPrefix(pw, []byte("//")) {
		return
	}
	line := t[max(0, start-400):start]
	if n := bytes.LastIndexByte(line, '\n'); n >= 0 {
		line = line[n:]
	}
	for _, w := range []string{"docker", "podman", "kubectl", "compose", "chown", "install ", "nerdctl", "sudo -u", "crictl"} {
		if bytes.Contains(line, []byte(w)) {
			return
		}
	}
	if !bytes.Contains(line, []byte("curl")) && digitsIn(pw) == 0 && identifierLike(pw) && len(pw) < 12 {
		return
	}
	s.add(colon+1, e, "user-flag")
}

func digitsIn(v []byte) int {
	_, d, _, _ := kinds(v)
	return d
}

// pem takes the body of a private key block; the frame stays, so that people
// see what was there. A block without its end is taken to the last line that
// looks like base64.
func (s *scan) pem(start, end int) {
	t := s.text
	stop := min(len(t), end+96)
	head := bytes.Index(t[end:stop], []byte("-----"))
	if head < 0 {
		return
	}
	label := strings.ToUpper(string(t[end : end+head]))
	if !strings.Contains(label, "PRIVATE KEY") {
		return
	}
	a := end + head + 5
	if !s.pems.enter(a) {
		return
	}
	b := a
	for b < len(t) && b-a < 64<<10 {
		c := t[b]
		if c == '-' && bytes.HasPrefix(t[b:], []byte("-----")) {
			break
		}
		if !isAlnum(c) && !isBlank(c) && strings.IndexByte("+/=\\,:-;\"'()", c) < 0 {
			break
		}
		b++
	}
	s.pems.left(b)
	closed := bytes.HasPrefix(t[b:min(len(t), b+8)], []byte("-----"))
	if !closed {
		// Text may follow: only lines that are all base64 count.
		b = base64Lines(t, a, b)
	}
	for a < b && (isBlank(t[a]) || t[a] == '\\' && a+1 < b && (t[a+1] == 'n' || t[a+1] == 'r')) {
		if t[a] == '\\' {
			a++
		}
		a++
	}
	for b > a && (isBlank(t[b-1]) || t[b-1] == '"' || t[b-1] == '\'' || t[b-1] == ',') {
		b--
	}
	for b-2 >= a && t[b-2] == '\\' && (t[b-1] == 'n' || t[b-1] == 'r') {
		b -= 2
	}
	if b-a < 24 || placeholder(t[a:b]) {
		return
	}
	s.add(a, b, "private-key")
}

func base64Lines(t []byte, a, b int) int {
	end := a
	for i := a; i < b; {
		j := i
		for j < b && t[j] != '\n' {
			j++
		}
		line := bytes.TrimSpace(t[i:j])
		if len(line) > 0 {
			if !allBytes(line, func(c byte) bool { return isAlnum(c) || strings.IndexByte("+/=\\", c) >= 0 }) || len(line) < 16 && j < b {
				break
			}
			end = j
		}
		i = j + 1
	}
	return end
}

// manifestMost is how far around its kind the data of a manifest may stand.
const manifestMost = 64 << 10

// kubernetesSecret masks the data of a manifest of kind Secret.
func (s *scan) kubernetesSecret(_, end int) {
	t := s.text
	i := end
	for i < len(t) && (t[i] == ' ' || t[i] == '"' || t[i] == '\'') {
		i++
	}
	if i+6 > len(t) || !bytes.EqualFold(t[i:i+6], []byte("secret")) || i+6 < len(t) && isWord(t[i+6]) {
		return
	}
	// The document: between --- lines, and not without end.
	if i < s.manifests.end {
		return // read already
	}
	lo, hi := max(0, i-manifestMost), min(len(t), i+manifestMost)
	if n := bytes.LastIndex(t[lo:i], []byte("\n---")); n >= 0 {
		lo += n
	}
	if n := bytes.Index(t[i:hi], []byte("\n---")); n >= 0 {
		hi = i + n
	}
	s.manifests.left(hi)
	for at := lo; at < hi; {
		line, next := cutLine(t, at, hi)
		at = next
		name := bytes.TrimSpace(line)
		if !bytes.Equal(name, []byte("data:")) && !bytes.Equal(name, []byte("stringData:")) {
			continue
		}
		depth := len(line) - len(bytes.TrimLeft(line, " \t"))
		for at < hi {
			row, next := cutLine(t, at, hi)
			trimmed := bytes.TrimLeft(row, " \t")
			if len(bytes.TrimSpace(row)) > 0 && len(row)-len(trimmed) <= depth {
				break
			}
			if c := bytes.IndexByte(row, ':'); c > 0 {
				v := bytes.Trim(row[c+1:], " \t\r")
				va := at + c + 1 + bytes.Index(row[c+1:], v)
				vb := va + len(v)
				if len(v) >= 2 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
					va, vb = va+1, vb-1
				}
				if w := t[va:vb]; len(w) >= 4 && w[0] != '|' && w[0] != '>' && w[0] != '{' && !placeholder(w) {
					s.add(va, vb, "kubernetes-secret")
				}
			} else if v := bytes.TrimSpace(row); len(v) >= 8 && allBytes(v, func(c byte) bool { return isAlnum(c) || c == '+' || c == '/' || c == '=' }) {
				va := at + bytes.Index(row, v)
				s.add(va, va+len(v), "kubernetes-secret")
			}
			at = next
		}
	}
}

func cutLine(t []byte, at, hi int) ([]byte, int) {
	if n := bytes.IndexByte(t[at:hi], '\n'); n >= 0 {
		return t[at : at+n], at + n + 1
	}
	return t[at:hi], hi
}
