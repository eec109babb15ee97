package action

import (
	"html"
	"strconv"
	"strings"
)

// Mermaid draws the graph as a Mermaid flowchart. Texts are foreign: whatever
// could end a label or begin markup is written as an entity code.
func (g Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for _, n := range g.Nodes {
		b.WriteString("  " + n.ID + "[\"" + mermaidText(n.Text) + "\"]\n")
	}
	for _, e := range g.Edges {
		arrow := " --> "
		if e.Weight > 0 {
			arrow = " -->|" + strconv.Itoa(e.Weight) + "| "
		}
		b.WriteString("  " + e.From + arrow + e.To + "\n")
	}
	return b.String()
}

func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < ' ' || r >= 0x7f && r < 0xa0:
			b.WriteByte(' ')
		case strings.ContainsRune("\"#&<>`;%{}[]()|\\", r):
			b.WriteString("#" + strconv.Itoa(int(r)) + ";")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// HTML is a decision as a page of its own: no script, nothing loaded, every text
// escaped (13.10).
func (d Decision) HTML() string {
	var b strings.Builder
	cell := func(s string) { b.WriteString("<td>" + escape(s) + "</td>") }
	b.WriteString("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'\"><title>gettier: " + escape(string(d.State)) + "</title></head><body>\n")
	b.WriteString("<h1>" + escape(string(d.State)) + "</h1>\n<p>" + escape(d.Reason) + "</p>\n")
	b.WriteString("<p>effect " + escape(string(d.Effect)) + ", risk " + strconv.Itoa(d.RiskScore) + " of 100, decision " + escape(d.DecisionID) + " by " + escape(d.Rules) + "</p>\n")
	b.WriteString("<h2>Findings</h2>\n<table><tr><th>effect</th><th>rule</th><th>why</th><th>runs</th><th>by</th></tr>\n")
	for _, f := range d.Findings {
		b.WriteString("<tr>")
		cell(string(f.Effect))
		cell(f.Rule)
		cell(f.Why)
		cell(strings.Join(f.Argv, " "))
		cell(strings.Join(f.Wrappers, " › "))
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table>\n<h2>Signals</h2>\n<table><tr><th>state</th><th>score</th><th>stage</th><th>tag</th><th>reason</th></tr>\n")
	for _, s := range d.Signals {
		b.WriteString("<tr>")
		cell(string(s.State))
		cell(strconv.Itoa(s.Score))
		cell(s.Stage)
		cell(s.Tag)
		cell(s.Reason)
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table>\n</body></html>\n")
	return b.String()
}

// escape also takes control characters out, which no page may hold.
func escape(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s))
}
