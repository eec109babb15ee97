package ipcserver

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestProtocolHasEveryCall: who writes a client reads PROTOCOL.md, so each row of
// the table of calls stands there, and no other.
func TestProtocolHasEveryCall(t *testing.T) {
	var src []byte
	for _, name := range []string{"routes.go", "keys.go"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		src = append(src, b...)
	}
	doc, err := os.ReadFile("../PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]bool{}
	for _, m := range regexp.MustCompile(`"((?:GET|POST|PUT|DELETE) /v1/[^"]+)"`).FindAllStringSubmatch(string(src), -1) {
		calls[m[1]] = true
		if !strings.Contains(string(doc), "| `"+m[1]+"`") {
			t.Errorf("%s is not in PROTOCOL.md", m[1])
		}
	}
	if len(calls) < 30 {
		t.Fatalf("%d calls were found", len(calls))
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `((?:GET|POST|PUT|DELETE) /v1/[^`]+)`").FindAllStringSubmatch(string(doc), -1) {
		if !calls[m[1]] {
			t.Errorf("PROTOCOL.md has %s, and there is none", m[1])
		}
	}
}
