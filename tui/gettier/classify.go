package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/daemon/classify"
	"gettier.dev/gettierd/tui/words"
)

// maxLearned is the largest input of which later requests are used to tell what
// earlier ones were answered, in bytes.
const maxLearned = 512 << 20

func (a *app) classifyCommand() *cobra.Command {
	var (
		jsonl                  bool
		check, record, session string
	)
	cmd := &cobra.Command{
		Use:   "classify [flags] [FILE…]",
		Short: "say what kind of request a client sent, without a daemon",
		Long: "Says of recorded requests what the daemon would make of them: kind (a new prompt, a lap of an agent's\n" +
			"loop, a resend, a sub-agent, a side request), class of consequence and the rules behind it, conversation,\n" +
			"turn, and what the client says of its project. Names are made under a key of this command's own.\n\n" +
			"A FILE is a request as it came over the socket (request line, headers, blank line, body) or one JSON\n" +
			"object. With --jsonl each line of standard input is such an object:\n" +
			"  {\"path\": \"/v1/messages\", \"headers\": {…}, \"body\": {…}}\n" +
			"with \"method\", \"url\", \"query\", \"pid\" and \"id\" if you like; headers also as a list of pairs; the body also\n" +
			"as a string of its exact bytes or as \"body_base64\"; or the whole request as text in \"request\". Order\n" +
			"counts. \"answer\": {\"failed\": …, \"calls\": [{\"id\", \"name\", \"args\"}]} says what a request was answered;\n" +
			"in a file on standard input later requests tell it, a pipe is answered line by line. A line that cannot\n" +
			"be read is answered by {\"error\", \"line\"}, the rest goes on, and the exit code is 1.\n\n" +
			"--check DIR measures labelled sessions (CLIENT/SESSION/NNN.request and session.json) where they lie;\n" +
			"exit 1 when a kind is not the labelled one.\n" +
			"--record DIR adds each request that is classified as such a fixture, without secrets, ids and prose:\n" +
			"the first 24 bytes of each text stay, so look at it before you share it, and check the kind by hand.",
		Example: "  gettier classify --jsonl\n" +
			"  gettier classify --jsonl --record fixtures --session claude-code-2.2\n" +
			"  gettier classify 001.request 002.request\n" +
			"  gettier classify --check fixtures",
		RunE: func(_ *cobra.Command, files []string) error {
			switch {
			case check != "" && (jsonl || record != "" || len(files) > 0):
				return usage("--check stands alone")
			case check != "":
				return a.classifyCheck(check)
			case jsonl == (len(files) > 0):
				return usage("give files, or --jsonl and requests on standard input")
			case session != "" && record == "":
				return usage("--session names what --record adds")
			}
			c := &classifying{}
			if record != "" {
				key := make([]byte, 32)
				if _, err := rand.Read(key); err != nil {
					return fmt.Errorf("draw key: %w", err)
				}
				if session == "" {
					session = "recorded"
				}
				var err error
				if c.recorder, err = classify.NewRecorder(record, session, classify.NewSanitiser(key)); err != nil {
					return usage("%v", err)
				}
			}
			if jsonl {
				return a.classifyLines(c)
			}
			return a.classifyFiles(c, files)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&jsonl, "jsonl", false, "one JSON object a line, in and out")
	fl.StringVar(&check, "check", "", "measure labelled sessions below a directory")
	fl.StringVar(&record, "record", "", "add what is classified below a directory, as fixtures")
	fl.StringVar(&session, "session", "", "what --record names the session")
	return cmd
}

// classifying is one run: a memory of the requests as they came, a second one of
// what was recorded of them, and the answers that are known beforehand.
type classifying struct {
	live     classify.Classifier
	again    classify.Classifier
	recorder *classify.Recorder
	known    []classify.Request // with answers, in order; nil when nothing was learned
	n        int                // how many of them have been used
	wrote    int
	kept     int // could not be recorded
}

// classified answers one request.
type classified struct {
	classify.Result
	Recorded    string `json:"recorded,omitempty"`     // the fixture's file
	NotRecorded string `json:"not_recorded,omitempty"` // why there is none
}

func (c *classifying) one(q classify.Request) (classified, error) {
	if c.n < len(c.known) && q.Answer == nil {
		q.Answer = c.known[c.n].Answer
	}
	c.n++
	res, err := c.live.Classify(q)
	out := classified{Result: res}
	if err != nil || c.recorder == nil {
		return out, err
	}
	if out.Recorded, err = c.recorder.Add(q, res, c.again.Classify); err != nil {
		c.kept++
		out.NotRecorded = err.Error()
		return out, nil
	}
	c.wrote++
	return out, nil
}

func (a *app) classifyLines(c *classifying) error {
	if err := c.learn(a.in); err != nil {
		return err
	}
	bad, err := jsonLines(a.in, a.out, func(line []byte) (any, error) {
		q, err := classify.ParseJSON(line)
		if err != nil {
			c.n++
			return nil, err
		}
		return c.one(q)
	})
	if err != nil {
		return err
	}
	err = refusedLines(bad)
	if said := a.recorded(c); err == nil {
		err = said
	}
	return err
}

// learn reads an input that can be read again to its end, for what its later
// requests tell of its earlier ones.
func (c *classifying) learn(in io.Reader) error {
	s, ok := in.(io.ReadSeeker)
	if !ok {
		return nil
	}
	if f, ok := in.(*os.File); ok {
		if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
			return nil // a pipe or a terminal is answered line by line
		}
	}
	start, err := s.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil // it cannot be read twice after all
	}
	end, err := s.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = s.Seek(start, io.SeekStart)
	}
	if err == nil && end-start <= maxLearned {
		_, err = jsonLines(s, io.Discard, func(line []byte) (any, error) {
			q, perr := classify.ParseJSON(line)
			c.known = append(c.known, q) // a bad line keeps its place
			return nil, perr
		})
		if err == nil {
			classify.Learn(c.known)
			_, err = s.Seek(start, io.SeekStart)
		}
	}
	if err != nil {
		return fmt.Errorf("read requests: %w", err)
	}
	return nil
}

