package responsesapi

import (
	"strings"

	"gettier.dev/gettierd/daemon/wire"
)

// fields are the members of an item that say what it is. Requests, answers and
// streams share the items, so they are read in one place.
type fields struct {
	kind, role              string
	id, callID              string
	name, namespace         string
	server                  string // server_label, of a tool of an MCP server
	arguments, input        []byte // raw values
	action, operation       []byte
	content, summary, out   []byte
	hasArguments, hasCallID bool
}

// readFields reads an item that has been read as JSON already.
func readFields(raw []byte) fields {
	var f fields
	for _, m := range wire.MembersOf(raw, whole(raw)) {
		f.take(m.Name, raw[m.Value.Start:m.Value.End])
	}
	return f
}

func (f *fields) take(name string, v []byte) {
	if v[0] == 'n' {
		return
	}
	switch name {
	case "type":
		f.kind = text(v)
	case "role":
		f.role = text(v)
	case "id":
		f.id = text(v)
	case "call_id":
		f.callID, f.hasCallID = text(v), true
	case "name":
		f.name = text(v)
	case "namespace":
		f.namespace = text(v)
	case "server_label":
		f.server = text(v)
	case "arguments":
		f.arguments, f.hasArguments = v, true
	case "input":
		f.input = v
	case "action", "actions":
		f.action = v
	case "operation":
		f.operation = v
	case "content":
		f.content = v
	case "summary":
		f.summary = v
	case "output":
		f.out = v
	}
}

// class is what an item of a type is to the gate.
type class string

const (
	classMessage   class = "message"
	classReasoning class = "reasoning"
	classCall      class = "call"   // the client is asked to act
	classOutput    class = "output" // of such a call
	classServer    class = "server" // the provider has acted already
	classOther     class = "other"
)

var classes = map[string]class{
	"message": classMessage, "reasoning": classReasoning,

	"function_call": classCall, "custom_tool_call": classCall, "local_shell_call": classCall, "shell_call": classCall,
	"apply_patch_call": classCall, "computer_call": classCall, "mcp_approval_request": classCall,

	"function_call_output": classOutput, "custom_tool_call_output": classOutput, "local_shell_call_output": classOutput, "shell_call_output": classOutput,
	"apply_patch_call_output": classOutput, "computer_call_output": classOutput, "mcp_approval_response": classOutput, "tool_search_output": classOutput,

	"web_search_call": classServer, "file_search_call": classServer, "code_interpreter_call": classServer, "image_generation_call": classServer,
	"mcp_call": classServer, "mcp_list_tools": classServer, "tool_search_call": classServer, "compaction": classServer, "compaction_summary": classServer,

	"item_reference": classOther, "compaction_trigger": classOther,
}

// classOf sorts a type; one that is new is told by its name.
func classOf(kind string) class {
	if c, ok := classes[kind]; ok {
		return c
	}
	switch {
	case strings.HasSuffix(kind, "_output"), strings.HasSuffix(kind, "_response"):
		return classOutput
	}
	n := wire.Plain(kind)
	if strings.HasSuffix(n, "call") || strings.HasSuffix(n, "calls") || strings.HasSuffix(n, "request") || strings.HasPrefix(n, "tooluse") || strings.Contains(n, "toolcall") || strings.Contains(n, "functioncall") {
		return classCall
	}
	return classOther
}

// call is the name and arguments by which an action is known: those of a
// function as they are, free text as one JSON string, and for tools that the API
// names itself the object that says what to do.
func (f *fields) call() (name string, args []byte) {
	switch f.kind {
	case "local_shell_call":
		return "local_shell", f.action
	case "shell_call":
		return "shell", f.action
	case "computer_call":
		return "computer", f.action
	case "apply_patch_call": // create_file, update_file, delete_file
		if op := text(member(f.operation, "type")); op != "" {
			return op, f.operation
		}
		return "apply_patch", f.operation
	case "custom_tool_call":
		if len(f.input) == 0 {
			return f.qualified(), []byte(`""`)
		}
		return f.qualified(), f.input
	case "mcp_approval_request":
		return "mcp__" + f.server + "__" + f.name, []byte(text(f.arguments))
	}
	return f.qualified(), f.args()
}

// args are the arguments of a function: a text, or from some servers the object.
func (f *fields) args() []byte {
	if len(f.arguments) > 0 && f.arguments[0] == '{' {
		return f.arguments
	}
	return []byte(text(f.arguments))
}

// qualified is the name with its namespace where that says whose tool it is.
func (f *fields) qualified() string {
	if strings.HasPrefix(f.namespace, "mcp") {
		return f.namespace + "__" + f.name
	}
	return f.name
}

// answers is the id by which an output names its call.
func (f *fields) answers() string {
	if f.hasCallID {
		return f.callID
	}
	return f.id
}

// texts joins a string, or the texts of an array of parts.
func texts(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	if raw[0] != '[' {
		return text(raw)
	}
	var out []string
	for _, e := range wire.ElementsOf(raw, whole(raw)) {
		part := raw[e.Start:e.End]
		if t := text(member(part, "text")); t != "" {
			out = append(out, t)
		} else if t := text(member(part, "refusal")); t != "" {
			out = append(out, t)
		}
	}
	return strings.Join(out, "\n")
}
