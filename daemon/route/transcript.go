package route

import "gettier.dev/gettierd/daemon/wire"

// Speaker is who a stretch of a history comes from.
type Speaker string

const (
	Person Speaker = "person" // typed by a person
	Harness Speaker = "client" // written by the client: wrappers, attachments, summaries
	Model  Speaker = "model"
	Tool   Speaker = "tool"
)

// Utterance is one stretch of a history.
type Utterance struct {
	By      Speaker
	Item    int
	Text    string
	CallID  string
	Name    string // tool's name, of a call and of its result
	Args    []byte // of a call, and of the call that a result answers
	IsError bool
}

// Transcript tells a history by speaker, in order. In a sub-agent's
// conversation the first prompt is the model's.
func Transcript(r *wire.Request, rt Route) []Utterance { return nil }
