package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/daemon/wire"
)

// numbers checks that the events of a Responses stream count upwards and gives
// the types of the items that its end tells, with their ids.
func numbers(t *testing.T, stream []byte) (items []string) {
	t.Helper()
	last := -1
	for line := range strings.Lines(string(stream)) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var ev struct {
			Type     string
			Number   int `json:"sequence_number"`
			Response struct {
				Output []struct{ Type, ID string }
			}
		}
		if err := json.Unmarshal([]byte(data), &ev); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if ev.Number <= last {
			t.Errorf("event %d after %d: %s", ev.Number, last, data)
		}
		last = ev.Number
		for _, it := range ev.Response.Output {
			items = append(items, it.Type+" "+strings.TrimRight(it.ID, "0123456789abcdef"))
		}
	}
	return items
}

// TestReasoningGoesWhereItsItemGoes: what led to a withheld call does not reach
// the client, whose next request would be refused with it alone.
func TestReasoningGoesWhereItsItemGoes(t *testing.T) {
	for name, tc := range map[string]struct {
		command string
		want    []string
	}{
		"released": {"ls", []string{"reasoning rs_text", "message msg_", "reasoning rs_call", "function_call fc_call"}},
		"refused":  {"rm -rf / --no-preserve-root", []string{"reasoning rs_text", "message msg_", "message msg_gettier_"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.answer = func(_ int, body []byte) (int, string, string) {
				if isDeclare(body) {
					return declareAnswer(wire.Responses, body, declared25)
				}
				return speak(wire.Responses, true, "I will do it.", "call1", "shell", fmt.Sprintf(`{"command":%q}`, tc.command))
			}
			out, err := r.request(wire.Responses, respRequest(true, true, user("do it")))
			if err != nil {
				t.Fatal(err)
			}
			ans := readClient(t, wire.Responses, true, out.buf.Bytes())
			if got := len(ans.Calls); got != strings.Count(strings.Join(tc.want, " "), "function_call") {
				t.Errorf("%d calls", got)
			}
			if diff := cmp.Diff(tc.want, numbers(t, out.buf.Bytes())); diff != "" {
				t.Error(diff)
			}
			if tc.command == "ls" {
				if _, _, whole := speak(wire.Responses, true, "I will do it.", "call1", "shell", `{"command":"ls"}`); whole != out.buf.String() {
					t.Error("the bytes of an answer that was only looked at changed")
				}
			}
		})
	}
}

// slow is an upstream body that comes event by event, with time between.
type slow struct {
	r    *rig
	rest []byte
}

func (s *slow) Read(b []byte) (int, error) {
	n := bytes.Index(s.rest, []byte("\n\n")) + 2
	if n < 2 {
		return 0, io.EOF
	}
	n = copy(b, s.rest[:n])
	s.rest = s.rest[n:]
	s.r.pass(10 * time.Second)
	return n, nil
}

func (s *slow) Close() error { return nil }

type slowUpstream struct {
	upstream
	body string
}

func (u slowUpstream) Call(context.Context, []byte) (*http.Response, error) {
	h := http.Header{"Content-Type": {"text/event-stream"}}
	return &http.Response{StatusCode: 200, Header: h, Body: &slow{u.r, []byte(u.body)}}, nil
}

// TestSilenceWhileHeld: a client hears something while long arguments are held
// back, and still gets one well-formed answer.
func TestSilenceWhileHeld(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			r := newRig(t)
			r.set.KeepAlive = 15 * time.Second
			call := `{"command":"ls -l"}`
			_, _, body := speak(f, true, "Looking.", "call1", "shell", call)
			out, err := r.request(f, ask(f, true, true, user("look around")), func(q *Request) { q.Upstream = slowUpstream{upstream{r}, body} })
			if err != nil {
				t.Fatal(err)
			}
			sign := map[wire.Format]string{wire.Chat: ": keep-alive", wire.Messages: "event: ping", wire.Responses: "event: response.in_progress"}[f]
			if n := strings.Count(out.buf.String(), sign) - strings.Count(body, sign); n < 1 {
				t.Errorf("no sign of life:\n%s", out.buf.String())
			}
			ans := readClient(t, f, true, out.buf.Bytes())
			if ans.Text != "Looking." || len(ans.Calls) != 1 || string(ans.Calls[0].Args) != call {
				t.Errorf("%+v", ans)
			}
			if f == wire.Responses {
				numbers(t, out.buf.Bytes())
			}
		})
	}
}
