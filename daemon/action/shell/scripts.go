package shell

import (
	"strings"

	"github.com/tidwall/gjson"
)

// Files tells what scripts hold that this session has written. Whoever reads a
// command gives it; a reading without one looks at no file at all.
type Files interface {
	// Script is what the file holds that a command runs, nil where it is not of
	// this session. There may be several texts: what lies there, and what a call
	// puts there that has not run yet. The path is as the command has it, followed
	// from its cd; it may be relative, or begin with ~ or $.
	Script(path string) []string
}

// Reader reads with what it is told about files.
type Reader struct{ Files Files }

// Read reads a command line as bash would parse it.
func (r Reader) Read(cmd string) Reading {
	w := walker{steps: maxSteps, files: r.Files}
	w.text(cmd, 0)
	return w.reading()
}

// ReadArgv reads a program and its arguments that no shell looks at.
func (r Reader) ReadArgv(argv []string) Reading {
	w := walker{steps: maxSteps, files: r.Files}
	args := make([]word, len(argv))
	for i, a := range argv {
		args[i] = word{s: clip(a)}
	}
	w.exec(call{args: args})
	return w.reading()
}

// File is one that a command writes with a text that is known.
type File struct {
	Path string // followed from the command's cd
	Text string
}

const maxWritten = 32 // files whose text is kept in one reading

// wrote keeps what a file is known to hold from here on.
func (w *walker) wrote(p word, out stream, more bool) {
	if p.dyn || p.glob || p.s == "" || strings.HasPrefix(p.s, "/dev/") {
		return
	}
	path, text := joinPath(w.cwd, p.s), out.text
	for i := range w.written {
		if f := &w.written[i]; f.Path == path {
			if more {
				text = f.Text + text
			}
			if f.Text = clip(text); out.kind == unknown {
				f.Text = ""
			}
			return
		}
	}
	if out.kind != unknown && text != "" && len(w.written) < maxWritten {
		w.written = append(w.written, File{path, clip(text)})
	}
}

// texts are what a script may hold, as far as it is of this session.
func (w *walker) texts(path string) []string {
	for _, f := range w.written {
		if f.Path == path {
			return []string{f.Text}
		}
	}
	if w.files != nil {
		return w.files.Script(path)
	}
	return nil
}

// spend takes the reading of a file's text from the budget, so that a command that
// runs a large file a thousand times is not read a thousand times.
func (w *walker) spend(text string) {
	w.steps -= len(text) / 16
	if w.steps < 0 {
		w.step()
	}
}

// copied follows a known text to another name.
func (w *walker) copied(name string, c call) {
	if name != "cp" && name != "mv" && name != "install" && name != "ln" {
		return
	}
	if pos := positional(c.args, fileValued(name)); len(pos) == 2 {
		for _, text := range w.texts(joinPath(w.cwd, pos[0].s)) {
			w.wrote(pos[1], stream{kind: known, text: text}, false)
		}
	}
}

// script reads a file that a command runs by an interpreter; "" leaves it to the
// file's first line.
func (w *walker) script(by string, p word, args []word, in stream) {
	if p.dyn || p.glob || p.s == "" {
		return
	}
	path := joinPath(w.cwd, p.s)
	if w.active["file "+path] > 0 {
		return
	}
	for _, text := range w.texts(path) {
		w.spend(text)
		w.enter("file " + path)
		w.wraps = append(w.wraps, scriptWrap+p.s)
		w.scripts++
		switch by := interpreterOf(by, text); {
		case shells[by]:
			outer := w.args
			w.args = append([]word{}, args...)
			for i, a := range args {
				if i < 9 {
					w.set(string(rune('1'+i)), a)
				}
			}
			w.nested(text, in)
			w.args = outer
		case by != "":
			w.code(p.s, text)
		}
		w.scripts--
		w.wraps = w.wraps[:len(w.wraps)-1]
		w.active["file "+path]--
	}
}

// scriptWrap begins the name of a script among the wrappers of its commands.
const scriptWrap = "script "

// FromScript reports a wrapper that is a script, a makefile or a package's script:
// its commands run where it was called.
func FromScript(wrapper string) bool { return strings.HasPrefix(wrapper, scriptWrap) }

