package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
)

// hooked is an agent that asks a hook before it runs a tool. All three keep
// their hooks in JSON of one shape.
type hooked struct {
	event string
	dir   string // environment variable that moves its directory
	home  string // of its file, in the home directory
	file  string
	note  string // what a person has to do or know
}

var hookedAgents = map[string]hooked{
	"claude-code": {"PreToolUse", "CLAUDE_CONFIG_DIR", ".claude", "settings.json", "It asks you where gettier would; without a terminal (-p) that is a refusal."},
	// Codex runs no hook that its user has not looked at, and says nothing of it
	// (0.171): whoever installs one must be told.
	"codex":  {"PreToolUse", "CODEX_HOME", ".codex", "hooks.json", "Codex runs it only once you trust it: type /hooks in codex. It cannot ask there, so what gettier would ask is refused."},
	"gemini": {"BeforeTool", "", ".gemini", "settings.json", "It cannot ask there, so what gettier would ask is refused."},
}

// maxSettings bounds an agent's settings file, in bytes.
const maxSettings = 4 << 20

func (a *app) hookCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "hook", Short: "have an agent ask the action gate before it runs a tool",
		Example: "  gettier hook install claude-code --print",
		RunE:    needsSubcommand,
	}
	cmd.AddCommand(a.hookChange("install", "add the hook to an agent's settings", addHook), a.hookChange("uninstall", "take it out again", dropHook))
	return cmd
}

func (a *app) hookChange(verb, short string, change func(doc []byte, event, command string) ([]byte, error)) *cobra.Command {
	var yes, print bool
	agents := "claude-code, codex or gemini"
	cmd := &cobra.Command{
		Use: verb + " AGENT", Short: short,
		Long: short + ": " + agents + ".\n" +
			"Before each tool call the agent then asks gettier decide, which needs no daemon, and does what it\n" +
			"says; a running daemon records it, and its rules count, too. A hook that fails or is missing stops the tool. The change is shown and made when you say yes;\n" +
			"everything else in the file stays byte for byte, and a copy is kept beside it.",
		Example: "  gettier hook " + verb + " claude-code --print",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			h, ok := hookedAgents[args[0]]
			if !ok {
				return usage("no agent with hooks is named %q: %s", args[0], agents)
			}
			path, err := h.path(a.env)
			if err != nil {
				return err
			}
			old, err := readSettings(path)
			if err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find gettier: %w", err)
			}
			doc, err := change(old, h.event, hookLine(self, args[0]))
			if err != nil {
				return &exit{code: exitFound, err: fmt.Errorf("%s: %w", path, err), hint: "mend the file, or edit it by hand"}
			}
			p := newPrinter(a.out)
			if bytes.Equal(doc, old) {
				p.line("%s is as it should be, nothing to change", path)
				return nil
			}
			p.line("%s", path)
			gone, come := differ(old, doc)
			if gone != "" {
				p.text(gone, "- ")
			}
			if come != "" {
				p.text(come, "+ ")
			}
			if print {
				return nil
			}
			if !yes {
				if err := a.confirm("Change it?"); err != nil {
					return err
				}
			}
			if err := writeSettings(path, old, doc); err != nil {
				return err
			}
			p.line("written; %s", map[bool]string{true: h.note, false: "the agent asks gettier no more"}[verb == "install"])
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "make the change without asking")
	cmd.Flags().BoolVar(&print, "print", false, "only show the change")
	return cmd
}

// path is the agent's settings file of this user.
func (h hooked) path(env []string) (string, error) {
	if dir, _ := lookup(env, h.dir); h.dir != "" && dir != "" {
		return filepath.Join(dir, h.file), nil
	}
	home, _ := lookup(env, "HOME")
	if !filepath.IsAbs(home) {
		return "", &exit{code: exitUsage, err: errors.New("HOME does not say where the agent's settings are")}
	}
	return filepath.Join(home, h.home, h.file), nil
}

// differ is what goes and what comes between two documents, as far as their
// common ends; the rest of the file may hold secrets and is not shown.
func differ(old, doc []byte) (gone, come string) {
	n := 0
	for n < len(old) && n < len(doc) && old[n] == doc[n] {
		n++
	}
	for len(old) > n && len(doc) > n && old[len(old)-1] == doc[len(doc)-1] {
		old, doc = old[:len(old)-1], doc[:len(doc)-1]
	}
	return strings.Trim(string(old[n:]), "\n"), strings.Trim(string(doc[n:]), "\n")
}

// hookLine is the command of a hook: these agents run it by a shell, take exit
// code 2 as a refusal, and any other failure as none.
func hookLine(self, agent string) string {
	return "'" + strings.ReplaceAll(self, "'", `'\''`) + "' decide --hook " + agent + " || exit 2"
}

// ours reports a hook of gettier's for this event, wherever the program stood.
func ours(command string) bool {
	return strings.Contains(command, "gettier") && strings.Contains(command, " decide --hook ")
}

