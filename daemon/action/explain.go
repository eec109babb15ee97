package action

import (
	"encoding/json"
	"strconv"
)

// Graph shows how a decision came about: findings lead to signals, signals by
// their points to the sum of risk and by their states to the state.
type Graph struct {
	Nodes []Node `json:"nodes"`
	Edges []Edge `json:"edges"`
}

// Node is one step of a decision.
type Node struct {
	ID   string `json:"id"`
	Kind string `json:"kind"` // finding | signal | risk | state
	Text string `json:"text"`
}

// Edge leads from a step to what it counts for; Weight is the points it adds to
// the sum of risk, and 0 where it adds none.
type Edge struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Weight int    `json:"weight"`
}

// Explain draws how the decision came about.
func (d Decision) Explain() Graph {
	n := len(d.Findings) + len(d.Signals)
	g := Graph{Nodes: make([]Node, 0, n+2), Edges: make([]Edge, 0, n+2)}
	for i, f := range d.Findings {
		g.Nodes = append(g.Nodes, Node{ID: id("f", i), Kind: "finding", Text: string(f.Effect) + " by " + f.Rule + ": " + f.Why})
	}
	for i, s := range d.Signals {
		g.Nodes = append(g.Nodes, Node{ID: id("s", i), Kind: "signal", Text: s.Stage + " " + s.Tag + ": " + string(s.State) + ", " + s.Reason})
		if s.Stage == "effect" {
			for j, f := range d.Findings {
				if f.Effect == d.Effect {
					g.Edges = append(g.Edges, Edge{From: id("f", j), To: id("s", i)})
				}
			}
		}
		if s.Points > 0 {
			g.Edges = append(g.Edges, Edge{From: id("s", i), To: "risk", Weight: s.Points})
		}
		if s.Points == 0 || s.State != Allow {
			g.Edges = append(g.Edges, Edge{From: id("s", i), To: "state"})
		}
	}
	if d.RawTotal > 0 {
		text := "risk " + strconv.Itoa(d.RiskScore)
		if d.RawTotal != d.RiskScore {
			text += " (" + strconv.Itoa(d.RawTotal) + ")"
		}
		g.Nodes = append(g.Nodes, Node{ID: "risk", Kind: "risk", Text: text})
		g.Edges = append(g.Edges, Edge{From: "risk", To: "state"})
	}
	g.Nodes = append(g.Nodes, Node{ID: "state", Kind: "state", Text: string(d.State)})
	return g
}

// MarshalJSON writes the decision with how it came about, as explain.
func (d Decision) MarshalJSON() ([]byte, error) {
	type plain Decision // without this method
	return json.Marshal(struct {
		plain
		Explain Graph `json:"explain"`
	}{plain(d), d.Explain()})
}

// firstIDs are the names of the steps that nearly every decision has.
var firstIDs = map[string][8]string{"f": {"f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"}, "s": {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"}}

func id(kind string, n int) string {
	if ids, ok := firstIDs[kind]; ok && n < len(ids) {
		return ids[n]
	}
	return kind + strconv.Itoa(n)
}
