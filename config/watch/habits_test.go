package watch

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// habit is a way in which a program replaces the content of a file. pause lies
// between its steps.
type habit struct {
	name string
	save func(path, text string, pause func()) error
	// set makes the file as this habit knows it, "" for a plain one.
	set func(path, text string) error
	// prefix: what is written slowly may be seen in part, as a content of its own.
	prefix bool
}

func plainWrite(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }

// replace makes a file beside path and renames it over.
func replace(path, text string, pause func()) error {
	tmp := filepath.Join(filepath.Dir(path), ".tmp-save")
	if err := plainWrite(tmp, text); err != nil {
		return err
	}
	pause()
	return os.Rename(tmp, path)
}

// turnLink points the link at path elsewhere, at once.
func turnLink(path, target string) error {
	link := path + ".new"
	return errors.Join(os.Symlink(target, link), os.Rename(link, path))
}

// volume lays a directory out as Kubernetes mounts a ConfigMap: path leads over
// ..data to a directory of its version.
func volume(path, text string) error {
	dir, name := filepath.Split(path)
	version, err := os.MkdirTemp(dir, "..version")
	if err != nil {
		return err
	}
	if err := errors.Join(plainWrite(filepath.Join(version, name), text), turnLink(filepath.Join(dir, "..data"), filepath.Base(version))); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	return os.Symlink(filepath.Join("..data", name), path)
}

var habits = []habit{
	{name: "in place", save: func(path, text string, _ func()) error { return plainWrite(path, text) }},
	{name: "atomic rename (sed -i, VS Code, kubectl)", save: replace},
	{name: "vim with a backup", save: func(path, text string, pause func()) error {
		if err := os.Rename(path, path+"~"); err != nil {
			return err
		}
		pause()
		if err := plainWrite(path, text); err != nil {
			return err
		}
		pause()
		return os.Remove(path + "~")
	}},
	{name: "vim that writes in place, with a probe and a swap file", save: func(path, text string, pause func()) error {
		dir := filepath.Dir(path)
		swap := filepath.Join(dir, "."+filepath.Base(path)+".swp")
		if err := errors.Join(plainWrite(swap, "swap"), plainWrite(filepath.Join(dir, "4913"), ""), os.Remove(filepath.Join(dir, "4913"))); err != nil {
			return err
		}
		pause()
		return errors.Join(plainWrite(path, text), os.Chmod(path, 0o600), os.Remove(swap))
	}},
	{name: "emacs: a lock link and a backup by copy", save: func(path, text string, pause func()) error {
		lock := filepath.Join(filepath.Dir(path), ".#"+filepath.Base(path))
		if err := errors.Join(os.Symlink("me@host.1", lock), plainWrite(path+"~", "old")); err != nil {
			return err
		}
		pause()
		return errors.Join(plainWrite(path, text), os.Remove(lock), os.Remove(path+"~"))
	}},
	{name: "emptied, then written slowly", prefix: true, save: func(path, text string, pause func()) error {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		for _, part := range strings.SplitAfter(text, " ") {
			pause()
			if _, err := f.WriteString(part); err != nil {
				return err
			}
		}
		return f.Sync()
	}},
	{name: "the link turned", set: func(path, text string) error {
		first := path + ".1"
		return errors.Join(plainWrite(first, text), os.Symlink(filepath.Base(first), path))
	}, save: func(path, text string, _ func()) error {
		next, err := os.CreateTemp(filepath.Dir(path), "target")
		if err != nil {
			return err
		}
		_, err = next.WriteString(text)
		return errors.Join(err, next.Close(), turnLink(path, filepath.Base(next.Name())))
	}},
	{name: "the link's target replaced elsewhere", set: func(path, text string) error {
		there := filepath.Join(filepath.Dir(path), "there")
		return errors.Join(os.Mkdir(there, 0o700), plainWrite(filepath.Join(there, "real"), text), os.Symlink(filepath.Join("there", "real"), path))
	}, save: func(path, text string, pause func()) error {
		return replace(filepath.Join(filepath.Dir(path), "there", "real"), text, pause)
	}},
	{name: "ConfigMap: ..data swapped", set: volume, save: func(path, text string, _ func()) error { return volume(path, text) }},
	{name: "deleted and back", save: func(path, text string, pause func()) error {
		if err := os.Remove(path); err != nil {
			return err
		}
		pause()
		return plainWrite(path, text)
	}},
	{name: "its directory replaced", save: func(path, text string, pause func()) error {
		dir := filepath.Dir(path)
		next, old := dir+".next", dir+".old"
		if err := errors.Join(os.Mkdir(next, 0o700), plainWrite(filepath.Join(next, filepath.Base(path)), text), os.Rename(dir, old)); err != nil {
			return err
		}
		pause()
		return errors.Join(os.Rename(next, dir), os.RemoveAll(old))
	}},
	{name: "the same size and the same time", save: func(path, text string, _ func()) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		return errors.Join(plainWrite(path, text), os.Chtimes(path, info.ModTime(), info.ModTime()))
	}},
}

