package route

import (
	"strings"

	"github.com/tidwall/gjson"

	"gettier.dev/gettierd/daemon/wire"
)

// Place is a directory that a client says it works in. It is a text like any
// other: it can choose among registered roots, never add one.
type Place struct {
	Source string // where it stands: codex workspaces, environment_context, env block
	Dir    string
}

// Bounds of what a client may say about its place.
const (
	maxPlaces  = 8
	maxDir     = 4096
	maxPlaceAt = 64 << 10 // bytes of one text that are looked at
)

// placeMarks are the lines by which clients name their directory, recorded ones.
var placeMarks = [...]string{
	"Primary working directory: ", "Working directory: ", "Working Directory: ", "Current Working Directory: ", "working directory: ",
}

// Places lists the directories that a request names as the client's own: Codex's
// workspaces and environment context, other agents' environment block.
func Places(r *wire.Request, h Headers, c Client) []Place {
	var out []Place
	add := func(source, dir string) {
		dir = strings.TrimSpace(dir)
		if len(out) >= maxPlaces || len(dir) > maxDir || !strings.HasPrefix(dir, "/") || strings.ContainsAny(dir, "\n\r\x00<>") {
			return
		}
		for _, p := range out {
			if p.Dir == dir {
				return
			}
		}
		out = append(out, Place{source, dir})
	}
	if c == Codex {
		for _, meta := range [...]string{gjson.GetBytes(r.Raw("client_metadata"), codexMetaName).Str, h(codexMetaName)} {
			if len(meta) > maxMeta || !gjson.Valid(meta) {
				continue
			}
			gjson.Get(meta, "workspaces").ForEach(func(k, _ gjson.Result) bool {
				add("codex workspaces", k.Str)
				return len(out) < maxPlaces
			})
		}
	}
	look := func(text string) {
		text = text[:min(len(text), maxPlaceAt)]
		if rest, ok := strings.CutPrefix(text, "<environment_context>"); ok {
			add("environment_context", inner(rest, "cwd"))
		}
		for line := range strings.SplitSeq(text, "\n") {
			for _, m := range placeMarks {
				i := strings.Index(line, m)
				if i < 0 || strings.TrimLeft(line[:i], " \t-0123456789.") != "" {
					continue
				}
				add("environment block", line[i+len(m):])
				break
			}
		}
	}
	for _, s := range r.System {
		look(s)
	}
	users := 0
	for i := range r.Items {
		it := &r.Items[i]
		switch it.Role {
		case "system", "developer":
		case "user":
			// Only what stands in the first entries is the client's own frame.
			if users++; users > 2 || c != Codex {
				continue
			}
		default:
			continue
		}
		for k := range it.Parts {
			if p := &it.Parts[k]; p.Kind == wire.Text {
				look(p.Text)
			}
		}
	}
	return out
}
