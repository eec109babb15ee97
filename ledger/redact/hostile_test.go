package redact

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
)

// Text is written by models and programs that may want to keep us busy: no
// repetition makes the work grow faster than the text.
func TestHostileRepetition(t *testing.T) {
	if testing.Short() {
		t.Skip("reads megabytes")
	}
	e := New()
	// What grew with the square took minutes, so the bound can be wide enough
	// for slow machines and the race detector.
	const bound = 20 * time.Second
	for _, unit := range []string{
		"a://", "a://b:c@d/", "-eyJ", "-eyJabcdefgh.", "token=", "token=a1,", "password:", "'password','", "bearer=", "Bearer ", "cookie:", "cookie:sid=1;", "kind: Secret\n", "kind: Secret\ndata:\n a: b\n",
		"-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "-u a:", "sk-", "SK", "s.", "xoxb-1", "mysql -p", "machine a login b ", "identified by ", "[redacted:", "[redacted:password]", "YWJj", "{\"a\":\"", "aws", "thin:a/", "$6$", "password=\\\"",
	} {
		text := []byte(strings.Repeat(unit, (64<<10)/len(unit)))
		start := time.Now()
		e.Bytes(text)
		e.JSON(text)
		if took := time.Since(start); took > bound {
			t.Errorf("%q repeated: %v for twice 64 KiB", unit, took)
		}
	}
}

// Hashes, ids and keys of our own entries are no secrets.
func TestBodiesPass(t *testing.T) {
	e := New()
	h := random(64, lower)
	id := "t_" + random(26, "0123456789abcdefghjkmnpqrstvwxyz")
	for _, b := range []lemma.Body{
		lemma.TurnOpened{Contract: "0.9", Principal: lemma.Principal{KeyID: "k1", User: "u"}, Conversation: h, Key: h, Scope: "project:shop", RequestBlob: h, Prompt: "raise the token bucket: 30 per minute, password reset stays"},
		lemma.TurnInjected{BlockBlob: h, Anchor: h, Facts: []string{"f_" + id[2:]}},
		lemma.SensorInvoked{Invocation: lemma.Invocation{ID: id, Params: map[string]string{"conf": "/etc/nginx/nginx.conf"}, Argv: []string{"nginx", "-T", "-c", "/etc/nginx/nginx.conf"}, OutputHash: h, OutputBlob: h, OriginMAC: h, RegistryVersion: h}},
		lemma.ClaimJudged{ClaimID: h, TopicID: h, Claim: "the session token lives in redis", Key: "client_max_body_size", Measured: "1m"},
		lemma.ActionDecided{ActionHash: h, Tool: "Bash", Summary: "git push origin main"},
		lemma.ChainOpened{LogKey: h, Origin: "gettier.dev/log/" + h[:16], Version: "v0.1.0"},
		lemma.TurnClosed{Timings: map[string]int64{"declare": 1200}, UsageOurs: lemma.Usage{Input: 12345}},
	} {
		raw, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		if out, hits := e.JSON(raw); len(hits) > 0 {
			t.Errorf("%s: %v: %s", b.Kind(), hits, out)
		}
	}
}
