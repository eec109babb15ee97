package ipc

import "fmt"

// ProblemType is the media type of every error answer (RFC 9457).
const ProblemType = "application/problem+json"

// Problem is an error answer. A Backend may return one itself when it wants a
// particular status or hint.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Hint   string `json:"hint,omitempty"` // what to do about it
}

func (p *Problem) Error() string {
	switch {
	case p.Detail == "":
		return p.Title
	case p.Title == "":
		return p.Detail
	}
	return fmt.Sprintf("%s: %s", p.Title, p.Detail)
}
