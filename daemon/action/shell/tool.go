package shell

// Edit is one file that a tool call changes.
type Edit struct {
	Path    string
	Lines   int  // lines added and removed, as far as the call says
	Whole   bool // the call writes the whole file
	Removed bool
	Old     string
	New     string
}

// Action is a tool call as the gate sees it.
type Action struct {
	Kind    string // shell | filesystem | http | database | browser | mcp | agent | plan | unknown
	Effect  Effect
	Summary string // one line: the command, or the verb and its target
	Paths   []string
	Edits   []Edit
	Command string  // of a shell tool
	Shell   Reading // of a shell tool
	Dir     string  // working directory the call asks for
	// External reports that its result is not about this system: web, MCP.
	External bool
	Rule     string
	Why      string
}

// Tool reads a tool call by the name and arguments that agents use. An unknown
// tool is a mutation.
func Tool(name string, args []byte) Action { return Action{Kind: "unknown", Effect: Mutate} }
