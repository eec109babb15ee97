package sensors

import (
	"slices"
	"strings"

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
	layerFiles    = confine.Files
	layerHidden   = confine.Hidden
	layerNoNet    = "net:none" // a network namespace without a network
	layerListNet  = "net:list" // one whose only way out are the listed addresses
	layerHostNet  = "net:host" // asked for, or the others could not be had
)

// confinement is how far a run is to be confined.
type confinement struct {
	wanted   bool // at all
	readOnly bool
	network  []string // of the definition
	hide     []string // files and directories that it does not see
}

// described is the sandbox of one invocation.
func (c confinement) described(layers []string) string {
	if len(layers) == 0 {
		return "none"
	}
	if !slices.Contains(layers, layerNoNet) && !slices.Contains(layers, layerListNet) && !slices.Contains(layers, confine.NoTCP) {
		layers = append(layers, layerHostNet)
	}
	return strings.Join(layers, ",")
}

// unixSocket begins an entry of network that names a socket of this machine.
const unixSocket = "unix:"

// noNetwork: the definition asks for no address, though for sockets maybe.
func (c confinement) noNetwork() bool { return !c.host() && len(c.listed()) == 0 }

// host: the definition asks for the machine's own network.
func (c confinement) host() bool { return len(c.network) > 0 && c.network[0] == "host" }

// listed are the host:port entries.
func (c confinement) listed() (list []string) {
	if c.host() {
		return nil
	}
	for _, n := range c.network {
		if !strings.HasPrefix(n, unixSocket) {
			list = append(list, n)
		}
	}
	return list
}

// sockets are the hidden ones that the definition asks for.
func (c confinement) sockets() (list []string) {
	for _, n := range c.network {
		if path, ok := strings.CutPrefix(n, unixSocket); ok {
			list = append(list, path)
		}
	}
	return list
}
