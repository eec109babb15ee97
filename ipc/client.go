package ipc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
)

// maxAnswer bounds what a client reads of one answer in bytes.
const maxAnswer = 64 << 20

// Client calls one daemon. It is safe for concurrent use.
type Client struct {
	path string
	via  string
	http *http.Client
	conn net.Conn      // the only connection, or nil
	idle time.Duration // a stream silent for longer is taken as dead
	wait time.Duration // first pause before reconnecting
}

// New makes a client of the socket at path; via is cli, tui, editor or harness.
// Nothing is connected yet.
func New(path, via string) *Client {
	uid := os.Geteuid()
	return newClient(path, via, &http.Transport{
		DialContext:  func(ctx context.Context, _, _ string) (net.Conn, error) { return dialOwn(ctx, path, uid) },
		MaxIdleConns: 2, IdleConnTimeout: 30 * time.Second,
	})
}

// inherited is the path of a client that was given its connection.
const inherited = "an inherited connection"

// Over makes a client that speaks over conn and nothing else. Calls follow one
// another; one that is called off, or a Watch, takes the connection with it. Who
// is at the other end is the caller's to know. Close closes conn.
func Over(conn net.Conn, via string) *Client {
	free := make(chan net.Conn, 1) // dialled once, never again
	free <- conn
	c := newClient(inherited, via, &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case conn := <-free:
				return conn, nil
			default:
				return nil, &Unreachable{inherited, errors.New("it is used up")}
			}
		},
		MaxConnsPerHost: 1,
	})
	c.conn = conn
	return c
}

func newClient(path, via string, t *http.Transport) *Client {
	t.DisableCompression = true
	return &Client{
		path: path, via: via, idle: 45 * time.Second, wait: 100 * time.Millisecond,
		http: &http.Client{
			Transport: t,
			// The API never redirects; following one would leave the socket.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Path is the socket's path.
func (c *Client) Path() string { return c.path }

// Close lets idle connections go, and a given one for good.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	if c.conn != nil {
		_ = c.conn.Close() // already closed: what was wanted
	}
}

// send makes a request and returns an answer with a 2xx status; anything else
// is a *Problem, an *Unreachable or a *Foreign.
func (c *Client) send(ctx context.Context, method, path string, q url.Values, body any) (*http.Response, error) {
	var rd io.Reader
	if body != nil {
		b, err := Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("write request: %w", err)
		}
		rd = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://gettierd"+path, rd)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.URL.RawQuery = q.Encode()
	req.Header.Set(ViaHeader, c.via)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		return nil, readProblem(resp)
	}
	return resp, nil
}

// lost sorts a transport error: ours already says what is wrong.
func (c *Client) lost(ctx context.Context, err error) error {
	var (
		u *Unreachable
		f *Foreign
	)
	switch {
	case errors.As(err, &u):
		return u
	case errors.As(err, &f):
		return f
	case ctx.Err() != nil:
		return ctx.Err()
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return &Unreachable{c.path, err}
}

func readProblem(resp *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody))
	p := &Problem{}
	if err != nil || json.Unmarshal(b, p) != nil || p.Title == "" {
		p = &Problem{Title: http.StatusText(resp.StatusCode), Detail: "the answer is not gettierd's"}
	}
	p.Status = resp.StatusCode
	return p
}

// call is one request with a JSON answer.
func call[T any](ctx context.Context, c *Client, method, path string, q url.Values, body any) (T, error) {
	var v T
	resp, err := c.send(ctx, method, path, q, body)
	if err != nil {
		return v, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return v, c.lost(ctx, err)
	}
	if len(b) > maxAnswer {
		return v, fmt.Errorf("read answer: more than %d bytes", maxAnswer)
	}
	if resp.StatusCode == http.StatusNoContent {
		return v, nil
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("read answer of %s: %w", path, err)
	}
	return v, nil
}

func get[T any](ctx context.Context, c *Client, path string, q url.Values) (T, error) {
	return call[T](ctx, c, http.MethodGet, path, q, nil)
}

