package verify

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// keysMax bounds the keys of one log.
const keysMax = 256

// signer is the number of the key that signs a checkpoint of this size.
func (a *audit) signer(size uint64) int {
	i := len(a.since) - 1
	for a.since[i] > size {
		i--
	}
	return i
}

// nextKey judges an entry that announces a key. The tree ends before it.
func (a *audit) nextKey(r *record) {
	n := len(a.since)
	switch why := a.announces(r, n); {
	case why != "":
		a.say(r.seq, r.bundle, "entry %d announces no key: %s", r.seq, why)
	default:
		a.since = append(a.since, r.seq+1)
	}
}

// announces says why the n-th listed key is not the one that r announces, "" when
// it is.
func (a *audit) announces(r *record, n int) string {
	m, ok := texts(r.entry.Body)
	if !ok {
		return "its body cannot be read"
	}
	if n >= len(a.keys) {
		return "no such key is listed"
	}
	before, after := a.keys[n-1], a.keys[n]
	root := a.tree.root()
	text := strings.Join([]string{
		"gettier.dev/log-key-rotation/v1", before.name, fmt.Sprint(r.seq), base64.StdEncoding.EncodeToString(root[:]),
		hex.EncodeToString(before.pub), hex.EncodeToString(after.pub), "",
	}, "\n")
	signed := func(by string, k Key) bool {
		sig, err := base64.StdEncoding.Strict().DecodeString(m[by])
		return err == nil && len(m[by]) == 88 && len(sig) == ed25519.SignatureSize && ed25519.Verify(k.pub, []byte(text), sig)
	}
	switch {
	case m["origin"] != before.name:
		return "it is another log's"
	case m["old"] != hex.EncodeToString(before.pub):
		return "the old key did not sign until here"
	case m["new"] != hex.EncodeToString(after.pub):
		return "it is not the one that is listed next"
	case !signed("by_old", before):
		return "the old key has not signed it"
	case !signed("by_new", after):
		return "the new key has not signed it"
	}
	return ""
}

// texts are the members of an object that are strings without escapes.
func texts(body []byte) (map[string]string, bool) {
	p := parser{src: body}
	if _, err := p.document(nil); err != nil {
		return nil, false
	}
	out := map[string]string{}
	for _, m := range p.top {
		name, value := body[m.start:m.value-1], body[m.value:m.end]
		if len(value) < 2 || value[0] != '"' || strings.Contains(string(value), `\`) {
			continue
		}
		out[strings.Trim(string(name), `"`)] = string(value[1 : len(value)-1])
	}
	return out, true
}

// allKeys: each listed key was announced. Where an entry is wrong, that only
// repeats it.
func (a *audit) allKeys() error {
	if len(a.since) < len(a.keys) && a.r.Count == 0 {
		a.say(0, "keys", "%d keys are listed, the entries announce %d", len(a.keys), len(a.since))
	}
	return nil
}
