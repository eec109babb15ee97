package shell

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// parsed reads a text by the parser, whatever it is.
func parsed(cmd string) Reading {
	w := walker{steps: maxSteps}
	w.parsed(cmd, 0)
	return w.reading()
}

// TestPlainWords: what is read without a parser is read as the parser has it.
func TestPlainWords(t *testing.T) {
	same := func(cmd string) bool {
		if _, _, _, ok := plainWords(cmd); !ok {
			return false
		}
		if got, want := Read(cmd), parsed(cmd); !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\n%+v\nby the parser:\n%+v", cmd, got, want)
		}
		return true
	}
	n := 0
	for _, r := range commands(t) {
		if same(r.cmd) {
			n++
		}
	}
	if n < 500 {
		t.Errorf("only %d own examples are plain", n)
	}
	for _, cmd := range []string{"", " ", "if x", "time ls", "A=1 ls", "a=b", "ls *", "ls\nls", "ls;ls", "export A=1", "let x", "coproc ls", "a {b,c}", "ls ~", "echo $X", "!x", "[[ a", "f ( )", strings.Repeat("a ", 100)} {
		if _, _, _, ok := plainWords(cmd); ok {
			t.Errorf("%q is not plain", cmd)
		}
	}
	for _, cmd := range []string{"ls", "  ls  -la ", "rm -rf data", "sudo env A=1 rm -rf /etc", "eval rm -rf data", "git push origin +main", "]", "rm -rf data -- -x", ". ./x", "trap x EXIT", "alias a=b", "cd ..", "test a = b", "0 1", "-", "=", "a=b=c d"} {
		same(cmd)
	}
	rapid.Check(t, func(rt *rapid.T) {
		same(rapid.StringMatching(`[a-z._/:,@%+=-]{0,8}( +[a-zA-Z0-9._/:,@%+=-]{1,9}){0,5} ?`).Draw(rt, "cmd"))
	})
}
