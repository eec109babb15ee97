package scenarios

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

//go:embed all:gtr001 all:gtr008 all:gtr016
var embedded embed.FS

// dirs are the embedded scenarios in id order; a new one is a directory and its
// name here and above.
var dirs = []string{"gtr001", "gtr008", "gtr016"}

// All loads the embedded scenarios, in id order.
func All() ([]*Scenario, error) {
	out := make([]*Scenario, 0, len(dirs))
	for _, d := range dirs {
		sub, err := fs.Sub(embedded, d)
		if err != nil {
			return nil, fmt.Errorf("open embedded scenario %s: %w", d, err)
		}
		s, err := Load(sub)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// ByID loads one embedded scenario; the id's case does not matter.
func ByID(id string) (*Scenario, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	var known []string
	for _, s := range all {
		if strings.EqualFold(s.ID, id) {
			return s, nil
		}
		known = append(known, s.ID)
	}
	return nil, fmt.Errorf("%w %q (there are %s)", ErrUnknown, id, strings.Join(known, ", "))
}

// ErrUnknown marks an id that is not embedded.
var ErrUnknown = errors.New("no scenario")

// LoadDir loads a scenario from a directory on disk. Running one runs its
// programs: it deserves the trust that a Makefile does.
func LoadDir(dir string) (*Scenario, error) { return Load(os.DirFS(dir)) }
