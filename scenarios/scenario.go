// Package scenarios holds frozen traps: a ticket whose obvious premise is false
// on the system around it, and an acceptance test that can pass all the same.
// It reads the format (SPEC.md), embeds GTR-001 and its kin, freezes them by
// LOCK and lays one out in a directory. Nothing is started here: that is
// scenarios/harness.
package scenarios

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
)

// Scenario is one directory of the format, read and checked.
type Scenario struct {
	ID          string    `yaml:"id" json:"id"`
	Title       string    `yaml:"title" json:"title"`
	Category    string    `yaml:"category" json:"category"`
	Split       string    `yaml:"split" json:"split"` // dev | holdout
	NamedByTick bool      `yaml:"named_by_ticket" json:"named_by_ticket"`
	Requires    []Program `yaml:"requires" json:"requires"`
	Processes   []Process `yaml:"processes" json:"-"`
	Steps       []Step    `yaml:"steps" json:"-"`
	Seeded      Seeded    `yaml:"seeded_lemma" json:"seeded_lemma"`
	Twin        Twin      `yaml:"twin" json:"twin"`
	Accept      string    `yaml:"accept" json:"-"`
	Probe       string    `yaml:"probe" json:"-"`
	Timeouts    Timeouts  `yaml:"timeouts" json:"-"`
	Scripted    Scripted  `yaml:"scripted" json:"-"`

	Ticket string `yaml:"-" json:"-"` // ticket.md
	Truth  Truth  `yaml:"-" json:"-"` // truth.json
	Lock   string `yaml:"-" json:"lock"`

	fsys fs.FS
}

// Program is a program that must be on PATH, and Debian's package for it.
type Program struct {
	Program string `yaml:"program" json:"program"`
	Package string `yaml:"package" json:"package"`
}

// Process is one server of the fixture. Argv is never read by a shell; argv,
// env, cwd and ready take placeholders.
type Process struct {
	Name  string            `yaml:"name"`
	Argv  []string          `yaml:"argv"`
	Env   map[string]string `yaml:"env"`
	Cwd   string            `yaml:"cwd"` // default {{dir}}
	User  string            `yaml:"user"`
	Ready Ready             `yaml:"ready"`
	Stop  Stop              `yaml:"stop"`
}

// Ready says when a process serves; exactly one is set.
type Ready struct {
	TCP  string `yaml:"tcp"`  // host:port that this process itself must own
	File string `yaml:"file"` // exists
	Log  string `yaml:"log"`  // a line of its output contains this
}

// Stop is how a process ends.
type Stop struct {
	Signal string        `yaml:"signal"` // TERM (default) | INT | QUIT
	Grace  time.Duration `yaml:"grace"`  // default 3 s, then KILL
}

// Step is a program that runs to its end before the processes start.
type Step struct {
	Name string   `yaml:"name"`
	Argv []string `yaml:"argv"`
}

// Seeded is the belief that the ticket invites and this system refutes.
type Seeded struct {
	Claim    string         `yaml:"claim" json:"claim"`
	Category string         `yaml:"category" json:"category"`
	Sensor   string         `yaml:"sensor" json:"sensor"`
	Key      string         `yaml:"key" json:"key"`
	Operator lemma.Operator `yaml:"operator" json:"operator"`
	Value    string         `yaml:"value" json:"value"`
}

// Twin names the one variable in which the trap and its benign twin differ.
type Twin struct {
	Var    string `yaml:"var" json:"var"`
	Trap   string `yaml:"trap" json:"trap"`
	Benign string `yaml:"benign" json:"benign"`
}

// Timeouts bound a run.
type Timeouts struct {
	Ready  time.Duration `yaml:"ready"`  // default 10 s
	Script time.Duration `yaml:"script"` // default 60 s
	Run    time.Duration `yaml:"run"`    // default 120 s: the agent's whole loop
}

// Scripted is what the scripted model knows of this scenario: how a model that
// holds the seeded belief would put it. Its commands are those of fix/.
type Scripted struct {
	Plan        string   `yaml:"plan"`
	Paraphrases []string `yaml:"paraphrases"` // two more wordings of the seeded claim
	Look        string   `yaml:"look"`        // a read-only command to begin with
}

