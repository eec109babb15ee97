package shell

import "strings"

func patchTool(name, text string) Action {
	a := Action{Kind: "filesystem", Effect: Mutate, Rule: "tool.patch", Why: "changes files"}
	a.Edits = patchEdits(text)
	if len(a.Edits) == 0 {
		a.Effect, a.Rule, a.Why = Opaque, "patch.unreadable", "a patch that names no file"
	}
	for _, e := range a.Edits {
		a.Paths = append(a.Paths, e.Path)
		if e.Removed && (preciousName(e.Path) || systemFile(e.Path)) {
			a.Effect, a.Rule, a.Why = Destroy, "rm.precious", "removes "+e.Path
		}
		if vitalFile(e.Path) {
			a.Effect, a.Rule, a.Why = Destroy, "write.vital", "overwrites "+e.Path
		}
	}
	a.Summary = name + " " + strings.Join(a.Paths, " ")
	return a
}

// patchEdits reads the begin-patch form and unified diffs.
func patchEdits(text string) []Edit {
	var out []Edit
	for line := range strings.SplitSeq(text, "\n") {
		if len(out) > maxPaths {
			break
		}
		switch {
		case strings.HasPrefix(line, "*** Update File: "):
			out = append(out, Edit{Path: strings.TrimSpace(line[17:])})
		case strings.HasPrefix(line, "*** Add File: "):
			out = append(out, Edit{Path: strings.TrimSpace(line[14:]), Whole: true})
		case strings.HasPrefix(line, "*** Delete File: "):
			out = append(out, Edit{Path: strings.TrimSpace(line[17:]), Whole: true, Removed: true})
		case strings.HasPrefix(line, "*** Move to: "):
			out = append(out, Edit{Path: strings.TrimSpace(line[13:])})
		case strings.HasPrefix(line, "--- ") && len(line) > 4:
			continue
		case strings.HasPrefix(line, "+++ "):
			p := strings.TrimSpace(strings.SplitN(line[4:], "\t", 2)[0])
			out = append(out, Edit{Path: strings.TrimPrefix(p, "b/"), Removed: p == "/dev/null"})
		case len(out) > 0 && line != "" && (line[0] == '+' || line[0] == '-'):
			e := &out[len(out)-1]
			e.Lines++
			if line[0] == '+' {
				e.New += line[1:] + "\n"
			} else {
				e.Old += line[1:] + "\n"
			}
		}
	}
	return out
}

func patchCommand(_ *walker, c call) ruling {
	text := c.in.text
	if len(c.args) > 1 {
		text = c.args[1].s
	}
	a := patchTool("apply_patch", text)
	r := ruling{effect: a.Effect, rule: a.Rule, why: a.Why}
	for _, p := range a.Paths {
		r.paths = append(r.paths, word{s: p})
	}
	return r
}