// params builds a query without its empty values.
func params(p Page, kv ...string) url.Values {
	q := url.Values{}
	if p.Limit > 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.Cursor != "" {
		q.Set("cursor", p.Cursor)
	}
	for i := 0; i+1 < len(kv); i += 2 {
		if kv[i+1] != "" {
			q.Set(kv[i], kv[i+1])
		}
	}
	return q
}

// Status asks how the daemon is.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return get[Status](ctx, c, "/v1/status", nil)
}

// Facts lists facts.
func (c *Client) Facts(ctx context.Context, q FactQuery) (List[lemma.Fact], error) {
	return get[List[lemma.Fact]](ctx, c, "/v1/facts",
		params(q.Page, "scope", q.Scope, "status", q.Status, "provenance", q.Provenance, "text", q.Text))
}

// Fact reads one fact.
func (c *Client) Fact(ctx context.Context, id string) (lemma.Fact, error) {
	return get[lemma.Fact](ctx, c, "/v1/facts/"+url.PathEscape(id), nil)
}

// Holds lists holds.
func (c *Client) Holds(ctx context.Context, q HoldQuery) (List[lemma.Hold], error) {
	return get[List[lemma.Hold]](ctx, c, "/v1/holds", params(q.Page, "state", q.State))
}

// Hold reads one hold.
func (c *Client) Hold(ctx context.Context, id string) (lemma.Hold, error) {
	return get[lemma.Hold](ctx, c, "/v1/holds/"+url.PathEscape(id), nil)
}

// AnswerHold answers every item of a hold; a person's call.
func (c *Client) AnswerHold(ctx context.Context, id string, a HoldAnswer) (lemma.Hold, error) {
	return call[lemma.Hold](ctx, c, http.MethodPost, "/v1/holds/"+url.PathEscape(id)+"/answer", nil, a)
}

// RevokeAnswer takes back what a hold was answered; a person's call. Holds that were
// answered along with it come back behind it.
func (c *Client) RevokeAnswer(ctx context.Context, id string, r Revocation) ([]lemma.Hold, error) {
	return call[[]lemma.Hold](ctx, c, http.MethodPost, "/v1/holds/"+url.PathEscape(id)+"/revoke", nil, r)
}

// Tell states a fact; a person's call.
func (c *Client) Tell(ctx context.Context, t Tell) (lemma.Fact, error) {
	return call[lemma.Fact](ctx, c, http.MethodPost, "/v1/facts", nil, t)
}

// InvalidateFact withdraws a fact; a person's call.
func (c *Client) InvalidateFact(ctx context.Context, id string, i Invalidation) (lemma.Fact, error) {
	return call[lemma.Fact](ctx, c, http.MethodPost, "/v1/facts/"+url.PathEscape(id)+"/invalidate", nil, i)
}

// Turns lists turns, newest first.
func (c *Client) Turns(ctx context.Context, q TurnQuery) (List[Turn], error) {
	return get[List[Turn]](ctx, c, "/v1/turns",
		params(q.Page, "scope", q.Scope, "conversation", q.Conversation, "decision", q.Decision, "agent", q.Agent))
}

// Turn reads the whole story of a turn.
func (c *Client) Turn(ctx context.Context, id string) (TurnDetail, error) {
	return get[TurnDetail](ctx, c, "/v1/turns/"+url.PathEscape(id), nil)
}

// Audit lists entries after since; nil starts at the first.
func (c *Client) Audit(ctx context.Context, since *uint64, p Page) (List[Entry], error) {
	s := ""
	if since != nil {
		s = strconv.FormatUint(*since, 10)
	}
	return get[List[Entry]](ctx, c, "/v1/audit", params(p, "since", s))
}

// Checkpoint reads the newest signed checkpoint.
func (c *Client) Checkpoint(ctx context.Context) ([]byte, error) {
	return c.bytes(ctx, "/v1/audit/checkpoint")
}