func (h *habit) begin(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	path := filepath.Join(dir, "sensors.yaml")
	set := h.set
	if set == nil {
		set = plainWrite
	}
	if err := errors.Join(os.Mkdir(dir, 0o700), set(path, "the old text 0")); err != nil {
		t.Fatal(err)
	}
	return path
}

// seen checks one report on the way to want, and reports whether it is want.
func (h *habit) seen(t *testing.T, c Content, before, want string) bool {
	t.Helper()
	got := string(c.Data)
	switch {
	case c.Err != nil:
		t.Errorf("%v", c.Err)
	case got == want:
		return true
	case got == before, !c.Exists, h.prefix && strings.HasPrefix(want, got):
	default:
		t.Errorf("reported %q on the way from %q to %q", got, before, want)
	}
	return false
}

// TestHabits: whatever way a file is replaced, by events alone the new content
// is reported, and nothing that was neither the old nor the new one.
func TestHabits(t *testing.T) {
	for _, h := range habits {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			path := h.begin(t)
			_, out := start(t, eventful, path)
			before := "the old text 0"
			for !h.seen(t, next(t, out), "", before) {
			}
			for _, text := range []string{"the new text 1", "the new text 2"} {
				if err := h.save(path, text, func() {}); err != nil {
					t.Fatal(err)
				}
				for !h.seen(t, next(t, out), before, text) {
				}
				before = text
			}
		})
	}
}

// TestHabitsPolled is the same without events, as on a network file system, with
// pauses between the steps. The time is synthetic.
func TestHabitsPolled(t *testing.T) {
	for _, h := range habits {
		t.Run(h.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := h.begin(t)
				w := New(Options{PollOnly: true})
				w.Set(path)
				var mu sync.Mutex
				var all []Content
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() {
					done <- w.Run(ctx, func(c Content) {
						mu.Lock()
						defer mu.Unlock()
						all = append(all, c)
					})
				}()
				before := ""
				for _, text := range []string{"the old text 0", "the new text 1", "the new text 2"} {
					if before != "" {
						if err := h.save(path, text, func() { time.Sleep(DefaultPoll / 20) }); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(3 * DefaultPoll) // synthetic
					synctest.Wait()
					mu.Lock()
					found := false
					for _, c := range all {
						found = h.seen(t, c, before, text)
					}
					if !found {
						t.Errorf("%q was not reported last: %d reports", text, len(all))
					}
					all, before = nil, text
					mu.Unlock()
				}
				cancel()
				<-done
			})
		})
	}
}

// TestEditors edits with the programs themselves.
func TestEditors(t *testing.T) {
	for _, args := range [][]string{
		{"vim", "-u", "NONE", "-es", "-c", "%s/old/new/", "-c", "wq"},
		{"vim", "-u", "NONE", "-es", "-c", "set backup writebackup backupcopy=no backupdir=.", "-c", "%s/old/new/", "-c", "wq"},
		{"vim", "-u", "NONE", "-es", "-c", "set backupcopy=yes", "-c", "%s/old/new/", "-c", "wq"},
		{"sed", "-i", "s/old/new/"},
		{"perl", "-pi", "-e", "s/old/new/"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			program, err := exec.LookPath(args[0])
			if err != nil {
				t.Skipf("%s is not installed", args[0])
			}
			var h habit
			path := h.begin(t)
			_, out := start(t, eventful, path)
			h.seen(t, next(t, out), "", "the old text 0")
			cmd := exec.CommandContext(t.Context(), program, append(args[1:], filepath.Base(path))...)
			cmd.Dir, cmd.Env = filepath.Dir(path), append(os.Environ(), "TERM=dumb", "HOME="+filepath.Dir(path))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			want := "the new text 0"
			if args[0] == "vim" {
				want += "\n" // it ends the last line
			}
			for !h.seen(t, next(t, out), "the old text 0", want) {
			}
		})
	}
}

// TestEmptied: a file that was emptied may be about to be written; that it is
// empty is told once it stays so.
func TestEmptied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a")
		write(t, path, "content")
		w := New(Options{PollOnly: true, Poll: 100 * time.Millisecond})
		w.Set(path)
		out := make(chan Content, 16)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx, func(c Content) { out <- c }) }()
		if c := <-out; string(c.Data) != "content" {
			t.Errorf("%q", c.Data)
		}
		write(t, path, "")
		time.Sleep(DefaultEmptied - 200*time.Millisecond) // synthetic
		synctest.Wait()
		if len(out) != 0 {
			t.Errorf("%q was told at once", (<-out).Data)
		}
		write(t, path, "other")
		if c := <-out; string(c.Data) != "other" {
			t.Errorf("%q", c.Data)
		}
		write(t, path, "")
		if c := <-out; !c.Exists || len(c.Data) != 0 {
			t.Errorf("one that stays empty: %+v", c)
		}
		cancel()
		<-done
	})
}
