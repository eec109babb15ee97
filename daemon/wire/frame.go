package wire

import "strings"

// IsBlock reports whether text is one framed block of ours and nothing else.
// Text that holds anything before, between or after frames is not: a person's
// words must never be taken for ours.
func IsBlock(text string) bool {
	text = strings.TrimSpace(text)
	rest, ok := strings.CutPrefix(text, BlockOpen)
	if !ok || !strings.HasSuffix(rest, BlockClose) {
		return false
	}
	if rest[0] != '>' && rest[0] != ' ' {
		return false
	}
	return strings.Count(rest, BlockClose) == 1 && !strings.Contains(rest, BlockOpen)
}

// frameName is what any frame of ours holds, however its brackets are escaped.
var frameName = []byte("gettier-verification")
