// Package ipc is the protocol of gettierd's local socket: the wire types that
// daemon and clients share, and a client with a reconnecting event stream.
// PROTOCOL.md says the same in prose. What answers the calls lives in
// ipc/ipcserver; no rule about premises, no storage and no drawing belongs here.
package ipc

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Version is the path prefix of every call.
const Version = "/v1"

// Limits of the protocol; the server cuts a larger wish down to Max.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
	// MaxBody bounds a request's JSON body in bytes.
	MaxBody = 1 << 20
)

// ViaHeader names the surface a call comes from (cli, tui, editor, harness). It
// labels an answer's record, and an event stream of a surface that somebody
// looks at makes holds wait; it grants nothing.
const ViaHeader = "X-Gettier-Via"

// List is one page. A watcher that starts after AsOfSeq misses nothing that is
// newer than the page.
type List[T any] struct {
	AsOfSeq    uint64 `json:"as_of_seq"`
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor,omitempty"`
}

// Page is the part of a query that every list shares. Zero means the default.
type Page struct {
	Limit  int
	Cursor string
}

// Entry is one entry of the chain. Its JSON is the canonical form, byte for
// byte as the log hashes it, as long as Body is canonical.
type Entry struct {
	V      int
	Seq    uint64
	TS     string
	Kind   string
	Tenant string
	Turn   string
	Prev   string
	Body   json.RawMessage
}

// wireEntry holds the members in canonical (sorted) order.
type wireEntry struct {
	Body   json.RawMessage `json:"body"`
	Kind   string          `json:"kind"`
	Prev   string          `json:"prev"`
	Seq    uint64          `json:"seq"`
	Tenant string          `json:"tenant"`
	TS     string          `json:"ts"`
	Turn   string          `json:"turn,omitempty"`
	V      int             `json:"v"`
}

// MarshalJSON writes the members in canonical order, without HTML escapes.
func (e Entry) MarshalJSON() ([]byte, error) {
	return Marshal(wireEntry{e.Body, e.Kind, e.Prev, e.Seq, e.Tenant, e.TS, e.Turn, e.V})
}

// UnmarshalJSON keeps the body's bytes as they came.
func (e *Entry) UnmarshalJSON(b []byte) error {
	var w wireEntry
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("read entry: %w", err)
	}
	*e = Entry{w.V, w.Seq, w.TS, w.Kind, w.Tenant, w.Turn, w.Prev, w.Body}
	return nil
}

// Marshal is json.Marshal without HTML escapes: an entry's bytes must survive,
// and json.Marshal would rewrite <, > and & inside them.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
