package witness

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"gettier.dev/gettierd/ledger/snapshot"
)

const origin = "gettier.dev/log/0011223344556677"

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func noteOf(n int) []byte {
	return fmt.Appendf(nil, "%s\n%d\nAAAA\n\n— %s BBBB\n", origin, n, origin)
}

// keeps has a place keep two checkpoints and looks what it has.
func keeps(t *testing.T, p Place) {
	t.Helper()
	ctx := context.Background()
	if b, err := p.Newest(ctx, origin); err != nil || b != nil {
		t.Fatalf("an empty place has %q, %v", b, err)
	}
	for _, n := range []int{5, 5, 17} {
		if err := p.Put(ctx, origin, uint64(n), noteOf(n)); err != nil {
			t.Fatal(err)
		}
		if b, err := p.Newest(ctx, origin); err != nil || !bytes.Equal(b, noteOf(n)) {
			t.Fatalf("after %d: %q, %v", n, b, err)
		}
	}
	if err := p.Put(ctx, origin, 17, noteOf(18)); !errors.Is(err, snapshot.ErrForked) {
		t.Errorf("another one of the same size: %v", err)
	}
	if b, err := p.Newest(ctx, "gettier.dev/log/ffffffffffffffff"); err != nil || b != nil {
		t.Errorf("another log's: %q, %v", b, err)
	}
	if err := p.Put(ctx, "gettier.dev/log/ffffffffffffffff", 3, noteOf(3)); err != nil {
		t.Error(err)
	}
	if b, err := p.Newest(ctx, origin); err != nil || !bytes.Equal(b, noteOf(17)) {
		t.Errorf("beside another log's: %q, %v", b, err)
	}
}

func TestDirectory(t *testing.T) {
	p, err := Parse("dir:"+t.TempDir(), Access{})
	if err != nil {
		t.Fatal(err)
	}
	keeps(t, p)
}

