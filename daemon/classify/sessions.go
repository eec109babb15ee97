package classify

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxFile bounds a file of a recording, in bytes.
const maxFile = 64 << 20

// session is what session.json says: which requests there are, of which kind and
// why, and what the upstream answered.
type session struct {
	Client   string           `json:"client"`
	Version  string           `json:"version,omitempty"`
	Session  string           `json:"session"`
	Steps    []string         `json:"steps"`
	Requests []sessionRequest `json:"requests"`
	Answers  []sessionAnswer  `json:"answers"`
}

type sessionRequest struct {
	File   string `json:"file"`
	Kind   string `json:"kind"`
	Why    string `json:"why"`
	Method string `json:"method"`
	Path   string `json:"path"`
}

type sessionAnswer struct {
	N     string            `json:"n"`
	Text  string            `json:"text,omitempty"`
	Calls []json.RawMessage `json:"calls,omitempty"`
	Cut   *int              `json:"cut_after_events,omitempty"`
	Raw   json.RawMessage   `json:"raw,omitempty"`
}

// Labelled is one request of a recorded session beside what is made of it.
type Labelled struct {
	Session string // CLIENT/SESSION below the directory
	File    string
	Label   string // its kind, by hand
	Note    string // why, by hand
	Result  Result
	Err     error // it cannot be read
}

// Right reports that the kind is the labelled one.
func (l Labelled) Right() bool { return l.Err == nil && string(l.Result.Kind) == l.Label }

// Sessions classifies every labelled session below dir, each in its own memory
// and order, and gives each request to each. A session is a directory with a
// session.json; nothing is taken from the names of files.
func Sessions(dir string, each func(Labelled) error) error {
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "session.json" && d.Type().IsRegular() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("look for sessions: %w", err)
	}
	if len(found) == 0 {
		return fmt.Errorf("no session.json below %s", dir)
	}
	slices.Sort(found)
	for _, f := range found {
		name, err := filepath.Rel(dir, filepath.Dir(f))
		if err != nil {
			return fmt.Errorf("name session: %w", err)
		}
		if err := replay(filepath.Dir(f), name, each); err != nil {
			return err
		}
	}
	return nil
}

func replay(dir, name string, each func(Labelled) error) error {
	s, err := readSession(dir)
	if err != nil {
		return err
	}
	answers := map[string]*Answer{}
	for _, a := range s.Answers {
		got := &Answer{Failed: a.Cut != nil || given(a.Raw)}
		for _, c := range a.Calls {
			var call struct {
				ID   string          `json:"id"`
				Name string          `json:"name"`
				Args json.RawMessage `json:"args"`
			}
			if err := json.Unmarshal(c, &call); err != nil {
				return fmt.Errorf("read %s: answer %s: %w", filepath.Join(dir, "session.json"), a.N, err)
			}
			got.Calls = append(got.Calls, Call{call.ID, call.Name, call.Args})
		}
		answers[a.N+".request"] = got
	}
	var c Classifier
	for _, r := range s.Requests {
		l := Labelled{Session: filepath.ToSlash(name), File: r.File, Label: r.Kind, Note: r.Why}
		if r.File != filepath.Base(r.File) {
			return fmt.Errorf("read %s: the file %.80q is not beside it", filepath.Join(dir, "session.json"), r.File)
		}
		raw, err := readFile(filepath.Join(dir, r.File))
		if err != nil {
			return fmt.Errorf("read request: %w", err)
		}
		q, err := ParseHTTP(raw)
		if err == nil {
			q.Answer = answers[r.File]
			l.Result, err = c.Classify(q)
		}
		l.Err = err
		if err := each(l); err != nil {
			return err
		}
	}
	return nil
}

func readSession(dir string) (session, error) {
	var s session
	name := filepath.Join(dir, "session.json")
	raw, err := readFile(name)
	if err != nil {
		return s, fmt.Errorf("read session: %w", err)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("read %s: %w", name, err)
	}
	return s, nil
}

func readFile(name string) ([]byte, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxFile {
		return nil, fmt.Errorf("%s is no file of at most %d bytes", name, maxFile)
	}
	return os.ReadFile(name)
}

