// Package ipcserver answers the local socket's calls over a small Backend that
// the daemon implements. It decides who may call (the peer's uid, a person's
// calls) and how answers look on the wire; it stores nothing, knows no rule
// about premises and never looks at the chain's entries beyond kind and seq.
package ipcserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ledger/lemma"
)

// What a Backend may return; wrapped with the reason a person can act on. Any
// other error is a 500. A *ipc.Problem goes out as it is.
var (
	ErrNotFound    = errors.New("not found")     // 404
	ErrInvalid     = errors.New("not valid")     // 422: the request makes no sense here
	ErrConflict    = errors.New("conflict")      // 409: it changed meanwhile, or was already done
	ErrRefused     = errors.New("refused")       // 403
	ErrUnavailable = errors.New("not available") // 503: try again
)

// Backend is what the daemon gives the socket. Lists come newest or smallest id
// first as the daemon likes, with AsOfSeq taken before the first row is read,
// so that a watcher starting there misses nothing. Limits arrive already
// bounded to 1…ipc.MaxLimit. Every method is safe for concurrent use.
type Backend interface {
	Keys

	Status(ctx context.Context) (ipc.Status, error)

	// Watch yields entries after since (nil: only those appended from now on)
	// until ctx ends, without a gap between replay and live. It may block its
	// caller, never the writer. ipc.Entry converts from chain.Entry.
	Watch(ctx context.Context, since *uint64) iter.Seq2[ipc.Entry, error]
	// Head is the sequence number of the newest entry.
	Head(ctx context.Context) (uint64, error)
	// Entries yields up to limit entries from seq on (inclusive).
	Entries(ctx context.Context, from uint64, limit int) (ipc.List[ipc.Entry], error)
	// Checkpoint is the newest signed checkpoint.
	Checkpoint(ctx context.Context) ([]byte, error)
	// Verify checks the live log; progress may be called often, from any goroutine.
	Verify(ctx context.Context, progress func(done, total uint64)) (ipc.Verification, error)
	// Export writes the whole log as a tar; what fails after the first byte leaves
	// it without its end.
	Export(ctx context.Context, w io.Writer) error
	// Backup writes a copy of the ledger's file as of now; what fails after the
	// first byte leaves it without its end.
	Backup(ctx context.Context, w io.Writer) error
	// LedgerSize is what the ledger takes of the disk.
	LedgerSize(ctx context.Context) (ipc.LedgerSize, error)
	// Proof is the proof that an entry is in the log.
	Proof(ctx context.Context, seq uint64) ([]byte, error)
	// AuditKeys are the log's public keys, a line each.
	AuditKeys(ctx context.Context) ([]byte, error)
	// Blob is a stored, redacted blob by its SHA-256 in hex.
	Blob(ctx context.Context, sum string) ([]byte, error)

	Facts(ctx context.Context, q ipc.FactQuery) (ipc.List[lemma.Fact], error)
	Fact(ctx context.Context, id string) (lemma.Fact, error)
	Holds(ctx context.Context, q ipc.HoldQuery) (ipc.List[lemma.Hold], error)
	Hold(ctx context.Context, id string) (lemma.Hold, error)
	// AnswerHold takes the answer to all items of a hold; id may be the end of
	// one. The first answer wins: ErrConflict says who was first, when and where.
	AnswerHold(ctx context.Context, id string, a ipc.HoldAnswer, by lemma.Answerer) (lemma.Hold, error)
	// RevokeAnswer takes back the answers to items of a hold, and what came of them.
	RevokeAnswer(ctx context.Context, id string, r ipc.Revocation, by lemma.Answerer) ([]lemma.Hold, error)
	// Tell records a fact that a person states.
	Tell(ctx context.Context, t ipc.Tell, by lemma.Answerer) (lemma.Fact, error)
	// InvalidateFact withdraws an active fact.
	InvalidateFact(ctx context.Context, id, reason string, by lemma.Answerer) (lemma.Fact, error)
	// Knowledge lists it by age, or as q.Text ranks it.
	Knowledge(ctx context.Context, q ipc.KnowledgeQuery) (ipc.List[lemma.Knowledge], error)
	KnowledgePiece(ctx context.Context, id string) (lemma.Knowledge, error)
	// ChangeKnowledge makes all changes or none: ErrConflict when one of the pieces
	// is not what the person saw any more.
	ChangeKnowledge(ctx context.Context, e ipc.KnowledgeEdit, by lemma.Answerer) (ipc.KnowledgeChanged, error)
	Turns(ctx context.Context, q ipc.TurnQuery) (ipc.List[ipc.Turn], error)
	Turn(ctx context.Context, id string) (ipc.TurnDetail, error)
	// ForgetTurn drops the request that was kept of a turn; ErrConflict when none is.
	ForgetTurn(ctx context.Context, id string, by lemma.Answerer) (ipc.Forgotten, error)

	Sensors(ctx context.Context, q ipc.SensorQuery) (ipc.List[ipc.Sensor], error)
	SensorDiff(ctx context.Context, id, project string) (ipc.SensorDiff, error)
	Packs(ctx context.Context) (ipc.List[ipc.Pack], error)
	// TrySensor runs one. by is set exactly when t.Draft is: a person asked.
	TrySensor(ctx context.Context, id string, t ipc.SensorTry, by *lemma.Answerer) (ipc.SensorTried, error)
	// ApproveSensors pins all or none; ErrConflict when a hash is not the file's any more.
	ApproveSensors(ctx context.Context, a ipc.SensorApproval, by lemma.Answerer) (ipc.SensorsApproved, error)

	Projects(ctx context.Context) (ipc.List[ipc.Project], error)
	// AddProject registers p.Root (p.Name empty: its base name) and returns it as stored.
	AddProject(ctx context.Context, p ipc.Project, by lemma.Answerer) (ipc.Project, error)
	RemoveProject(ctx context.Context, name string, by lemma.Answerer) error

	// Decide asks the action gate about an action and records what it said before
	// it returns. The decision is JSON as daemon/action has it.
	Decide(ctx context.Context, a ipc.Action) (json.RawMessage, error)
	// Warmup loads the model that measures meaning; ErrConflict where none is set up.
	Warmup(ctx context.Context) (ipc.Warmup, error)

	Config(ctx context.Context) (ipc.Config, error)
	// ApproveConfig takes the pending configuration if its hash is this one.
	ApproveConfig(ctx context.Context, a ipc.ConfigApproval, by lemma.Answerer) (ipc.Config, error)
}

// Peer is the process at the other end of a connection.
type Peer struct {
	UID int
	PID int
}

// PeerFunc finds the peer of a connection.
type PeerFunc func(*net.UnixConn) (Peer, error)

// PersonFunc says which person is behind a connection. Its error is shown to
// the caller: it says why this is not a person's call, and how to make it one.
type PersonFunc func(*net.UnixConn) (lemma.Answerer, error)
