package sensors

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gettier.dev/gettierd/sensors/spec"
)

// Difference is what an approval of one definition would change.
type Difference struct {
	State Standing
	// Text is lines: "! " says in words what the sensor may do and what to mind,
	// "- " and "+ " are lines of the definition that go and come, "  " stay. It is
	// printable: what cannot be seen in a definition is spelled \uXXXX.
	Text string
	// Hash is what Approve can be bound to: of the definition in the file and of
	// the files that it runs, as shown. "" stands for a definition that is gone.
	Hash string
}

// Diff shows what an approval of id would change.
func (r *Registry) Diff(id string) (Difference, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, err := r.waiting(id, "")
	if err != nil {
		return Difference{}, fmt.Errorf("show difference: %w", err)
	}
	var before, after []string
	if d.pin != nil {
		before = pretty(d.pin.Definition)
	}
	if d.hash != "" {
		body, err := d.body()
		if err != nil {
			return Difference{}, fmt.Errorf("show difference: %w", err)
		}
		after = pretty(body)
	}
	out := Difference{State: d.standing()}
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s  %s\n", visible(d.source.level), visible(d.name()), out.State)
	pins, failed := r.files(d)
	if d.hash != "" {
		out.Hash = shown(d, pins)
		fmt.Fprintf(&b, "approve as %s@%s\n", visible(d.name()), out.Hash[:12])
	}
	for _, l := range append(reach(d), alike(after)...) {
		b.WriteString("! " + visible(l) + "\n")
	}
	for _, l := range diff(before, after) {
		b.WriteString(l + "\n")
	}
	for _, err := range failed {
		fmt.Fprintf(&b, "! %s\n", visible(line(err.Error())))
	}
	for _, p := range pins {
		if d.pin == nil || !slices.Contains(d.pin.Files, p) {
			fmt.Fprintf(&b, "+ runs %s sha256:%s\n", visible(p.Path), p.SHA256[:12])
		}
	}
	out.Text = b.String()
	return out, nil
}

// reach says what a sensor may do; what the approved definition may not yet is
// marked.
func reach(d *definition) []string {
	if d.sensor == nil || d.hash == "" {
		return nil
	}
	words := spec.Reach(d.sensor)
	if d.pin == nil || d.pin.sensor == nil {
		return words
	}
	was := spec.Reach(d.pin.sensor)
	for i, w := range words {
		if !slices.Contains(was, w) {
			words[i] = "new: " + w
		}
	}
	return words
}

// files are those that an approval of d pins, and why some of them cannot be.
func (r *Registry) files(d *definition) (pins []Pin, failed []error) {
	if d.sensor == nil || d.hash == "" {
		return nil, nil
	}
	if d.looked { // what was compared with the person's hash is what is pinned
		return d.pins, d.failed
	}
	defer func() { d.looked, d.pins, d.failed = true, pins, failed }()
	roots := []string{d.source.root}
	if d.source.root == "" {
		roots = []string{""}
		for _, p := range r.o.Projects {
			roots = append(roots, p.Root)
		}
	}
	for _, root := range roots {
		at, err := stand(d.sensor, root, root)
		if err != nil {
			continue // it cannot run there
		}
		now, err := r.hashes.pinned(d.sensor, at, root)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		for _, p := range now {
			if !slices.Contains(pins, p) {
				pins = append(pins, p)
			}
		}
	}
	return pins, failed
}

// shown is the hash of what a person sees of a definition: its own, or, where it
// runs files of a project, one over theirs, too.
func shown(d *definition, pins []Pin) string {
	if len(pins) == 0 {
		return d.hash
	}
	sum := sha256.New()
	fmt.Fprintln(sum, d.hash)
	for _, p := range pins {
		fmt.Fprintf(sum, "%q %q %s\n", p.Root, p.Path, p.SHA256)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Gone stands in place of a hash for a definition that the person saw is removed.
const Gone = "gone"

// pretty puts a canonical definition on lines that read like the file: one key
// each, one line per element where elements have keys of their own.
func pretty(definition []byte) []string {
	d := json.NewDecoder(bytes.NewReader(definition))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return []string{visible(string(definition))}
	}
	if argv, ok := m["argv"].([]any); ok {
		var words []any
		for _, w := range argv {
			if w, ok := w.(map[string]any); ok {
				words = append(words, w["text"])
			}
		}
		delete(m, "argv")
		m["command"] = words
	}
	for _, k := range []string{"ttl", "timeout"} {
		if n, ok := m[k].(json.Number); ok {
			if ns, err := n.Int64(); err == nil {
				m[k] = ns / int64(time.Second)
			}
		}
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list, ok := m[k].([]any)
		if _, nested := first(list).(map[string]any); !ok || !nested {
			out = append(out, visible(k)+": "+compact(m[k]))
			continue
		}
		for _, e := range list {
			out = append(out, visible(k)+" - "+compact(e))
		}
	}
	return out
}

func first(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func compact(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "?"
	}
	return visible(strings.TrimSuffix(b.String(), "\n"))
}

// visible spells what draws as nothing, or as something else, as \uXXXX: two
// definitions that differ must look different.
func visible(s string) string {
	if !strings.ContainsFunc(s, unseen) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		switch {
		case !unseen(c):
			b.WriteRune(c)
		case c > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, c)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String()
}

// unseen are controls, format characters, blanks other than the space, marks
// that combine with what stands before them, and letters that draw as nothing.
func unseen(c rune) bool {
	switch c {
	case 0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0, utf8.RuneError:
		return true
	}
	return !unicode.IsPrint(c) || unicode.Is(unicode.M, c)
}

// alike warns of letters that look like others: any but ASCII in a command, and
// words elsewhere that mix scripts.
func alike(lines []string) (out []string) {
	for _, l := range lines {
		key, _, _ := strings.Cut(l, ": ")
		for _, word := range strings.FieldsFunc(l, func(c rune) bool { return !unicode.IsLetter(c) }) {
			i := strings.IndexFunc(word, func(c rune) bool { return c > unicode.MaxASCII })
			if i < 0 || key != "command" && !mixed(word) {
				continue
			}
			c, _ := utf8.DecodeRuneInString(word[i:])
			out = append(out, fmt.Sprintf("%s has a letter that may look like another: %q in %q is U+%04X", key, c, clipped(word), c))
			break
		}
	}
	return out
}

func mixed(word string) bool {
	latin := strings.ContainsFunc(word, func(c rune) bool { return c <= unicode.MaxASCII })
	return latin && strings.ContainsFunc(word, func(c rune) bool {
		return unicode.In(c, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Lisu) || c >= 0xff21 && c <= 0xff5a || c >= 0x1d400 && c <= 0x1d7ff
	})
}

func clipped(s string) string { return oneLine(s, 60) }
