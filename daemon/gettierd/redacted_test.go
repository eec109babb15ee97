package main

import (
	"bytes"
	"errors"
	"log"
	"log/slog"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/redact"
)

// TestLogIsRedacted: neither our own lines nor those of the standard library
// repeat a secret that an upstream put into an error.
func TestLogIsRedacted(t *testing.T) {
	secret := "ghp_" + "x7Kq2Rv9Lm4Np8Ws3Tz6" + "Yb1Hc5Jd0Fg8Qa2E"
	var b bytes.Buffer
	before := slog.Default()
	w, flags := log.Writer(), log.Flags()
	t.Cleanup(func() { slog.SetDefault(before); log.SetOutput(w); log.SetFlags(flags) })
	logger := slog.New(slog.NewTextHandler(redacted{&b, redact.New()}, nil))
	slog.SetDefault(logger)
	logger.Warn("turn", "error", errors.New(`an error came: {"message":"bad key `+secret+`"}`).Error())
	log.Printf("Unsolicited response starting with %q", "key "+secret)
	if s := b.String(); strings.Contains(s, secret) || strings.Count(s, "\n") != 2 || !strings.Contains(s, "redacted") {
		t.Error(s)
	}
}
