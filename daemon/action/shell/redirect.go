package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// emptied notes files that a redirection cuts off and nothing fills again.
func (w *walker) emptied(targets []word) {
	for _, v := range targets {
		if full := joinPath(w.cwd, v.s); preciousName(full) || (systemFile(full) || strings.HasPrefix(full, "/var/log/") || strings.HasPrefix(full, "/var/lib/")) && !strings.HasPrefix(full, "/dev/") && !strings.HasPrefix(full, "/proc/") {
			w.note(Destroy, "write.empty", "empties "+v.s)
		}
	}
}

// redirs notes files that redirections write, and returns the input they give
// and where the output goes: nil when no file takes it, else the files that are
// cut off first, which an appending one, among more, is not.
func (w *walker) redirs(rs []*syntax.Redirect, in stream) (from stream, targets, more []word) {
	for _, r := range rs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			v := w.heredoc(r)
			if in = (stream{kind: known, text: v.s}); v.dyn {
				in = stream{kind: unknown, text: v.s}
			}
		case syntax.WordHdoc:
			v := w.word(r.Word)
			if in = (stream{kind: known, text: v.s + "\n"}); v.dyn {
				in = stream{kind: unknown, text: v.s}
			}
		case syntax.RdrIn:
			in = stream{kind: unknown}
			if v := w.word(r.Word); secretPath(v.s) {
				in.secret = v.s
			}
		case syntax.DplIn, syntax.DplOut:
			v := w.word(r.Word)
			if r.Op == syntax.DplOut && strings.Trim(v.s, "0123456789-") != "" { // >& file
				w.writes(v)
				targets = append(targets, v)
			}
		default: // > >> >| &> &>> <>
			v := w.word(r.Word)
			w.writes(v)
			if r.N != nil && r.N.Value != "1" {
				continue
			}
			if targets == nil {
				targets = []word{}
			}
			if r.Op != syntax.AppOut && r.Op != syntax.AppAll && r.Op != syntax.RdrInOut {
				targets = append(targets, v)
			} else if r.Op != syntax.RdrInOut {
				more = append(more, v)
			}
		}
	}
	return in, targets, more
}

// heredoc is the body of a here-document: as it stands where the delimiter is
// quoted, else as between double quotes.
func (w *walker) heredoc(r *syntax.Redirect) word {
	if r.Hdoc == nil {
		return word{}
	}
	literal := false
	for _, p := range r.Word.Parts {
		l, ok := p.(*syntax.Lit)
		literal = literal || !ok || strings.IndexByte(l.Value, '\\') >= 0
	}
	var b strings.Builder
	var v word
	if literal {
		for _, p := range r.Hdoc.Parts {
			if l, ok := p.(*syntax.Lit); ok {
				b.WriteString(l.Value)
			}
		}
	} else {
		w.parts(&b, &v, r.Hdoc.Parts, true)
	}
	if v.s = b.String(); len(v.s) > maxText {
		v.s, v.dyn = v.s[:maxText], true
	}
	return v
}

// writes notes a redirection into a file.
func (w *walker) writes(v word) {
	switch {
	case v.s == "/dev/null" || v.s == "/dev/stdout" || v.s == "/dev/stderr" || v.s == "/dev/tty" || strings.HasPrefix(v.s, "/dev/fd/"):
		return
	case blockDevice(v.s):
		w.note(Catastrophe, "write.device", "writes over "+v.s)
	case strings.HasPrefix(v.s, "/dev/tcp/") || strings.HasPrefix(v.s, "/dev/udp/"):
		w.note(Opaque, "write.socket", "sends to "+v.s)
	case vitalFile(v.s):
		w.note(Destroy, "write.vital", "overwrites "+v.s)
	default:
		w.note(Mutate, "write.redirect", "writes "+orWord(v))
	}
	w.path(v.s)
}

func orWord(v word) string {
	if v.s == "" {
		return "a file"
	}
	return v.s
}
