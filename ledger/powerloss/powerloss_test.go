package powerloss_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/powerloss"
)

const child = "POWERLOSS_CHILD"

// programs are what children do in an empty directory.
var programs = map[string]func() error{
	"careless": func() error { return os.WriteFile("a", []byte("one"), 0o600) },
	"careful": func() error {
		if err := put("a", "one"); err != nil {
			return err
		}
		return sync(".")
	},
	"nameless": func() error { return put("a", "one") },
	"replaced": func() error {
		if err := errors.Join(put("a", "one"), sync("."), put("a.new", "two")); err != nil {
			return err
		}
		return os.Rename("a.new", "a")
	},
	"reused": func() error { // each new file may get the inode of the last
		for i := range 8 {
			if err := errors.Join(put("a.new", fmt.Sprint(i)), os.Rename("a.new", "a")); err != nil {
				return err
			}
		}
		return sync(".")
	},
	"below": func() error {
		if err := os.Mkdir("d", 0o700); err != nil {
			return err
		}
		return errors.Join(put("d/a", "one"), sync("d"))
	},
	"grown": func() error {
		f, err := os.Create("a")
		if err != nil {
			return err
		}
		_, werr := f.WriteAt([]byte("end"), 3*powerloss.Sector-1)
		err = errors.Join(werr, f.Truncate(10*powerloss.Sector), f.Sync(), sync("."), f.Truncate(2))
		return errors.Join(err, f.Close())
	},
	"appended": func() error {
		f, err := os.OpenFile("a", os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		for _, s := range []string{"one ", "two ", "three"} {
			if _, err := f.WriteString(s); err != nil {
				return err
			}
		}
		return errors.Join(f.Sync(), f.Close(), sync("."))
	},
	"copied": func() error { // by a call that has no place in the model
		from, err := os.Open("/proc/self/exe")
		if err != nil {
			return err
		}
		to, err := os.Create("a")
		if err != nil {
			return err
		}
		_, err = to.ReadFrom(from)
		return errors.Join(err, to.Close())
	},
	"failing": func() error { return errors.New("no") },
}

func put(path, text string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

func sync(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func TestMain(m *testing.M) {
	if name := os.Getenv(child); name != "" {
		fmt.Println("begins")
		if err := programs[name](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("done")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func record(t *testing.T, name string) (*powerloss.Recording, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), child+"="+name)
	r, err := powerloss.Record(t.Context(), cmd, cmd.Dir)
	if errors.Is(err, powerloss.ErrTrace) {
		t.Skip(err)
	}
	return r, err
}

// left says in one line what a cut at the end leaves.
func left(t *testing.T, r *powerloss.Recording, how powerloss.Survival, rng *rand.Rand) string {
	t.Helper()
	dir := t.TempDir()
	cuts := r.Cuts()
	if err := r.Leave(dir, cuts[len(cuts)-1], how, rng); err != nil {
		t.Fatal(err)
	}
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || d.IsDir() {
			out = append(out, rel+"/")
			return err
		}
		b, err := os.ReadFile(path)
		if len(b) > 40 {
			b = fmt.Appendf(nil, "%d bytes, %d of them", len(b), len(strings.Trim(string(b), "\x00")))
		}
		out = append(out, rel+"="+string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

func TestWhatIsLeft(t *testing.T) {
	for _, c := range []struct{ name, nothing, all string }{
		{"careless", "", "a=one"},
		{"careful", "a=one", "a=one"},
		{"nameless", "", "a=one"},
		{"replaced", "a=one", "a=two"},
		{"reused", "a=7", "a=7"},
		{"below", "", "d/ d/a=one"},
		{"grown", "a=40960 bytes, 3 of them", "a=\x00\x00"},
		{"appended", "a=one two three", "a=one two three"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := record(t, c.name)
			if err != nil {
				t.Fatal(err)
			}
			cuts := r.Cuts()
			if got := string(r.Marks(cuts[len(cuts)-1])); got != "begins\ndone\n" {
				t.Errorf("it said %q", got)
			}
			rng := rand.New(rand.NewPCG(1, 1))
			if got := left(t, r, powerloss.Nothing, rng); got != c.nothing {
				t.Errorf("nothing of the rest: %q", got)
			}
			if got := left(t, r, powerloss.All, rng); got != c.all {
				t.Errorf("all of the rest: %q", got)
			}
			if got := left(t, r.WithoutSyncs(func(string, int) bool { return true }), powerloss.Nothing, rng); got != "" {
				t.Errorf("without any sync: %q", got)
			}
		})
	}
}

// TestSomeIsLeft: chance takes every way that there is, and no other.
func TestSomeIsLeft(t *testing.T) {
	r, err := record(t, "replaced")
	if err != nil {
		t.Fatal(err)
	}
	rng, seen := rand.New(rand.NewPCG(1, 1)), map[string]bool{}
	for range 60 {
		for _, how := range powerloss.Survivals {
			seen[left(t, r, how, rng)] = true
		}
	}
	if got, want := slices.Sorted(maps.Keys(seen)), []string{"a=one", "a=one a.new=two", "a=two"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestNotRecorded(t *testing.T) {
	if _, err := record(t, "copied"); err == nil || !strings.Contains(err.Error(), "not modelled") {
		t.Errorf("a call that is not modelled: %v", err)
	}
	if _, err := record(t, "failing"); err == nil {
		t.Error("a program that fails")
	}
}
