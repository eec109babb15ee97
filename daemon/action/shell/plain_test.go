package shell

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
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

func isPlain(cmd string) bool {
	var list [maxPlainCommands]plainCommand
	_, _, ok := plainText(cmd, &list)
	return ok
}

// TestPlainText: what is read without a parser is read as the parser has it.
func TestPlainText(t *testing.T) {
	same := func(cmd string) bool {
		if !isPlain(cmd) {
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
	for _, cmd := range []string{"", " ", "if x", "time ls", "A=1 ls", "a=b", "ls *", "ls\nls", "ls &", "ls |& cat", "ls ;; ls", "; ls", "ls | | ls", "ls ||", "| ls", "'ls' a", "echo \"$X\"", "echo \"a`b`\"", "echo 'a", "echo a'b'", "echo \"a\\b\"", "ls > a", "ls 2>&1", "ls | if x", "A=1; ls", "export A=1", "let x", "coproc ls", "a {b,c}", "ls ~", "echo $X", "!x", "[[ a", "f ( )", strings.Repeat("a ", 100)} {
		if isPlain(cmd) {
			t.Errorf("%q is not plain", cmd)
		}
	}
	for _, cmd := range []string{"ls", "  ls  -la ", "rm -rf data", "sudo env A=1 rm -rf /etc", "eval rm -rf data", "git push origin +main", "]", "rm -rf data -- -x", ". ./x", "trap x EXIT", "alias a=b", "cd ..", "test a = b", "0 1", "-", "=", "a=b=c d", "ls; ls -la;", "ls ; rm -rf data", "cd a && rm -rf b || ls", "cat a | sh", "echo 'rm -rf data' | bash", "true && echo rm -rf x | sh && ls", "cd a; rm -rf b", "cd a && cd b; rm -rf c", "echo \"a b\" 'c  d' '' \"\"", "grep 'a|b' c | wc -l", "bash -c 'cd x && rm -rf y | cat'", "a | b | c | d", "ls | xargs rm", "sort a | uniq > b"} {
		same(cmd)
	}
	for cmd := range corpora(t) {
		same(cmd)
	}
	word := rapid.OneOf(rapid.SampledFrom([]string{"rm", "-rf", "data", "sudo", "cd", "..", "echo", "sh", "bash", "-c", "eval", "xargs", "cat", "git", "reset", "--hard", "'rm -rf data'", "\"a b\"", "''", "test", "alias", "x=y", "set", "--", "trap", "EXIT"}), rapid.StringMatching(`[a-z._/:,@%+=-]{1,8}`))
	rapid.Check(t, func(rt *rapid.T) {
		text := ""
		for i := range rapid.IntRange(1, 12).Draw(rt, "n") {
			if i > 0 {
				text += rapid.SampledFrom([]string{" ", " ", " ", "  ", " | ", " && ", " || ", "; ", ";", "|", "&&"}).Draw(rt, "between")
			}
			text += word.Draw(rt, "word")
		}
		same(text)
	})
	rapid.Check(t, func(rt *rapid.T) {
		same(rapid.StringMatching(`[a-z._/:,@%+=-]{0,8}( +[a-zA-Z0-9._/:,@%+=-]{1,9}){0,5} ?`).Draw(rt, "cmd"))
	})
}

// corpora are the labelled commands in the folder GETTIER_CASES, none without it.
func corpora(t *testing.T) map[string]bool {
	out := map[string]bool{}
	dir := os.Getenv("GETTIER_CASES")
	if dir == "" {
		return out
	}
	for _, name := range []string{"guards.dev", "tldr.dev", "nl2bash.dev"} {
		f, err := os.Open(filepath.Join(dir, name+".jsonl.gz"))
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		for sc := bufio.NewScanner(z); sc.Scan(); {
			var r struct{ Command string }
			if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			out[r.Command] = true
		}
		_, _ = z.Close(), f.Close()
	}
	return out
}
