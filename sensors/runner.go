package sensors

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/ledger/redact"
	"gettier.dev/gettierd/sensors/confine"
	"gettier.dev/gettierd/sensors/extract"
	"gettier.dev/gettierd/sensors/spec"
)

// Reasons why a sensor could not run: the closed set.
const (
	ReasonExit       = "exit"
	ReasonSignal     = "signal"
	ReasonTimeout    = "timeout"
	ReasonOutputCap  = "output_cap"
	ReasonNotFound   = "not_found"
	ReasonPermission = "permission"
	ReasonSandbox    = "sandbox"
	ReasonRunsAs     = "runs_as"
	ReasonParam      = "param"
)

// Runner measures. It is safe for concurrent use; its width holds for all
// callers together.
type Runner struct {
	o       RunnerOptions
	gate    gate
	flights flights
	entropy sync.Mutex
	back    backoff
	workers workers
}

// NewRunner fills in what the options leave out.
func NewRunner(o RunnerOptions) *Runner {
	if o.Width <= 0 {
		o.Width = DefaultWidth
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Entropy == nil {
		o.Entropy = rand.Reader
	}
	if o.Redact == nil {
		o.Redact = redact.New().Bytes
	}
	if o.Extract == nil {
		o.Extract = extract.Extract
	}
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.Record == nil {
		o.Record = func(lemma.Body) {}
	}
	return &Runner{o: o, gate: gate{width: o.Width}}
}

// Close ends the processes that wait to start sensors. A runner can be used
// afterwards; it then keeps none.
func (r *Runner) Close() { r.workers.close() }

// Run measures every request and returns the readings in their order. Sensors
// without effects run beside each other up to the width, those that mutate
// alone and in the order given, whoever grouped them.
func (r *Runner) Run(ctx context.Context, reqs []Request) []Reading {
	out := make([]Reading, len(reqs))
	var wg sync.WaitGroup
	for i, q := range reqs {
		p, failed := r.prepare(q)
		if failed != nil {
			out[i] = *failed
			continue
		}
		if q.Sensor.Effects == spec.None {
			wg.Go(func() {
				own := *p // the run may outlast this caller
				reading, ok := r.flights.do(ctx, p.key, func(run context.Context) Reading { return r.queue(run, &own, r.gate.enter(false)) })
				if !ok {
					reading = p.fail(r, ReasonTimeout, "stopped: "+ctx.Err().Error())
				}
				out[i] = reading
			})
			continue
		}
		t := r.gate.enter(true)
		wg.Go(func() { out[i] = r.queue(ctx, p, t) })
	}
	wg.Wait()
	return out
}

// Failed is the one place that says whether a reading could not measure, and
// why: a word of the closed set. Such a reading is neither fact nor evidence.
func Failed(rd Reading) (reason string, failed bool) {
	switch {
	case rd.Reason != "":
		return rd.Reason, true
	case rd.Sensor == nil || rd.Invocation.StartedAt == "":
		return ReasonExit, true // nothing ran
	case !slices.Contains(rd.Sensor.ExitOK, rd.Invocation.ExitCode):
		return ReasonExit, true
	}
	return "", false
}

// CouldNotRun is the line about a failed reading that turn, check and MCP all
// show: sensor, reason and detail.
func CouldNotRun(rd Reading) string {
	reason, failed := Failed(rd)
	if !failed {
		return ""
	}
	id := rd.Invocation.SensorID
	if rd.Detail == "" {
		return oneLine(fmt.Sprintf("%s could not run: %s", id, reason), 200)
	}
	return oneLine(fmt.Sprintf("%s could not run: %s (%s)", id, reason, rd.Detail), 200)
}

// Binds reports whether the parameters of a request can all be filled. A
// required one that stays empty means that the sensor does not match the claim.
func Binds(q Request) bool {
	if q.Sensor == nil {
		return false
	}
	at, err := stand(q.Sensor, q.Root, q.Cwd)
	if err != nil {
		return len(q.Sensor.Params) == 0 // the run itself will say what is wrong
	}
	_, _, err = spec.Bind(q.Sensor, q.Params, q.Claim, resolver(at.base()))
	return err == nil
}

// prepared is a request whose parameters, place and environment are settled.
type prepared struct {
	req  Request
	inv  lemma.Invocation
	argv []string
	env  []string
	user *credential
	// empty: it runs in a directory without files where the sandbox has one.
	empty bool
	key   string
	// bound are a probe's parameters as they are, not redacted.
	bound map[string]string
}

// prepare does all that needs no process. A second result is the failure.
func (r *Runner) prepare(q Request) (*prepared, *Reading) {
	p := &prepared{req: q}
	s := q.Sensor
	if s == nil {
		rd := Reading{Reason: ReasonParam, Detail: "no sensor was named"}
		return nil, &rd
	}
	p.inv = lemma.Invocation{
		SensorID: s.ID, File: s.Level, RegistryVersion: s.Version, Params: map[string]string{}, Argv: []string{},
		ExitCode: -1, Sandbox: "none",
	}
	id, err := r.newID()
	if err != nil {
		return nil, p.failed(r, ReasonExit, err.Error())
	}
	p.inv.ID = id
	at, err := stand(s, q.Root, q.Cwd)
	if err != nil {
		return nil, p.failed(r, ReasonParam, err.Error())
	}
	p.inv.Cwd, p.empty = at.dir, at.empty
	argv, bound, err := spec.Bind(s, q.Params, q.Claim, resolver(at.base()))
	if err != nil {
		return nil, p.failed(r, ReasonParam, err.Error())
	}
	if s.Probe != "" {
		return p.prepareProbe(r, bound), nil
	}
	p.argv, p.inv.Argv = argv, make([]string, len(argv))
	for i, a := range argv {
		p.inv.Argv[i] = r.hide(a)
	}
	for k, v := range bound {
		p.inv.Params[k] = r.hide(v)
	}
	if p.env, err = r.environment(q); err != nil {
		return nil, p.failed(r, ReasonParam, err.Error())
	}
	if err := p.runsAs(r); err != nil {
		return nil, p.failed(r, ReasonRunsAs, err.Error())
	}
	key := struct {
		File, Hash, Dir string
		Argv, Env       []string
		Draft           bool
		Root, Cwd       string
	}{s.File, s.Hash, at.dir, argv, p.env, q.Draft, q.Root, q.Cwd}
	b, err := json.Marshal(key)
	if err != nil {
		return nil, p.failed(r, ReasonParam, err.Error())
	}
	p.key = string(b)
	return p, nil
}

func (r *Runner) newID() (string, error) {
	r.entropy.Lock()
	defer r.entropy.Unlock()
	return lemma.NewID(lemma.IDInvocation, r.o.Now(), r.o.Entropy)
}

func (r *Runner) hide(s string) string {
	b, _ := r.o.Redact([]byte(s))
	return string(b)
}

// environment is PATH, LANG and HOME of the daemon, what the definition names,
// and what keeps common tools from being steered by files they find.
func (r *Runner) environment(q Request) ([]string, error) {
	env := map[string]string{}
	for _, name := range []string{"PATH", "LANG", "HOME"} {
		if v, ok := r.o.Env(name); ok {
			env[name] = v
		}
	}
	env["PATH"] = cleanPath(env["PATH"])
	if env["PATH"] == "" {
		env["PATH"] = "/usr/local/bin:/usr/bin:/bin"
	}
	maps.Copy(env, hardening(q.Sensor))
	look := r.o.Env
	if q.Sensor.EnvFrom == "agent" {
		if look = q.Env; look == nil {
			return nil, errors.New("the agent's environment is not known")
		}
	}
	for _, name := range q.Sensor.Env {
		if v, ok := look(name); ok && !strings.ContainsRune(v, 0) {
			env[name] = v
		}
	}
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out, nil
}

// runsAs settles whose rights the process has. Only root can take another
// user's; a person's own daemon measures as itself and marks every invocation,
// or does not run it.
func (p *prepared) runsAs(r *Runner) error {
	name := p.req.Sensor.RunsAs
	if name == "" {
		return nil
	}
	if me, err := user.Current(); err == nil && me.Username == name {
		return nil
	}
	if os.Geteuid() != 0 {
		if r.o.RunsAsHold {
			return fmt.Errorf("only root can run it as %s, and sensors.runs_as_unavailable is hold", name)
		}
		p.inv.Sandbox += ",runs_as:self"
		return nil
	}
	c, err := credentialOf(name)
	if err != nil {
		return fmt.Errorf("there is no user %s", name)
	}
	p.user = c
	p.env = append(slices.DeleteFunc(p.env, func(kv string) bool { return strings.HasPrefix(kv, "HOME=") }), "HOME="+c.home)
	return nil
}

// queue waits for the turn of t and runs.
func (r *Runner) queue(ctx context.Context, p *prepared, t *ticket) Reading {
	if err := r.gate.wait(ctx, t); err != nil {
		return p.fail(r, ReasonTimeout, "stopped before it started: "+err.Error())
	}
	defer r.gate.leave(t)
	return r.measure(ctx, p)
}

func (p *prepared) failed(r *Runner, reason, detail string) *Reading {
	rd := p.fail(r, reason, detail)
	return &rd
}

// fail makes the reading of a run that did not measure.
func (p *prepared) fail(r *Runner, reason, detail string) Reading {
	if p.inv.StartedAt == "" {
		p.inv.StartedAt = lemma.Time(r.o.Now())
	}
	return Reading{
		Sensor: p.req.Sensor, Invocation: p.inv, Reason: reason, Detail: oneLine(r.hide(detail), 200),
		Evidence: spec.Evidence{Sensor: p.inv.SensorID, Invocation: p.inv.ID},
	}
}

func (r *Runner) measure(ctx context.Context, p *prepared) Reading {
	s := p.req.Sensor
	if r.o.Permit != nil && !p.req.Draft {
		if err := r.o.Permit(s, p.req.Root, p.req.Cwd); err != nil {
			return p.fail(r, ReasonPermission, "pending: "+err.Error())
		}
	}
	if s.Probe != "" {
		return r.runProbe(ctx, p)
	}
	if !p.req.Draft {
		if reason, detail := r.back.off(p.key, r.o.Now()); reason != "" {
			return p.fail(r, reason, detail)
		}
	}
	path := ""
	for _, kv := range p.env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	file, err := program(p.argv[0], p.inv.Cwd, path)
	if err != nil {
		reason, detail := startReason(err)
		return p.fail(r, reason, detail)
	}
	if filepath.Base(p.argv[0]) == "git" {
		over, complete := overGit(ctx, file, p.inv.Cwd, p.env)
		if !complete {
			return p.fail(r, ReasonSandbox, "the configuration of this repository could not be read as a whole")
		}
		p.env = append(p.env, over...)
	}
	p.inv.StartedAt = lemma.Time(r.o.Now())
	o := run(ctx, command{
		path: file, argv: p.argv, dir: p.inv.Cwd, empty: p.empty, env: p.env, user: p.user, timeout: s.Timeout, cap: s.MaxOutputBytes,
		confine: confinement{wanted: r.o.Confine, readOnly: s.Effects == spec.None, network: s.Network, hide: r.hidden(p)},
		workers: &r.workers,
	})
	p.inv.Sandbox = confinement{network: s.Network}.described(o.layers) + p.inv.Sandbox[len("none"):]
	if p.empty && slices.Contains(o.layers, layerFiles) {
		p.inv.Cwd = confine.Scratch
	}
	p.inv.DurationMS = o.took.Milliseconds()
	p.inv.ExitCode = o.exit
	reason, detail := decide(s, &o)
	if o.stopped == nil && !p.req.Draft {
		if until, now := r.back.count(p.key, reason, detail, r.o.Now()); now {
			r.o.Record(lemma.SensorBackedOff{
				Contract: lemma.Contract, Sensor: s.Qualified(), Reason: oneLine(r.hide(reason+": "+detail), 200), Until: lemma.Time(until),
			})
		}
	}
	if reason == "" {
		return r.reading(p, &o)
	}
	hidden, _ := classes(s, r.o.Redact)([]byte(detail))
	rd := p.fail(r, reason, string(hidden))
	if reason == ReasonExit { // complete, so no secret is cut where no rule would know it
		r.keep(&rd, o.evidence())
	}
	return rd
}

// decide says what an outcome means: a reason, or "" for evidence.
func decide(s *spec.Sensor, o *outcome) (reason, detail string) {
	switch {
	case !o.started:
		return startReason(o.startErr)
	case o.stopped != nil:
		return ReasonTimeout, "stopped: " + o.stopped.Error()
	case o.timedOut:
		return ReasonTimeout, fmt.Sprintf("longer than %v", s.Timeout)
	case o.capped:
		return ReasonOutputCap, fmt.Sprintf("more than %d bytes", s.MaxOutputBytes)
	case o.signal != "":
		return ReasonSignal, o.signal
	case o.exit < 0 || !slices.Contains(s.ExitOK, o.exit):
		detail := fmt.Sprintf("exit code %d", o.exit)
		if s.Sensitivity != "secret" {
			detail += diagnostics(o)
		}
		return ReasonExit, detail
	case o.held:
		return ReasonTimeout, "a child kept the output open"
	}
	return "", ""
}

// diagnostics is the last line that a failing program printed.
func diagnostics(o *outcome) string {
	text := strings.TrimSpace(string(o.stderr))
	if text == "" {
		text = strings.TrimSpace(string(o.stdout))
	}
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	return ": " + lines[len(lines)-1]
}

func startReason(err error) (reason, detail string) {
	detail = err.Error()
	var pe *fs.PathError
	if errors.As(err, &pe) {
		detail = pe.Path + ": " + pe.Err.Error()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return ReasonNotFound, detail
	case errors.Is(err, errSandbox):
		return ReasonSandbox, detail
	case errors.Is(err, syscall.EINVAL), errors.Is(err, io.ErrUnexpectedEOF):
		return ReasonParam, detail
	}
	return ReasonPermission, detail
}

// reading turns output into evidence: values are read from the raw bytes, then
// everything that leaves here is redacted.
func (r *Runner) reading(p *prepared, o *outcome) Reading {
	s := p.req.Sensor
	raw := o.evidence()
	rd := Reading{Sensor: s, Invocation: p.inv, Evidence: spec.Evidence{Sensor: s.ID, Invocation: p.inv.ID}}
	for _, v := range r.o.Extract(s, raw, o.exit) {
		rd.Evidence.Values = append(rd.Evidence.Values, hideValue(s, v, r.o.Redact))
	}
	r.keep(&rd, raw)
	return rd
}

// keep puts the redacted output and its hashes into a reading, for people and
// for the record. Of a secret sensor nothing is kept.
func (r *Runner) keep(rd *Reading, raw []byte) {
	if rd.Sensor.Sensitivity == "secret" {
		return
	}
	rd.Output, rd.Hits = classes(rd.Sensor, r.o.Redact)(raw)
	sum := sha256.Sum256(rd.Output)
	rd.Invocation.OutputHash = hex.EncodeToString(sum[:])
	rd.Invocation.OutputBlob = rd.Invocation.OutputHash
	if len(rd.Hits) == 0 && len(r.o.OriginKey) > 0 {
		mac := hmac.New(sha256.New, r.o.OriginKey)
		mac.Write(raw)
		rd.Invocation.OriginMAC = hex.EncodeToString(mac.Sum(nil))
	}
}
