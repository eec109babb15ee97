package wire

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Complete fills in what a call's arguments are worth: Broken when they are no
// whole JSON object. Duplicate names make the call unreadable, since the agent
// may take another value than the one that was ruled on.
func (c *Call) Complete() error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(c.Args), jsontext.AllowInvalidUTF8(true))
	v, err := dec.ReadValue()
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return Unreadablef("duplicate key in the arguments of %s", excerpt(c.Name))
	}
	if err == nil && v.Kind() == '{' {
		_, err = dec.ReadToken()
		c.Broken = !errors.Is(err, io.EOF)
		return nil
	}
	c.Broken = true
	return nil
}
