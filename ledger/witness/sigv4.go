package witness

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// sign adds AWS Signature Version 4 for a service to a request whose body has this
// SHA-256 in hex. All headers that are set count, and the host. Source: "Create a
// signed AWS API request" of the IAM user guide, and for S3 "Signature
// Calculations for the Authorization Header".
func (a Access) sign(r *http.Request, service, payload string, now time.Time) {
	stamp := now.UTC().Format("20060102T150405Z")
	r.Header.Set("X-Amz-Date", stamp)
	names := []string{"host"}
	values := map[string]string{"host": r.Host}
	if r.Host == "" {
		values["host"] = r.URL.Host
	}
	for name, vs := range r.Header {
		low := strings.ToLower(name)
		names = append(names, low)
		trimmed := make([]string, len(vs))
		for i, v := range vs {
			trimmed[i] = strings.Join(strings.Fields(v), " ")
		}
		values[low] = strings.Join(trimmed, ",")
	}
	slices.Sort(names)
	var headers strings.Builder
	for _, n := range names {
		headers.WriteString(n + ":" + values[n] + "\n")
	}
	signed := strings.Join(names, ";")
	path := encoded(r.URL.Path, true)
	if path == "" {
		path = "/"
	}
	canonical := strings.Join([]string{r.Method, path, canonicalQuery(r), headers.String(), signed, payload}, "\n")
	scope := stamp[:8] + "/" + a.Region + "/" + service + "/aws4_request"
	sum := sha256.Sum256([]byte(canonical))
	toSign := "AWS4-HMAC-SHA256\n" + stamp + "\n" + scope + "\n" + hex.EncodeToString(sum[:])
	key := []byte("AWS4" + a.Secret)
	for _, part := range []string{stamp[:8], a.Region, service, "aws4_request", toSign} {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(part))
		key = m.Sum(nil)
	}
	r.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%x", a.ID, scope, signed, key))
}

// canonicalQuery sorts the parameters by their encoded names and values.
func canonicalQuery(r *http.Request) string {
	var out []string
	for name, vs := range r.URL.Query() {
		for _, v := range vs {
			out = append(out, encoded(name, false)+"="+encoded(v, false))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "&")
}

// encoded is RFC 3986 with every byte but the unreserved ones as %XX, and slashes
// as they are in paths.
func encoded(s string, path bool) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0, path && c == '/':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
