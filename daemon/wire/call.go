package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"

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

// structural are the member names of answers that say what a client does.
var structural = [...]string{
	"choices", "message", "delta", "tool_calls", "function_call", "function", "custom", "name", "arguments", "input", "type", "content",
	"content_block", "partial_json", "response", "output", "item", "call_id", "action", "actions", "operation", "namespace", "output_index", "item_id",
}

// Disguised reports a member's name that a reader which ignores case takes for
// another: such a client would act on something that was not ruled on.
func Disguised(name string) bool {
	odd := false
	for i := 0; i < len(name) && !odd; i++ {
		odd = name[i] >= 'A' && name[i] <= 'Z' || name[i] >= 0x80
	}
	if !odd {
		return false
	}
	for _, s := range structural {
		if strings.EqualFold(name, s) {
			return true
		}
	}
	return false
}

// Plain is a name without case and joining signs: tool_call, toolCall and
// Tool-Call are one.
func Plain(name string) string { return joiners.Replace(strings.ToLower(name)) }

var joiners = strings.NewReplacer("_", "", "-", "", ".", "")

// DisguisedIn names a disguised member, "" when there is none.
func DisguisedIn(members []Member) string {
	for _, m := range members {
		if Disguised(m.Name) {
			return m.Name
		}
	}
	return ""
}
