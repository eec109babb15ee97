package spec

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// Definition is the canonical form of a sensor, a premise, or a matching
// table: JSON with sorted keys, without what says where it was read. Equal
// definitions have equal bytes, whatever their file looks like.
func Definition(v any) ([]byte, error) {
	first, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write definition: %w", err)
	}
	// Through a map, so that keys are sorted and the order of struct fields is free.
	d := json.NewDecoder(bytes.NewReader(first))
	d.UseNumber()
	var generic any
	if err := d.Decode(&generic); err != nil {
		return nil, fmt.Errorf("write definition: %w", err)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(generic); err != nil {
		return nil, fmt.Errorf("write definition: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// HashOf is the SHA-256 hex of the canonical form of v, "" when v has none.
func HashOf(v any) string {
	b, err := Definition(v)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// SensorOf reads a canonical definition back. Its hash is that of the bytes as
// this program writes them, so a definition that it cannot hold as a whole
// shows as another hash and is refused by whoever pinned it.
func SensorOf(definition []byte) (*Sensor, error) {
	s := &Sensor{}
	if err := strict(definition, s); err != nil {
		return nil, fmt.Errorf("read sensor definition: %w", err)
	}
	s.Hash = HashOf(s)
	return s, nil
}

// PremiseOf reads a canonical premise back.
func PremiseOf(definition []byte) (*Premise, error) {
	p := &Premise{}
	if err := strict(definition, p); err != nil {
		return nil, fmt.Errorf("read premise definition: %w", err)
	}
	p.Hash = HashOf(p)
	return p, nil
}

// MatchingOf reads a canonical matching table back.
func MatchingOf(definition []byte) (map[string][]string, error) {
	m := map[string][]string{}
	if err := strict(definition, &m); err != nil {
		return nil, fmt.Errorf("read matching definition: %w", err)
	}
	return m, nil
}

func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// registryHash covers what a registry says, in its order: order decides which
// sensors match first.
func registryHash(r *Registry) string {
	return HashOf(struct {
		Sensors  []*Sensor           `json:"sensors"`
		Matching map[string][]string `json:"matching,omitempty"`
		Premises []*Premise          `json:"premises,omitempty"`
	}{r.Sensors, r.Matching, r.Premises})
}

// Error makes a problem an error of one line, without the file's name.
func (p Problem) Error() string {
	s := fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.What)
	if p.Hint != "" {
		s += " (" + p.Hint + ")"
	}
	return s
}

// Explain prints problems for people: place, fault, the line with a caret
// under the place, and what to do.
func Explain(file string, data []byte, problems []Problem) string {
	lines := strings.Split(strings.ToValidUTF8(string(data), "\ufffd"), "\n")
	var b strings.Builder
	for i, p := range problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s\n", file, p.Line, p.Column, p.What)
		if p.Line >= 1 && p.Line <= len(lines) {
			snippet(&b, p, lines[p.Line-1])
		}
		if p.Hint != "" {
			fmt.Fprintf(&b, "  %s\n", p.Hint)
		}
	}
	return b.String()
}

// snippet shows at most 100 characters round the column, controls as blanks.
func snippet(b *strings.Builder, p Problem, line string) {
	r := []rune(strings.TrimRight(line, "\r"))
	col := min(max(p.Column-1, 0), len(r))
	from := max(col-60, 0)
	for i, c := range r {
		if badText(string(c)) != "" || c == '\t' {
			r[i] = ' '
		}
	}
	fmt.Fprintf(b, "%5d | %s\n", p.Line, string(r[from:min(len(r), from+100)]))
	fmt.Fprintf(b, "      | %s^\n", strings.Repeat(" ", col-from))
}
