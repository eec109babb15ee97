package scenarios

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Lock renders the LOCK file of a scenario directory, a line "mode sha256 path"
// for each file in path order, and its SHA-256, which every run records. Mode is
// 755 for files that end in .sh and 644 for the rest: an embedded file has no
// mode of its own, and scripts are handed to sh by name, so nothing else counts.
func Lock(fsys fs.FS) (text, sum string, err error) {
	files, err := list(fsys)
	if err != nil {
		return "", "", err
	}
	var b strings.Builder
	for _, f := range files {
		if f == "LOCK" {
			continue
		}
		data, err := readCapped(fsys, f, maxFileBytes)
		if err != nil {
			return "", "", err
		}
		mode := "644"
		if strings.HasSuffix(f, ".sh") {
			mode = "755"
		}
		fmt.Fprintf(&b, "%s %x %s\n", mode, sha256.Sum256(data), f)
	}
	text = b.String()
	h := sha256.Sum256([]byte(text))
	return text, hex.EncodeToString(h[:]), nil
}

// Freeze writes dir's LOCK anew, once its files are as they are meant. What is no
// scenario is not frozen.
func Freeze(dir string) error {
	fsys := os.DirFS(dir)
	text, _, err := Lock(fsys)
	if err != nil {
		return err
	}
	if _, err := load(fsys); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "LOCK"), []byte(text), 0o644); err != nil {
		return fmt.Errorf("write LOCK: %w", err)
	}
	return nil
}

// lockDifference names the first file in which two LOCK texts differ, "" for none.
func lockDifference(want, got string) string {
	if want == got {
		return ""
	}
	split := func(t string) map[string]string {
		m := map[string]string{}
		for line := range strings.Lines(t) {
			if f := strings.SplitN(strings.TrimSpace(line), " ", 3); len(f) == 3 {
				m[f[2]] = f[0] + " " + f[1]
			}
		}
		return m
	}
	w, g := split(want), split(got)
	var names []string
	for n := range w {
		names = append(names, n)
	}
	for n := range g {
		if _, ok := w[n]; !ok {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	for _, n := range names {
		switch {
		case g[n] == "":
			return n + " is gone"
		case w[n] == "":
			return n + " is new"
		case w[n] != g[n]:
			return n + " has changed"
		}
	}
	return "LOCK is not in its canonical form"
}

// list walks a scenario directory within its limits and refuses links.
func list(fsys fs.FS) ([]string, error) {
	var out []string
	var total int64
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return nil
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file", p)
		}
		if strings.ContainsAny(p, "\n\r\x00") {
			return fmt.Errorf("%q has control characters in its name", p)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if total += info.Size(); total > maxBytes {
			return fmt.Errorf("more than %d bytes", maxBytes)
		}
		if out = append(out, p); len(out) > maxFiles {
			return fmt.Errorf("more than %d files", maxFiles)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list scenario: %w", err)
	}
	slices.Sort(out)
	return out, nil
}

func readCapped(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read scenario: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read scenario: %w", err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("read scenario: %s is over %d bytes", name, limit)
	}
	return data, nil
}

func readTruth(fsys fs.FS) (Truth, error) {
	data, err := readCapped(fsys, "truth.json", maxFileBytes)
	if err != nil {
		return Truth{}, err
	}
	var t Truth
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil {
		return Truth{}, fmt.Errorf("read truth.json: %w", err)
	}
	if len(t.Readings) == 0 {
		return Truth{}, fmt.Errorf("read truth.json: no readings")
	}
	return t, nil
}
