package turn

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"gettier.dev/gettierd/daemon/wire"
	"gettier.dev/gettierd/ledger/lemma"
)

// TestCorrectionStandsFirst: however many premises a model declares, what it was
// wrong about is told.
func TestCorrectionStandsFirst(t *testing.T) {
	var v verified
	for i := range 100 {
		v.found = append(v.found, finding{claim: fmt.Sprintf("claim %d %s", i, strings.Repeat("x", 280)), verdict: lemma.Confirmed, sensor: "s", key: "k", measured: "1"})
	}
	v.found = append(v.found, finding{claim: "the wrong one", verdict: lemma.Contradicted, sensor: "s", key: "limit", measured: "1m"})
	b := verificationBlock(v, nil, true, minVerification).text
	if !strings.Contains(b, `"the wrong one"`) || !strings.Contains(b, "→ contradicted") || len(b) > minVerification || !strings.HasSuffix(b, wire.BlockClose) {
		t.Errorf("%d bytes: %s", len(b), b)
	}
}

// TestClaimsAreRedactedInBlocks: a block is kept as it was sent, so what a model
// repeats of a secret does not get into it.
func TestClaimsAreRedactedInBlocks(t *testing.T) {
	r := newRig(t)
	r.Redact = func(s string) string { return strings.ReplaceAll(s, "25 MB", "[redacted]") }
	r.answer = func(_ int, body []byte) (int, string, string) {
		if isDeclare(body) {
			return declareAnswer(wire.Chat, body, declared25)
		}
		if bytes.Contains(body, []byte("→ contradicted")) {
			return 200, "application/json", chatText("corrected")
		}
		return 200, "application/json", chatCall("call1", "shell", `{"command":"sed -i s/1/2/ app.json"}`)
	}
	out, err := r.request(wire.Chat, chatRequest(false, true, user(ticket)))
	if err != nil {
		t.Fatal(err)
	}
	row, err := r.led.Turn(out.headers.Turn)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := r.led.Blocks(row.Conversation)
	if err != nil || len(blocks) != 1 {
		t.Fatalf("%d blocks, %v", len(blocks), err)
	}
	if strings.Contains(blocks[0].Text, "25 MB") || !strings.Contains(blocks[0].Text, "[redacted]") || !strings.Contains(blocks[0].Text, "→ contradicted") {
		t.Error(blocks[0].Text)
	}
}