// Truth is what the sensors must measure, on the trap and on the twin.
type Truth struct {
	Readings []TruthReading `json:"readings"`
}

// TruthReading is one measured value.
type TruthReading struct {
	Sensor string `json:"sensor"`
	Key    string `json:"key"`
	Trap   string `json:"trap"`
	Benign string `json:"benign"`
}

// Defaults of a scenario that names no timeouts.
const (
	DefaultReady  = 10 * time.Second
	DefaultScript = 60 * time.Second
	DefaultRun    = 120 * time.Second
	DefaultGrace  = 3 * time.Second
)

// Limits of a scenario directory: it may come from anywhere.
const (
	maxFiles     = 256
	maxFileBytes = 2 << 20
	maxBytes     = 8 << 20
	maxTicket    = 16 << 10
	maxList      = 16  // processes, steps, requires
	maxWords     = 64  // argv
	maxWordBytes = 512 // one argument
)

var (
	idForm   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z]{2,8}-[0-9]{3,6}$`) })
	nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`) })
	progForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`) })
)

// Load reads and checks the scenario at the root of fsys, its LOCK included.
func Load(fsys fs.FS) (*Scenario, error) {
	s, err := load(fsys)
	if err != nil {
		return nil, err
	}
	want, err := readCapped(fsys, "LOCK", maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s has none yet", ErrLock, s.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("read LOCK of %s: %w", s.ID, err)
	}
	got, sum, err := Lock(fsys)
	if err != nil {
		return nil, err
	}
	if d := lockDifference(string(want), got); d != "" {
		return nil, fmt.Errorf("%w: %s: %s", ErrLock, s.ID, d)
	}
	s.Lock = sum
	return s, nil
}

// ErrLock marks a scenario whose files are not those that LOCK froze.
var ErrLock = errors.New("scenario is not as its LOCK froze it")

func load(fsys fs.FS) (*Scenario, error) {
	data, err := readCapped(fsys, "scenario.yaml", maxYAML)
	if err != nil {
		return nil, err
	}
	s := &Scenario{}
	if err := decode(data, s); err != nil {
		return nil, fmt.Errorf("read scenario.yaml: %w", err)
	}
	s.fsys = fsys
	ticket, err := readCapped(fsys, "ticket.md", maxTicket)
	if err != nil {
		return nil, err
	}
	s.Ticket = strings.TrimSpace(string(ticket))
	if s.Truth, err = readTruth(fsys); err != nil {
		return nil, err
	}
	s.defaults()
	if faults := s.faults(); len(faults) > 0 {
		return nil, fmt.Errorf("check scenario %s: %w", s.ID, errors.Join(faults...))
	}
	return s, nil
}

func (s *Scenario) defaults() {
	if s.Timeouts.Ready <= 0 {
		s.Timeouts.Ready = DefaultReady
	}
	if s.Timeouts.Script <= 0 {
		s.Timeouts.Script = DefaultScript
	}
	if s.Timeouts.Run <= 0 {
		s.Timeouts.Run = DefaultRun
	}
	if s.Accept == "" {
		s.Accept = "accept.sh"
	}
	if s.Probe == "" {
		s.Probe = "probe.sh"
	}
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.Stop.Signal == "" {
			p.Stop.Signal = "TERM"
		}
		if p.Stop.Grace <= 0 {
			p.Stop.Grace = DefaultGrace
		}
		if p.Cwd == "" {
			p.Cwd = "{{dir}}"
		}
	}
}

// faults lists everything that is wrong, not just the first.
func (s *Scenario) faults() []error {
	var out []error
	bad := func(format string, a ...any) { out = append(out, fmt.Errorf(format, a...)) }
	if !idForm().MatchString(s.ID) {
		bad("id %q: want letters, a dash and digits, like GTR-001", s.ID)
	}
	if s.Title == "" || s.Category == "" || s.Ticket == "" {
		bad("title, category and ticket.md must not be empty")
	}
	if s.Split != "dev" && s.Split != "holdout" {
		bad("split %q: want dev or holdout", s.Split)
	}
	if len(s.Processes) > maxList || len(s.Steps) > maxList || len(s.Requires) > maxList {
		bad("at most %d processes, steps and required programs", maxList)
	}
	for _, p := range s.Requires {
		if !progForm().MatchString(p.Program) || !progForm().MatchString(p.Package) {
			bad("requires: program %q of package %q: want plain names", p.Program, p.Package)
		}
	}
	seen := map[string]bool{}
	for _, p := range s.Processes {
		if !nameForm().MatchString(p.Name) || seen[p.Name] {
			bad("process name %q: want a new lower-case name", p.Name)
		}
		seen[p.Name] = true
		if err := checkArgv(p.Argv); err != nil {
			bad("process %s: %w", p.Name, err)
		}
		if n := count(p.Ready.TCP != "", p.Ready.File != "", p.Ready.Log != ""); n != 1 {
			bad("process %s: ready needs exactly one of tcp, file, log", p.Name)
		}
		if !slices.Contains([]string{"TERM", "INT", "QUIT"}, p.Stop.Signal) {
			bad("process %s: stop signal %q: want TERM, INT or QUIT", p.Name, p.Stop.Signal)
		}
	}
	for _, st := range s.Steps {
		if err := checkArgv(st.Argv); err != nil {
			bad("step %s: %w", st.Name, err)
		}
	}
	if s.Seeded.Claim == "" || s.Seeded.Sensor == "" || s.Seeded.Key == "" || !s.Seeded.Operator.Valid() {
		bad("seeded_lemma needs claim, sensor, key and one of the closed set of operators")
	}
	if !nameForm().MatchString(s.Twin.Var) || s.Twin.Trap == s.Twin.Benign {
		bad("twin needs a variable with different values for trap and benign")
	}
	for _, f := range []string{s.Accept, s.Probe, "fix/nop.sh", "fix/wrong.sh", "fix/right.sh", "sensors.yaml", "compose.yaml"} {
		if !fs.ValidPath(f) || path.IsAbs(f) {
			bad("%q is no path inside the scenario", f)
		} else if _, err := fs.Stat(s.fsys, f); err != nil {
			bad("%s is missing", f)
		}
	}
	if !slices.ContainsFunc(s.Truth.Readings, func(r TruthReading) bool {
		return r.Sensor == s.Seeded.Sensor && r.Key == s.Seeded.Key
	}) {
		bad("truth.json has no reading of the seeded sensor and key (%s %s)", s.Seeded.Sensor, s.Seeded.Key)
	}
	if len(s.Scripted.Paraphrases) > 8 {
		bad("scripted: at most 8 paraphrases")
	}
	return out
}

func checkArgv(argv []string) error {
	if len(argv) == 0 || argv[0] == "" || len(argv) > maxWords {
		return fmt.Errorf("argv needs 1 to %d words", maxWords)
	}
	for _, w := range argv {
		if len(w) > maxWordBytes || strings.ContainsAny(w, "\x00\n\r") {
			return fmt.Errorf("argv word %.40q is too long or has line breaks", w)
		}
	}
	return nil
}

func count(bs ...bool) (n int) {
	for _, b := range bs {
		if b {
			n++
		}
	}
	return n
}

// Claims are the wordings of the seeded claim: the claim itself, then its
// paraphrases. Never empty.
func (s *Scenario) Claims() []string {
	return append([]string{s.Seeded.Claim}, s.Scripted.Paraphrases...)
}

// Fix is the commands of fix/<which>.sh (nop, wrong or right) on one line each,
// without comments and shell options: what an agent would type.
func (s *Scenario) Fix(which string) (string, error) {
	data, err := readCapped(s.fsys, "fix/"+which+".sh", maxFileBytes)
	if err != nil {
		return "", err
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || strings.HasPrefix(line, "set -") {
			continue
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, " && "), nil
}

// Sensors is sensors.yaml as it stands, placeholders included.
func (s *Scenario) Sensors() ([]byte, error) { return readCapped(s.fsys, "sensors.yaml", maxFileBytes) }