// TestGit: a ref beside the branches, pushed to a remote; no hook runs.
func TestGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	git := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	repo, far := t.TempDir(), t.TempDir()
	git(repo, "init", "-q")
	git(far, "init", "-q", "--bare")
	git(repo, "remote", "add", "away", far)
	ran := filepath.Join(t.TempDir(), "ran")
	for _, hook := range []string{"reference-transaction", "pre-push", "post-commit"} {
		if err := os.WriteFile(filepath.Join(repo, ".git", "hooks", hook), []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p, err := Parse("git:"+repo+"#away", Access{})
	if err != nil {
		t.Fatal(err)
	}
	keeps(t, p)
	if out := git(far, "log", "--format=%s", Ref); strings.Count(out, "\n") != 3 || !strings.Contains(out, origin+": 17 entries") {
		t.Errorf("at the remote:\n%s", out)
	}
	if out := git(repo, "status", "--porcelain"); out != "" {
		t.Errorf("the work tree: %s", out)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a hook of the repository ran")
	}
	if err := (repository{dir: t.TempDir()}).Put(context.Background(), origin, 1, noteOf(1)); err == nil {
		t.Error("no repository, and no error")
	}
}

// fakeS3 is a bucket that takes no request unless its signature is right, worked
// out from the bytes of the request alone.
type fakeS3 struct {
	t        *testing.T
	id, key  string
	now      func() time.Time
	mu       sync.Mutex
	objects  map[string][]byte
	requests int
}

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	deny := func(status int, code string) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>x</Message></Error>`, code)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if code := f.check(r, body); code != "" {
		deny(http.StatusForbidden, code)
		return
	}
	have, there := f.objects[r.URL.Path]
	switch r.Method {
	case http.MethodPut:
		if there && r.Header.Get("If-None-Match") == "*" {
			deny(http.StatusPreconditionFailed, "PreconditionFailed")
			return
		}
		f.objects[r.URL.Path] = body
	case http.MethodGet:
		if !there {
			deny(http.StatusNotFound, "NoSuchKey")
			return
		}
		w.Write(have)
	default:
		deny(http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

// check is the code of S3's error for this request, "" when it is signed.
func (f *fakeS3) check(r *http.Request, body []byte) string {
	auth, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if !ok {
		return "AccessDenied"
	}
	part := map[string]string{}
	for p := range strings.SplitSeq(auth, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		part[name] = value
	}
	scope := strings.Split(part["Credential"], "/")
	if len(scope) != 5 || scope[0] != f.id {
		return "InvalidAccessKeyId"
	}
	stamp := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", stamp)
	if err != nil || !strings.HasPrefix(stamp, scope[1]) || f.now().Sub(at).Abs() > 15*time.Minute {
		return "RequestTimeTooSkewed"
	}
	sum := sha256.Sum256(body)
	payload := hex.EncodeToString(sum[:])
	if r.Header.Get("X-Amz-Content-Sha256") != payload {
		return "XAmzContentSHA256Mismatch"
	}
	names := strings.Split(part["SignedHeaders"], ";")
	if !sort.StringsAreSorted(names) || !strings.Contains(";"+part["SignedHeaders"]+";", ";host;") {
		return "SignatureDoesNotMatch"
	}
	canonical := r.Method + "\n" + strings.SplitN(r.RequestURI, "?", 2)[0] + "\n" + r.URL.RawQuery + "\n"
	for _, n := range names {
		v := r.Header.Get(n)
		if n == "host" {
			v = r.Host
		}
		canonical += n + ":" + v + "\n"
	}
	canonical += "\n" + part["SignedHeaders"] + "\n" + payload
	hashed := sha256.Sum256([]byte(canonical))
	mac := func(key []byte, s string) []byte {
		m := hmac.New(sha256.New, key)
		io.WriteString(m, s)
		return m.Sum(nil)
	}
	key := mac(mac(mac(mac([]byte("AWS4"+f.key), scope[1]), scope[2]), scope[3]), "aws4_request")
	want := mac(key, "AWS4-HMAC-SHA256\n"+stamp+"\n"+strings.Join(scope[1:], "/")+"\n"+hex.EncodeToString(hashed[:]))
	if got, err := hex.DecodeString(part["Signature"]); err != nil || !hmac.Equal(got, want) {
		return "SignatureDoesNotMatch"
	}
	return ""
}

func TestS3(t *testing.T) {
	f := &fakeS3{t: t, id: "an-id", key: "a/secret", now: func() time.Time { return noon }, objects: map[string][]byte{}}
	srv := httptest.NewServer(f)
	defer srv.Close()
	place := func(a Access, at time.Time) Place {
		t.Helper()
		p, err := Parse("s3:"+srv.URL+"/bucket/of logs/é+", a)
		if err != nil {
			t.Fatal(err)
		}
		p.(*webStore).now = func() time.Time { return at }
		return p
	}
	keeps(t, place(Access{ID: f.id, Secret: f.key, Region: "eu-west-3"}, noon))
	if _, ok := f.objects["/bucket/of logs/é+/0011223344556677-0000000000000017.checkpoint"]; !ok {
		t.Errorf("the bucket has %v", f.objects)
	}
	for name, c := range map[string]struct {
		p    Place
		want string
	}{
		"another secret": {place(Access{ID: f.id, Secret: "other"}, noon), "SignatureDoesNotMatch"},
		"another id":     {place(Access{ID: "other", Secret: f.key}, noon), "InvalidAccessKeyId"},
		"another hour":   {place(Access{ID: f.id, Secret: f.key}, noon.Add(time.Hour)), "RequestTimeTooSkewed"},
		"no key":         {place(Access{}, noon), "no access key"},
	} {
		err := c.p.Put(context.Background(), origin, 20, noteOf(20))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (strings.Contains(err.Error(), f.key) || strings.Contains(err.Error(), srv.URL)) {
			t.Errorf("%s: the error tells too much: %v", name, err)
		}
	}
}

// TestWeb: a plain store, and what a hostile one answers.
func TestWeb(t *testing.T) {
	var mu sync.Mutex
	files := map[string][]byte{}
	answer := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch answer {
		case "large":
			w.Write(bytes.Repeat([]byte("x"), noteMax+1))
			return
		case "redirect":
			http.Redirect(w, r, "http://127.0.0.1:1/elsewhere", http.StatusTemporaryRedirect)
			return
		case "escape":
			w.WriteHeader(http.StatusTeapot)
			io.WriteString(w, "\x1b[2J\n\x07 no")
			return
		}
		b, there := files[r.URL.Path]
		switch {
		case r.Method == http.MethodPut && there && r.Header.Get("If-None-Match") == "*":
			w.WriteHeader(http.StatusPreconditionFailed)
		case r.Method == http.MethodPut:
			files[r.URL.Path], _ = io.ReadAll(r.Body)
			w.WriteHeader(http.StatusCreated)
		case there:
			w.Write(b)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer srv.Close()
	p, err := Parse(srv.URL+"/logs/", Access{})
	if err != nil {
		t.Fatal(err)
	}
	keeps(t, p)
	for _, a := range []string{"large", "redirect", "escape"} {
		mu.Lock()
		answer = a
		mu.Unlock()
		if b, err := p.Newest(context.Background(), origin); err == nil || strings.ContainsAny(err.Error(), "\x1b\x07\n") {
			t.Errorf("%s: %.20q %v", a, b, err)
		}
	}
}

func TestParse(t *testing.T) {
	for spec, ok := range map[string]bool{
		"dir:/a": true, "dir:a": false, "git:/a": true, "git:/a#origin": true, "git:/a#--upload-pack=x": false, "git:/a#ext::sh": false, "git:a": false,
		"https://h/p": true, "http://h/p": false, "http://127.0.0.1:9/p": true, "https://u:p@h/p": false, "https://h/p?q=1": false,
		"s3:https://h/bucket": true, "s3:https://h": false, "s3:http://h/b": false, "ftp://h/p": false, "": false, "s3:": false,
	} {
		if err := Check(spec); (err == nil) != ok || err != nil && !errors.Is(err, ErrSpec) {
			t.Errorf("%q: %v", spec, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("s3:https://h/bucket/x")
	f.Add("git:/a#b")
	f.Fuzz(func(t *testing.T, spec string) {
		p, err := Parse(spec, Access{})
		if err != nil {
			return
		}
		if w, ok := p.(*webStore); ok && (w.base.User != nil || w.base.Scheme == "http" && !loopback(w.base.Hostname())) {
			t.Fatalf("%q goes in the clear", spec)
		}
		if w, ok := p.(*webStore); ok {
			if _, err := url.Parse(w.base.String()); err != nil {
				t.Fatalf("%q: %v", spec, err)
			}
		}
	})
}