// Recorder adds fixtures below a directory, in the layout that Sessions reads.
type Recorder struct {
	dir     string
	session string
	clean   *Sanitiser
	client  string              // the first that was named
	open    map[string]*session // by directory
}

// errName refuses a session's name that is no plain directory name.
var errName = errors.New("a session's name is made of letters, digits, dot, dash and underscore")

// NewRecorder records into DIR/CLIENT/SESSION. clean takes out what is nobody's
// business; all requests of one recording go through the same one.
func NewRecorder(dir, name string, clean *Sanitiser) (*Recorder, error) {
	if !plainName(name) {
		return nil, errName
	}
	return &Recorder{dir: dir, session: name, clean: clean, open: map[string]*session{}}, nil
}

func plainName(s string) bool {
	if s == "" || len(s) > 80 || s[0] == '.' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// Add writes the request as the next fixture of its client and returns the file's
// name. again classifies what is written; a fixture that would not be taken for
// what the request was is refused, since it would test nothing.
func (r *Recorder) Add(q Request, res Result, again func(Request) (Result, error)) (string, error) {
	safe, err := r.clean.Request(q)
	if err != nil {
		return "", fmt.Errorf("sanitise request: %w", err)
	}
	got, err := again(safe)
	if err != nil {
		return "", fmt.Errorf("read the sanitised request: %w", err)
	}
	if got.Kind != res.Kind || got.Client != res.Client {
		return "", fmt.Errorf("without its prose the request is %s of client %q, not %s of %q: what tells it apart stands beyond what is kept", got.Kind, got.Client, res.Kind, res.Client)
	}
	// A request that names no client, a sub-agent's for one, belongs to the one
	// that is being recorded.
	client := cmp.Or(string(res.Client), r.client, "other")
	r.client = cmp.Or(r.client, string(res.Client))
	dir := filepath.Join(r.dir, client, r.session)
	s := r.open[dir]
	if s == nil {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", fmt.Errorf("make fixture directory: %w", err)
		}
		old, err := readSession(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			s = &session{Client: client, Session: r.session, Version: version(safe), Steps: []string{}, Answers: []sessionAnswer{}}
		case err != nil:
			return "", err
		default:
			s = &old
		}
		r.open[dir] = s
	}
	n := len(s.Requests) + 1
	file := fmt.Sprintf("%03d.request", n)
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", fmt.Errorf("write fixture: %w", err)
	}
	_, err = f.Write(HTTP(safe))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return "", fmt.Errorf("write fixture: %w", err)
	}
	s.Requests = append(s.Requests, sessionRequest{File: file, Kind: string(res.Kind), Why: "as classified; check it by hand: " + res.Why, Method: safe.Method, Path: safe.Path})
	if safe.Answer != nil {
		a := sessionAnswer{N: fmt.Sprintf("%03d", n)}
		if safe.Answer.Failed {
			a.Cut = new(int)
		}
		for _, c := range safe.Answer.Calls {
			args := json.RawMessage(c.Args)
			if !json.Valid(args) {
				args = json.RawMessage("{}")
			}
			b, err := json.Marshal(map[string]any{"id": c.ID, "name": c.Name, "args": args})
			if err != nil {
				return "", fmt.Errorf("write session: %w", err)
			}
			a.Calls = append(a.Calls, b)
		}
		s.Answers = append(s.Answers, a)
	}
	return filepath.Join(dir, file), r.save(dir, s)
}

func (r *Recorder) save(dir string, s *session) error {
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return fmt.Errorf("write session: %w", err)
	}
	tmp := filepath.Join(dir, ".session.json.new")
	if err := os.WriteFile(tmp, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write session: %w", err)
	}
	if err := os.Rename(tmp, filepath.Join(dir, "session.json")); err != nil {
		return fmt.Errorf("write session: %w", err)
	}
	return nil
}

// version is the client's own, from its User-Agent: NAME/VERSION.
func version(q Request) string {
	first, _, _ := strings.Cut(q.Header.Get("User-Agent"), " ")
	_, v, _ := strings.Cut(first, "/")
	return clip(v)
}
