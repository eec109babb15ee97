package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

// module is what a source tree must call itself to be built from.
const module = "gettier.dev/gettierd"

// missingError: a program that this command needs is not here.
type missingError struct{ what string }

func (e *missingError) Error() string { return e.what }

func missing(err error) bool {
	var m *missingError
	return errors.As(err, &m)
}

// findDaemon returns the gettierd to start: the one beside gettier. Only a
// gettier that go run started builds one first, and says so on say.
func findDaemon(ctx context.Context, say io.Writer) (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find own executable: %w", err)
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return "", fmt.Errorf("find own executable: %w", err)
	}
	beside := filepath.Join(filepath.Dir(exe), "gettierd")
	if fi, err := os.Stat(beside); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
		return beside, nil
	}
	if root, ok := runBySource(ctx, exe, sourceFile()); ok {
		return build(ctx, root, say)
	}
	return "", &missingError{fmt.Sprintf("gettierd is not installed beside gettier (%s).\n%s", filepath.Dir(exe), howToInstall(filepath.Dir(exe)))}
}

// sourceFile is this file's path as the compiler saw it; not absolute in a
// trimmed build.
func sourceFile() string {
	_, file, _, _ := runtime.Caller(0)
	return file
}

// howToInstall says where a gettierd comes from, judged by where this gettier did.
func howToInstall(dir string) string {
	if bi, ok := debug.ReadBuildInfo(); ok && bi.Main.Path == module && strings.HasPrefix(bi.Main.Version, "v") && !strings.Contains(bi.Main.Version, "+dirty") {
		return "Install it: GOBIN=" + dir + " go install " + module + "/daemon/gettierd@" + bi.Main.Version
	}
	return "Build it in the source tree of this gettier: go build -o " + filepath.Join(dir, "gettierd") + " ./daemon/gettierd"
}

var (
	tempBuild  = regexp.MustCompile(`^go-build[0-9]+$`)
	cacheBuild = regexp.MustCompile(`^([0-9a-f]{2})[0-9a-f]{62}-d$`)
)

// runBySource reports whether go run started this program from the source tree
// that it stands in, and where that is. A directory that only calls itself our
// module is never built from: the executable must lie where go puts what it
// runs, and have been compiled from that very tree.
func runBySource(ctx context.Context, exe, source string) (root string, ok bool) {
	if !filepath.IsAbs(source) || !inBuildDir(ctx, exe) {
		return "", false
	}
	root, err := filepath.EvalSymlinks(filepath.Join(filepath.Dir(source), "..", ".."))
	if err != nil {
		return "", false
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", false
	}
	first, _, _ := bytes.Cut(mod, []byte("\n"))
	if strings.TrimSpace(string(first)) != "module "+module {
		return "", false
	}
	wd, err := here()
	if err != nil || wd != root && !strings.HasPrefix(wd, root+string(filepath.Separator)) {
		return "", false
	}
	return root, true
}

// inBuildDir reports whether exe is a program that go run built: in a temporary
// work directory, or, from its second run on, in go's build cache.
func inBuildDir(ctx context.Context, exe string) bool {
	dir := filepath.Dir(exe)
	if filepath.Base(dir) == "exe" {
		work := filepath.Dir(filepath.Dir(dir)) // …/go-build123/b001/exe
		return tempBuild.MatchString(filepath.Base(work))
	}
	m := cacheBuild.FindStringSubmatch(filepath.Base(dir))
	if m == nil || filepath.Base(filepath.Dir(dir)) != m[1] {
		return false
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return false
	}
	cache, err := filepath.EvalSymlinks(strings.TrimSpace(string(out)))
	return err == nil && filepath.Dir(filepath.Dir(dir)) == cache
}

// build makes bin/gettierd of the source tree; where that cannot be written, one
// in the user's cache.
func build(ctx context.Context, root string, say io.Writer) (string, error) {
	out := filepath.Join(root, "bin", "gettierd")
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		cache, cerr := os.UserCacheDir()
		if cerr != nil {
			return "", fmt.Errorf("build gettierd: %w", err)
		}
		out = filepath.Join(cache, "gettier", "bin", "gettierd")
	}
	newPrinter(say).line("gettier was started by go run: building %s from %s", out, root)
	// The same flags as go run's, so that what it just compiled is not compiled
	// again; a checkout that git distrusts must not fail over its stamp.
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-buildvcs=false", "-o", out, "./daemon/gettierd")
	cmd.Dir = root
	if msg, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build gettierd: %w\n%s", err, bytes.TrimSpace(msg))
	}
	return out, nil
}

// ready is the line that gettierd prints when it serves.
type ready struct {
	Ready  bool   `json:"ready"`
	Proxy  string `json:"proxy"`
	Socket string `json:"socket"`
	PID    int    `json:"pid"`
}

func readReady(line []byte) (ready, error) {
	var r ready
	if err := json.Unmarshal(line, &r); err != nil || !r.Ready {
		return r, fmt.Errorf("gettierd said %q instead of being ready", bytes.TrimSpace(line))
	}
	return r, nil
}
