package lemma

// Kinds of entries about keys. None of them holds one: an API key stands as its
// SHA-256, an upstream key as what age made of it.
const (
	KKeyRotated Kind = "key.rotated"
	KKeyCreated Kind = "key.created"
	KKeyRevoked Kind = "key.revoked"
	KKeySealed  Kind = "key.sealed"
)

// KeyRotated gives the log its next signing key. Both keys have signed; what
// they sign is in ledger/FORMAT.md.
type KeyRotated struct {
	Contract string `json:"contract"`
	Origin   string `json:"origin"` // of the log, which keeps it
	Old      string `json:"old"`    // hex of the Ed25519 public key
	New      string `json:"new"`
	ByOld    string `json:"by_old"` // signatures in base64
	ByNew    string `json:"by_new"`
	By       string `json:"by"` // who asked for it
}

// KeyCreated makes an API key known. Upstreams and Projects bound what it may
// reach; empty is all of them.
type KeyCreated struct {
	Contract  string   `json:"contract"`
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	SHA256    string   `json:"sha256"` // hex, of the whole key as text
	Scopes    []string `json:"scopes"`
	Upstreams []string `json:"upstreams"`
	Projects  []string `json:"projects"`
	UID       *int     `json:"uid,omitempty"`        // of the peer that may use it; absent is any
	PerMinute int      `json:"per_minute,omitempty"` // requests, 0 is any number
	PerDay    int      `json:"per_day,omitempty"`    // requests of a day in UTC, 0 is any number
	CreatedAt string   `json:"created_at"`
	ExpiresAt string   `json:"expires_at"`
	By        string   `json:"by"`
}

// KeyRevoked ends an API key, or forgets an upstream key that was sealed.
type KeyRevoked struct {
	Contract string `json:"contract"`
	ID       string `json:"id"` // of a KeyCreated, or "upstream:" and the name of a KeySealed
	By       string `json:"by"`
}

// KeySealed keeps an upstream key, encrypted by age for this installation's
// identity. The newest of a name counts.
type KeySealed struct {
	Contract  string `json:"contract"`
	Name      string `json:"name"`
	Recipient string `json:"recipient"` // of age
	Sealed    string `json:"sealed"`    // hex of the age file
	SealedAt  string `json:"sealed_at"`
	By        string `json:"by"`
}

// Kind names the entry.
func (KeyRotated) Kind() Kind { return KKeyRotated }

// Kind names the entry.
func (KeyCreated) Kind() Kind { return KKeyCreated }

// Kind names the entry.
func (KeyRevoked) Kind() Kind { return KKeyRevoked }

// Kind names the entry.
func (KeySealed) Kind() Kind { return KKeySealed }
