package action

import (
	"crypto/sha256"
	"encoding/hex"
)

// Policy says which rules are in force. It does not change once it is made.
type Policy struct {
	fingerprint string
}

// Default is the built-in policy. It needs no file.
func Default() *Policy {
	sum := sha256.Sum256([]byte(Rules))
	return &Policy{fingerprint: hex.EncodeToString(sum[:])}
}

// Fingerprint is the SHA-256 of the policy in its canonical form, hex.
func (p *Policy) Fingerprint() string { return p.fingerprint }