// Blob reads a stored blob by its SHA-256 in hex.
func (c *Client) Blob(ctx context.Context, sum string) ([]byte, error) {
	return c.bytes(ctx, "/v1/blobs/"+url.PathEscape(sum))
}

func (c *Client) bytes(ctx context.Context, path string) ([]byte, error) {
	resp, err := c.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	if len(b) > maxAnswer {
		return nil, fmt.Errorf("read answer: more than %d bytes", maxAnswer)
	}
	return b, nil
}

// Sensors lists definitions and their states.
func (c *Client) Sensors(ctx context.Context, q SensorQuery) (List[Sensor], error) {
	return get[List[Sensor]](ctx, c, "/v1/sensors", params(q.Page, "project", q.Project, "state", q.State))
}

// SensorDiff shows what approving would change.
func (c *Client) SensorDiff(ctx context.Context, id, project string) (SensorDiff, error) {
	return get[SensorDiff](ctx, c, "/v1/sensors/"+url.PathEscape(id)+"/diff", params(Page{}, "project", project))
}

// Packs lists the sets of sensors that are part of gettierd.
func (c *Client) Packs(ctx context.Context) (List[Pack], error) {
	return get[List[Pack]](ctx, c, "/v1/packs", nil)
}

// TrySensor runs a sensor once.
func (c *Client) TrySensor(ctx context.Context, id string, t SensorTry) (SensorTried, error) {
	return call[SensorTried](ctx, c, http.MethodPost, "/v1/sensors/"+url.PathEscape(id)+"/run", nil, t)
}

// ApproveSensors pins definitions; a person's call.
func (c *Client) ApproveSensors(ctx context.Context, a SensorApproval) (SensorsApproved, error) {
	return call[SensorsApproved](ctx, c, http.MethodPost, "/v1/sensors/approve", nil, a)
}

// Projects lists the registered roots.
func (c *Client) Projects(ctx context.Context) (List[Project], error) {
	return get[List[Project]](ctx, c, "/v1/projects", nil)
}

// AddProject registers a root; a person's call.
func (c *Client) AddProject(ctx context.Context, p Project) (Project, error) {
	return call[Project](ctx, c, http.MethodPost, "/v1/projects", nil, p)
}

// RemoveProject forgets a root; a person's call.
func (c *Client) RemoveProject(ctx context.Context, name string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, "/v1/projects/"+url.PathEscape(name), nil, nil)
	return err
}

// Config reads the configuration in force.
func (c *Client) Config(ctx context.Context) (Config, error) {
	return get[Config](ctx, c, "/v1/config", nil)
}

// ApproveConfig takes the pending configuration with this hash; a person's call.
func (c *Client) ApproveConfig(ctx context.Context, a ConfigApproval) (Config, error) {
	return call[Config](ctx, c, http.MethodPost, "/v1/config/approve", nil, a)
}

// Verify has the daemon check its log; progress may be nil.
func (c *Client) Verify(ctx context.Context, progress func(Progress)) (Verification, error) {
	resp, err := c.send(ctx, http.MethodPost, "/v1/audit/verify", nil, nil)
	if err != nil {
		return Verification{}, err
	}
	defer resp.Body.Close()
	rd := newFrames(resp.Body)
	for {
		f, err := rd.next()
		if err != nil {
			return Verification{}, c.lost(ctx, err)
		}
		switch f.event {
		case "progress":
			var p Progress
			if err := json.Unmarshal(f.data, &p); err != nil {
				return Verification{}, fmt.Errorf("read progress: %w", err)
			}
			if progress != nil {
				progress(p)
			}
		case "problem":
			return Verification{}, frameProblem(f)
		case "report":
			var v Verification
			if err := json.Unmarshal(f.data, &v); err != nil {
				return Verification{}, fmt.Errorf("read report: %w", err)
			}
			return v, nil
		}
	}
}

func frameProblem(f frame) error {
	p := &Problem{}
	if err := json.Unmarshal(f.data, p); err != nil {
		return fmt.Errorf("read problem: %w", err)
	}
	return p
}
