package action

import (
	"strings"
	"testing"
)

// TestExports: a hostile command stays text in both drawings.
func TestExports(t *testing.T) {
	d := Decide(Action{Command: "rm -rf '\"]; x --> y <script>alert(1)</script> \x1b[31m'"}, nil, Situation{})
	if d.State != RequireConfirm {
		t.Fatal(d.State)
	}
	m := d.Explain().Mermaid()
	for _, l := range strings.Split(strings.TrimSpace(m), "\n")[1:] {
		if n := strings.Count(l, `"`); n != 0 && n != 2 || strings.ContainsAny(l, "<\x1b") {
			t.Errorf("mermaid line %q", l)
		}
	}
	if !strings.HasPrefix(m, "flowchart LR\n") || !strings.Contains(m, "s0 -->|47| risk") || !strings.Contains(m, `state["REQUIRE_CONFIRM"]`) {
		t.Errorf("mermaid %s", m)
	}
	h := d.HTML()
	if strings.Contains(h, "<script") || strings.ContainsRune(h, 0x1b) || !strings.Contains(h, "default-src 'none'") || !strings.Contains(h, "&lt;script&gt;") {
		t.Errorf("html %s", h)
	}
}