// addHook adds the hook to a settings document. An older line of ours is
// replaced; whatever else stands there keeps its bytes.
func addHook(doc []byte, event, command string) ([]byte, error) {
	line, err := json.Marshal(command)
	if err != nil {
		return nil, err
	}
	entry := `{"hooks":[{"type":"command","command":` + unescaped(line) + `}]}`
	if len(bytes.TrimSpace(doc)) == 0 {
		return []byte("{\n  \"hooks\": {\n    \"" + event + "\": [\n      " + entry + "\n    ]\n  }\n}\n"), nil
	}
	if err = checkSettings(doc, event); err != nil {
		return nil, err
	}
	list := gjson.GetBytes(doc, "hooks."+event)
	for _, e := range list.Array() {
		for _, h := range e.Get("hooks").Array() {
			if h.Get("command").Str == command && h.Get("type").Str == "command" && e.Get("matcher").Str == "" {
				return doc, nil
			}
		}
	}
	if doc, err = dropHook(doc, event, command); err != nil {
		return nil, err
	}
	hooks, list := gjson.GetBytes(doc, "hooks"), gjson.GetBytes(doc, "hooks."+event)
	switch {
	case list.IsArray():
		return spliced(doc, list.Index+1, entry, len(list.Array()) > 0), nil
	case hooks.IsObject():
		return spliced(doc, hooks.Index+1, "\n    \""+event+"\": ["+entry+"]", len(hooks.Map()) > 0), nil
	}
	at := bytes.IndexByte(doc, '{') + 1
	return spliced(doc, at, "\n  \"hooks\": {\""+event+"\": ["+entry+"]}", len(gjson.ParseBytes(doc).Map()) > 0), nil
}

// unescaped spells < > & as they are: people read these files.
func unescaped(b []byte) string {
	return strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(string(b))
}

func spliced(doc []byte, at int, text string, more bool) []byte {
	if more {
		text += ","
	}
	return slices.Concat(doc[:at], []byte(text), doc[at:])
}

// dropHook takes every hook of ours for this event out of a settings document.
// An entry that holds a person's hooks as well keeps them.
func dropHook(doc []byte, event, _ string) ([]byte, error) {
	if len(bytes.TrimSpace(doc)) == 0 {
		return doc, nil
	}
	if err := checkSettings(doc, event); err != nil {
		return nil, err
	}
	for {
		list := gjson.GetBytes(doc, "hooks."+event).Array()
		i := slices.IndexFunc(list, func(e gjson.Result) bool {
			return slices.ContainsFunc(e.Get("hooks").Array(), func(h gjson.Result) bool { return ours(h.Get("command").Str) })
		})
		if i < 0 {
			return doc, nil
		}
		inner := list[i].Get("hooks").Array()
		if k := slices.IndexFunc(inner, func(h gjson.Result) bool { return ours(h.Get("command").Str) }); len(inner) > 1 {
			doc = cut(doc, inner, k)
		} else {
			doc = cut(doc, list, i)
		}
	}
}

// cut removes element i of an array and the comma that parted it from the next
// or the one before.
func cut(doc []byte, list []gjson.Result, i int) []byte {
	from, to := list[i].Index, list[i].Index+len(list[i].Raw)
	switch {
	case i+1 < len(list):
		to = list[i+1].Index
	case i > 0:
		from = list[i-1].Index + len(list[i-1].Raw)
	}
	return slices.Concat(doc[:from], doc[to:])
}

// checkSettings refuses what cannot be changed without guessing.
func checkSettings(doc []byte, event string) error {
	root := gjson.ParseBytes(doc)
	hooks := root.Get("hooks")
	switch list := hooks.Get(event); {
	case !gjson.ValidBytes(doc):
		return errors.New("it is not JSON (comments cannot be kept)")
	case !root.IsObject():
		return errors.New("it is no JSON object")
	case hooks.Exists() && !hooks.IsObject():
		return errors.New("its hooks are no object")
	case list.Exists() && !list.IsArray():
		return fmt.Errorf("its hooks for %s are no list", event)
	}
	for _, name := range []string{"hooks", event} {
		at, n := root, 0
		if name == event {
			at = hooks
		}
		at.ForEach(func(k, _ gjson.Result) bool {
			if k.Str == name {
				n++
			}
			return true
		})
		if n > 1 {
			return fmt.Errorf("%q stands there twice", name)
		}
	}
	return nil
}

func readSettings(path string) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read settings: %w", err)
	case !st.Mode().IsRegular() || st.Size() > maxSettings:
		return nil, &exit{code: exitFound, err: fmt.Errorf("%s is no ordinary file, or a very large one", path)}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	return b, nil
}

// writeSettings replaces a settings file in one step. A link stays one, the old
// content is kept beside it, and a file that changed meanwhile is not touched.
func writeSettings(path string, old, doc []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := fs.FileMode(0o600)
	if st, err := os.Stat(path); err == nil {
		mode = st.Mode().Perm()
	}
	if now, err := readSettings(path); err != nil || !bytes.Equal(now, old) {
		return errors.Join(err, fmt.Errorf("write settings: %s was changed meanwhile", path))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	if len(old) > 0 {
		if err := replaceFile(path+".before-gettier", old, mode); err != nil {
			return err
		}
	}
	return replaceFile(path, doc, mode)
}

func replaceFile(path string, b []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".gettier-*")
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, werr := f.Write(b)
	if err := errors.Join(werr, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return nil
}
