// Package endpoint makes clients of OpenAI-compatible endpoints that the action gate
// asks beside its own rules: no redirect is followed, and an answer ends where no
// honest one would.
package endpoint

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// Options say which model of which endpoint is asked.
type Options struct {
	URL   string // with /v1, as the endpoint's own documents give it
	Model string
	Key   string // "" where it asks for none
}

// New makes a client; nothing is asked yet. keys is the section of the configuration
// that the options come from, most bounds an answer in bytes.
func New(keys string, o Options, most int64) (*openai.Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s.url %q: want http://HOST[:PORT]/v1 or https://HOST/v1", keys, o.URL)
	}
	if o.Model == "" {
		return nil, fmt.Errorf("%s.model is missing: name a model of %s", keys, o.URL)
	}
	c := openai.DefaultConfig(o.Key)
	c.BaseURL = strings.TrimRight(o.URL, "/")
	c.HTTPClient = &http.Client{
		Transport:     bounded{&http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute}, most},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return openai.NewClientWithConfig(c), nil
}

type bounded struct {
	base http.RoundTripper
	most int64
}

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.base.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, b.most), resp.Body}
	}
	return resp, err
}