// recorded says what became of --record.
func (a *app) recorded(c *classifying) error {
	if c.recorder == nil {
		return nil
	}
	newPrinter(a.err).text("gettier: recorded "+words.Count(c.wrote, "request", "requests")+": look at them before you share them, and check their kinds", "")
	if c.kept > 0 {
		return &exit{code: exitFound, err: fmt.Errorf("%s could not be recorded: not_recorded says why", words.Count(c.kept, "request", "requests"))}
	}
	return nil
}

func (a *app) classifyFiles(c *classifying, files []string) error {
	qs := make([]classify.Request, len(files))
	for i, f := range files {
		raw, err := readRequestFile(f)
		if err != nil {
			return err
		}
		if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
			qs[i], err = classify.ParseJSON(raw)
		} else {
			qs[i], err = classify.ParseHTTP(raw)
		}
		if err != nil {
			return &exit{code: exitFound, err: fmt.Errorf("read %s: %w", f, err)}
		}
	}
	classify.Learn(qs)
	c.known = qs
	p := newPrinter(a.out)
	var results []classified
	for i := range qs {
		res, err := c.one(qs[i])
		if err != nil {
			return &exit{code: exitFound, err: fmt.Errorf("classify %s: %w", files[i], err)}
		}
		results = append(results, res)
	}
	if a.json {
		p.value(results)
		return a.recorded(c)
	}
	for i, r := range results {
		p.text(filepath.Base(files[i]), "")
		p.text(string(r.Kind)+": "+r.Why, "  ")
		p.text(string(r.Class)+": "+strings.Join(r.Reasons, ", "), "  ")
		if r.Client != "" {
			p.text("client "+string(r.Client)+", "+string(r.Format), "  ")
		}
		if r.Conversation != "" {
			p.line("  conversation %s, prompt %d, turn %s", r.Conversation, r.Prompt, r.TurnKey)
		}
		for _, d := range r.Project.Directories {
			p.text(d, "  ")
		}
		if r.NotRecorded != "" {
			p.text("not recorded: "+r.NotRecorded, "  ")
		}
	}
	return a.recorded(c)
}

func readRequestFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, usage("open request: %v", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxJSONLine+1))
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	if len(raw) > maxJSONLine {
		return nil, usage("%s is longer than %d bytes", name, maxJSONLine)
	}
	return raw, nil
}

// checkedSessions is what --check says in JSON.
type checkedSessions struct {
	Requests int            `json:"requests"`
	Right    int            `json:"right"`
	Clients  []clientScore  `json:"clients"`
	Wrong    []wrongRequest `json:"wrong"`
}

type clientScore struct {
	Client   string `json:"client"`
	Requests int    `json:"requests"`
	Right    int    `json:"right"`
}

type wrongRequest struct {
	Session string `json:"session"`
	File    string `json:"file"`
	Label   string `json:"label"`
	Note    string `json:"note"`
	Kind    string `json:"kind,omitempty"`
	Why     string `json:"why,omitempty"`
	Error   string `json:"error,omitempty"`
}

func (a *app) classifyCheck(dir string) error {
	sum := checkedSessions{Clients: []clientScore{}, Wrong: []wrongRequest{}}
	err := classify.Sessions(dir, func(l classify.Labelled) error {
		client, _, _ := strings.Cut(l.Session, "/")
		if n := len(sum.Clients); n == 0 || sum.Clients[n-1].Client != client {
			sum.Clients = append(sum.Clients, clientScore{Client: client})
		}
		score := &sum.Clients[len(sum.Clients)-1]
		sum.Requests++
		score.Requests++
		if l.Right() {
			sum.Right++
			score.Right++
			return nil
		}
		w := wrongRequest{Session: l.Session, File: l.File, Label: l.Label, Note: l.Note, Kind: string(l.Result.Kind), Why: l.Result.Why}
		if l.Err != nil {
			w.Error = l.Err.Error()
		}
		sum.Wrong = append(sum.Wrong, w)
		return nil
	})
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return usage("%v", err)
	}
	if err != nil {
		return &exit{code: exitFound, err: err}
	}
	p := newPrinter(a.out)
	if a.json {
		p.value(sum)
	} else {
		for _, c := range sum.Clients {
			p.text(fmt.Sprintf("%-20s %3d of %3d right", c.Client, c.Right, c.Requests), "")
		}
		for _, w := range sum.Wrong {
			said := w.Kind + " (" + w.Why + ")"
			if w.Error != "" {
				said = w.Error
			}
			p.text(w.Session+"/"+w.File+": "+said+", labelled "+w.Label+": "+w.Note, "")
		}
		p.line("%d of %d right", sum.Right, sum.Requests)
	}
	if len(sum.Wrong) > 0 {
		return &exit{code: exitFound}
	}
	return nil
}
