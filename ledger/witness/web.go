package witness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"gettier.dev/gettierd/ledger/snapshot"
)

// webStore keeps files by PUT below a URL, with access signed as for S3. Each
// checkpoint has a file of its own that is never written over; beside them one
// names the newest.
type webStore struct {
	base   url.URL
	access *Access          // nil = not signed
	now    func() time.Time // of signatures; nil = time.Now
	client *http.Client     // nil = direct
}

// webWait bounds one call.
const webWait = 30 * time.Second

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func newestName(origin string) string { return path.Base(origin) + "-newest.checkpoint" }

// errThere: the file is there already.
var errThere = errors.New("it is there already")

func (w *webStore) Put(ctx context.Context, origin string, size uint64, signed []byte) error {
	name := snapshot.Name(origin, size)
	err := w.put(ctx, name, signed, true)
	if errors.Is(err, errThere) {
		have, gerr := w.get(ctx, name)
		switch {
		case gerr != nil:
			err = gerr
		case !bytes.Equal(have, signed):
			err = fmt.Errorf("%w: %s", snapshot.ErrForked, name)
		default:
			err = nil
		}
	}
	if err == nil {
		err = w.put(ctx, newestName(origin), signed, false)
	}
	if err != nil {
		return fmt.Errorf("keep checkpoint: %w", err)
	}
	return nil
}

func (w *webStore) Newest(ctx context.Context, origin string) ([]byte, error) {
	b, err := w.get(ctx, newestName(origin))
	if err != nil {
		return nil, fmt.Errorf("read checkpoint: %w", err)
	}
	return b, nil
}

// put writes a file; fresh ones only where there is none yet (RFC 9110, 13.1.2;
// S3 has had it since 2024).
func (w *webStore) put(ctx context.Context, name string, data []byte, fresh bool) error {
	resp, err := w.do(ctx, http.MethodPut, name, data, fresh)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode/100 == 2:
		return nil
	case fresh && (resp.StatusCode == http.StatusPreconditionFailed || resp.StatusCode == http.StatusConflict):
		return errThere
	}
	return refused(resp)
}

// get reads a file, nil when there is none.
func (w *webStore) get(ctx context.Context, name string) ([]byte, error) {
	resp, err := w.do(ctx, http.MethodGet, name, nil, false)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	if resp.StatusCode != http.StatusOK {
		return nil, refused(resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, noteMax+1))
	if err == nil && len(b) > noteMax {
		err = errors.New("what is there is too large for a checkpoint")
	}
	return b, err
}

func (w *webStore) do(ctx context.Context, method, name string, data []byte, fresh bool) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, webWait)
	u := w.base
	u.Path = strings.TrimSuffix(u.Path, "/") + "/" + name
	u.RawPath = encoded(u.Path, true) // as it is signed
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(data))
	if err != nil {
		cancel()
		return nil, err
	}
	if data == nil {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	if data != nil {
		req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	if fresh {
		req.Header.Set("If-None-Match", "*")
	}
	if w.access != nil {
		if w.access.ID == "" || w.access.Secret == "" {
			cancel()
			return nil, errors.New("no access key is configured (audit.s3)")
		}
		sum := sha256.Sum256(data)
		payload := hex.EncodeToString(sum[:])
		req.Header.Set("X-Amz-Content-Sha256", payload)
		now := time.Now
		if w.now != nil {
			now = w.now
		}
		w.access.sign(req, "s3", payload, now())
	}
	client := w.client
	if client == nil {
		// A redirect would send what is signed, or what was kept, somewhere else.
		client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	resp, err := client.Do(req)
	if err != nil {
		cancel()
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // without the URL
		}
		return nil, err
	}
	resp.Body = closing{resp.Body, cancel}
	return resp, nil
}

type closing struct {
	io.ReadCloser
	cancel func()
}

func (c closing) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

// refused says what a store answered, in one clean line.
func refused(resp *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		b = nil
	}
	text := string(b)
	// S3 answers <Error><Code>…</Code><Message>…</Message>….
	if _, rest, ok := strings.Cut(text, "<Code>"); ok {
		text, _, _ = strings.Cut(rest, "</Code>")
	}
	text = strings.Map(func(c rune) rune {
		if c < 0x20 || c == 0x7f || c > 0x7e {
			return ' '
		}
		return c
	}, text)
	return fmt.Errorf("the store answered %d: %.80s", resp.StatusCode, strings.Join(strings.Fields(text), " "))
}
