package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"gettier.dev/gettierd/ipc"
	"gettier.dev/gettierd/ipc/ipcserver"
	"gettier.dev/gettierd/ledger/lemma"
)

// newLedger checks that a daemon with AnswerConn keeps a record of its own: no
// record of a person's may be told what a harness answered. The configuration
// says where the ledger is, so the state directory alone proves nothing.
func (d *Daemon) newLedger() error {
	if d.o.AnswerConn == nil {
		return nil
	}
	path := d.conf.layout().Ledger
	switch _, err := os.Lstat(path); {
	case err == nil:
		return fmt.Errorf("answers over a descriptor: the ledger %s is there already", path)
	case !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("answers over a descriptor: %w", err)
	}
	return nil
}

// harness is who answers over AnswerConn.
func harness(*net.UnixConn) (lemma.Answerer, error) {
	return lemma.Answerer{UID: os.Getuid(), Via: "harness"}, nil
}

// holdsOnly is the API over AnswerConn: holds are answered there, and nothing
// else that is a person's to decide.
type holdsOnly struct{ ipcserver.Backend }

var errHoldsOnly = fmt.Errorf("%w: only holds are answered over this connection", ipcserver.ErrRefused)

func (holdsOnly) Tell(context.Context, ipc.Tell, lemma.Answerer) (lemma.Fact, error) {
	return lemma.Fact{}, errHoldsOnly
}

func (holdsOnly) InvalidateFact(context.Context, string, string, lemma.Answerer) (lemma.Fact, error) {
	return lemma.Fact{}, errHoldsOnly
}

func (holdsOnly) ForgetTurn(context.Context, string, lemma.Answerer) (ipc.Forgotten, error) {
	return ipc.Forgotten{}, errHoldsOnly
}

func (holdsOnly) ChangeKnowledge(context.Context, ipc.KnowledgeEdit, lemma.Answerer) (ipc.KnowledgeChanged, error) {
	return ipc.KnowledgeChanged{}, errHoldsOnly
}

func (h holdsOnly) TrySensor(ctx context.Context, id string, t ipc.SensorTry, by *lemma.Answerer) (ipc.SensorTried, error) {
	if by != nil {
		return ipc.SensorTried{}, errHoldsOnly
	}
	return h.Backend.TrySensor(ctx, id, t, nil)
}

func (holdsOnly) ApproveSensors(context.Context, ipc.SensorApproval, lemma.Answerer) (ipc.SensorsApproved, error) {
	return ipc.SensorsApproved{}, errHoldsOnly
}

func (holdsOnly) AddProject(context.Context, ipc.Project, lemma.Answerer) (ipc.Project, error) {
	return ipc.Project{}, errHoldsOnly
}

func (holdsOnly) RemoveProject(context.Context, string, lemma.Answerer) error { return errHoldsOnly }

func (holdsOnly) RotateLogKey(context.Context, lemma.Answerer) (ipc.KeyRotation, error) {
	return ipc.KeyRotation{}, errHoldsOnly
}

func (holdsOnly) CreateAPIKey(context.Context, ipc.KeyRequest, lemma.Answerer) (ipc.NewAPIKey, error) {
	return ipc.NewAPIKey{}, errHoldsOnly
}

func (holdsOnly) RevokeAPIKey(context.Context, string, lemma.Answerer) error { return errHoldsOnly }

func (holdsOnly) SealKey(context.Context, string, string, lemma.Answerer) (ipc.SealedKey, error) {
	return ipc.SealedKey{}, errHoldsOnly
}

func (holdsOnly) ForgetKey(context.Context, string, lemma.Answerer) error { return errHoldsOnly }

func (holdsOnly) ApproveConfig(context.Context, ipc.ConfigApproval, lemma.Answerer) (ipc.Config, error) {
	return ipc.Config{}, errHoldsOnly
}
