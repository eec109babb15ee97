package sensors

import (
	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/spec"
)

// Recorded reads output that a sensor printed at another time or place as a run
// of it would have been read: the same limits and exit codes, the same values,
// the same redaction. Nothing runs, and the invocation says so by having no
// arguments.
func (r *Runner) Recorded(s *spec.Sensor, output []byte, exit int) Reading {
	p := &prepared{req: Request{Sensor: s}, inv: lemma.Invocation{
		SensorID: s.ID, File: s.Level, RegistryVersion: s.Version, Params: map[string]string{}, Argv: []string{},
		StartedAt: lemma.Time(r.o.Now()), ExitCode: exit, Sandbox: "none",
	}}
	o := &outcome{started: true, exit: exit, stdout: output, capped: len(output) > s.MaxOutputBytes}
	if reason, detail := decide(s, o); reason != "" {
		hidden, _ := classes(s, r.o.Redact)([]byte(detail))
		return p.fail(r, reason, string(hidden))
	}
	return r.reading(p, o)
}
