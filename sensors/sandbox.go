package sensors

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"

	"gettier.dev/gettierd/sensors/confine"
)

// Layers of a sandbox, as every invocation names those in force; none means a
// session and process group of its own and nothing more. Where the kernel
// refuses a layer the run goes on with the rest, and its record shows it.
const (
	layerPID      = "pid" // a PID namespace: nothing that it starts outlives it
	layerNoRights = confine.NoNewRights
	layerLimits   = confine.Limits
	layerLandlock = confine.Landlock
	layerNoNet    = "net:none" // a network namespace without a network
	layerHostNet  = "net:host" // asked for, or net:none could not be had
	layerListNet  = "net:list" // host:port entries say what it needs; they are not enforced
)

// reports reads what a helper wrote: one JSON object a line.
func reports(b []byte) (r confine.Report) {
	for line := range strings.SplitSeq(string(b), "\n") {
		var one confine.Report
		if json.Unmarshal([]byte(line), &one) != nil {
			continue
		}
		r.Layers = append(r.Layers, one.Layers...)
		r.Started = r.Started || one.Started
		if one.Errno != 0 {
			r.Errno = one.Errno
		}
		if one.Signal != 0 {
			r.Signal = one.Signal
		}
	}
	return r
}

// confinement is how far a run is to be confined.
type confinement struct {
	wanted   bool // at all
	readOnly bool
	network  []string // of the definition
}

// described is the sandbox of one invocation.
func (c confinement) described(layers []string) string {
	if len(layers) == 0 {
		return "none"
	}
	if !slices.Contains(layers, layerNoNet) {
		if !c.noNetwork() && !c.host() {
			layers = append(layers, layerListNet)
		} else {
			layers = append(layers, layerHostNet)
		}
	}
	return strings.Join(layers, ",")
}

// noNetwork: the definition asks for none.
func (c confinement) noNetwork() bool { return len(c.network) == 0 }

// host: the definition asks for the machine's own network.
func (c confinement) host() bool { return len(c.network) > 0 && c.network[0] == "host" }

// ladder remembers the highest rung that this kernel allows.
type ladder struct{ from atomic.Int32 }