// interpreterOf is who reads a script: who was called, else who its first line
// names, else a shell. "" is nobody whose language is known here.
func interpreterOf(by, text string) string {
	if strings.IndexByte(text, 0) >= 0 {
		return ""
	}
	if by != "" {
		return by
	}
	line, _, _ := strings.Cut(text, "\n")
	line, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return "sh"
	}
	f := strings.Fields(line)
	for len(f) > 1 && (base(f[0]) == "env" || strings.HasPrefix(f[0], "-")) {
		f = f[1:]
	}
	if len(f) == 0 {
		return "sh"
	}
	if name := base(f[0]); shells[name] || interpFlags[name] != "" {
		return name
	}
	return ""
}

// quietly reports what a script of this session says too often to be told: that a
// name or a text in it is known only when it runs. What comes from elsewhere by a
// pipe, and what is too much to read, is told.
func quietly(rule string) bool {
	switch rule {
	case "budget", "size", "depth", "send.secret":
		return false
	}
	return !strings.HasPrefix(rule, "pipe.")
}

// code searches a program's own file for what destroys files and for commands that
// do. What means something else in a file of some length is left out.
func (w *walker) code(name, text string) {
	text = clip(text)
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		if t := strings.TrimSpace(line); !strings.HasPrefix(t, "#") && !strings.HasPrefix(t, "//") && !strings.HasPrefix(t, "* ") {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	text = b.String()
	for _, d := range dangers {
		if d.effect.AtLeast(Destroy) && d.rule != "code.drop" && len(d.text) > 6 && strings.ContainsAny(d.text, ".(_") && !strings.ContainsAny(d.text, " ") && hasWord(text, d.text) {
			w.note(d.effect, d.rule, name+" has "+d.text)
		}
	}
	w.codeStrings(text)
}

// packageScripts reads what a package manager runs out of package.json.
func (w *walker) packageScripts(name string, c call) {
	switch name {
	case "npm", "pnpm", "yarn", "bun":
	default:
		return
	}
	dir, pos := "", []word(nil)
	for i := 1; i < len(c.args); i++ {
		switch a := c.args[i].s; {
		case (a == "--prefix" || a == "-C" || a == "--dir" || a == "--cwd") && i+1 < len(c.args):
			i++
			dir = c.args[i].s + "/"
		case len(pos) == 0 && len(a) > 1 && a[0] == '-':
		default:
			pos = append(pos, c.args[i])
		}
	}
	verb := "install"
	if len(pos) > 0 {
		verb = pos[0].s
	}
	var names []string
	var rest []word
	switch verb {
	case "run", "run-script", "rum", "urn":
		if len(pos) < 2 || pos[1].dyn {
			return
		}
		names, rest = []string{"pre" + pos[1].s, pos[1].s, "post" + pos[1].s}, pos[2:]
	case "install", "i", "ci", "add", "rebuild":
		names = []string{"preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"}
	default:
		names, rest = []string{"pre" + verb, verb, "post" + verb}, pos[min(1, len(pos)):]
	}
	for _, text := range w.texts(joinPath(w.cwd, dir+"package.json")) {
		w.spend(text)
		scripts := gjson.Get(text, "scripts")
		for i, n := range names {
			cmd := ""
			scripts.ForEach(func(k, v gjson.Result) bool { // names hold dots and colons
				if k.Str == n {
					cmd = v.Str
				}
				return true
			})
			key := "file package.json " + n
			if cmd == "" || w.active[key] > 0 {
				continue
			}
			if i == 1 && len(rest) > 0 {
				cmd += " " + quoteAll(rest)
			}
			w.enter(key)
			outer := w.cwd
			if dir != "" {
				w.cwd = joinPath(w.cwd, dir)
			}
			w.wraps = append(w.wraps, scriptWrap+name+" run "+n)
			w.scripts++
			w.nested(cmd, stream{})
			w.scripts--
			w.wraps = w.wraps[:len(w.wraps)-1]
			w.cwd = outer
			w.active[key]--
		}
	}
}
