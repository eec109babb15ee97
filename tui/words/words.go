// Package words spells numbers, times, states and commands the same way on
// every surface. It returns plain text: no colours, no layout and no cleaning
// of foreign text happen here.
package words

import (
	"fmt"
	"strings"
	"time"

	"gettier.dev/gettierd/ledger/lemma"
)

// Number is any integer that is counted.
type Number interface{ int | int64 | uint64 }

// Thousands groups digits.
func Thousands[T Number](n T) string {
	s := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Count is a number and its noun.
func Count[T Number](n T, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Thousands(n) + " " + many
}

// Span prints a duration the way people say it.
func Span(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}

// Clock prints a duration that is watched: 1:12, or 3:02:01 from an hour on.
func Clock(d time.Duration) string {
	s := int(max(d, 0) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// Millis prints milliseconds, as seconds from one second on.
func Millis(ms int64) string {
	if ms < 1000 {
		return fmt.Sprintf("%d ms", ms)
	}
	return Span(time.Duration(ms) * time.Millisecond)
}

// Time reads a time of the chain; false when it is none.
func Time(ts string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, ts)
	return t, err == nil
}

// Stamp is a chain time in local time, short when it is now's day.
func Stamp(ts string, now time.Time) string {
	t, ok := Time(ts)
	if !ok {
		return ts
	}
	t, now = t.Local(), now.Local()
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04")
}

// Between is the time from one chain time to another.
func Between(from, to string) (time.Duration, bool) {
	a, ok := Time(from)
	b, ok2 := Time(to)
	if !ok || !ok2 {
		return 0, false
	}
	return b.Sub(a), true
}

// Hash cuts a hash for reading.
func Hash(sum string) string {
	if len(sum) > 12 {
		return sum[:12] + "…"
	}
	return sum
}

// Or is s, or otherwise when s is empty.
func Or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// Quote shows where a value begins and ends.
func Quote(s string) string { return `"` + s + `"` }

// Argv prints a command so that its words can be told apart.
func Argv(argv []string) string {
	out := make([]string, len(argv))
	for i, w := range argv {
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$*?[]{}()<>|&;`~#") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out[i] = w
	}
	return strings.Join(out, " ")
}

// Provenance says where a claim comes from, with a glyph and a word.
func Provenance(p lemma.Provenance) string {
	switch p {
	case lemma.Measured:
		return "✓ measured"
	case lemma.Told:
		return "≈ told"
	case lemma.Believed:
		return "· believed"
	}
	return string(p)
}

// Decision says what became of a turn, with a glyph and a word.
func Decision(d lemma.Decision) string {
	switch d {
	case "":
		return "… open"
	case lemma.DecCaught, lemma.DecCorrected:
		return "✗ " + string(d)
	case lemma.DecHeld:
		return "? " + string(d)
	case lemma.DecBlocked, lemma.DecError:
		return "⊘ " + string(d)
	case lemma.DecReleased, lemma.DecConfirmedByUser:
		return "✓ " + string(d)
	}
	return "· " + string(d)
}

// Verdict says how a claim was judged, with a glyph and a word.
func Verdict(v lemma.Verdict) string {
	switch v {
	case lemma.Confirmed:
		return "✓ " + string(v)
	case lemma.Contradicted:
		return "✗ " + string(v)
	case lemma.VerdictTold:
		return "≈ " + string(v)
	}
	return "? " + string(v)
}

// Verdicts counts what was judged, without the zeros.
func Verdicts(c lemma.Counts) string {
	var out []string
	for _, v := range []struct {
		n    int
		name string
	}{
		{c.Contradicted, "contradicted"}, {c.Confirmed, "confirmed"}, {c.Inconclusive, "inconclusive"}, {c.Unjudged, "unjudged"},
		{c.Unverifiable, "unverifiable"}, {c.OutOfScope, "out of scope"}, {c.Told, "told"}, {c.Waived, "waived"},
	} {
		if v.n > 0 {
			out = append(out, fmt.Sprint(v.n)+" "+v.name)
		}
	}
	return strings.Join(out, ", ")
}

// Rung names a rung of the ladder on which a model declares.
func Rung(r int) string {
	names := []string{"instruction", "forced tool call", "constrained JSON", "JSON by prompt", "extracted from a plan"}
	if r < 0 || r >= len(names) {
		return "unknown"
	}
	return names[r]
}

// Tokens prints a usage.
func Tokens(u lemma.Usage) string {
	s := Thousands(u.Input) + " in, " + Thousands(u.Output) + " out"
	if u.CacheRead > 0 {
		s += ", " + Thousands(u.CacheRead) + " from cache"
	}
	return s
}

// Person names who answered.
func Person(a lemma.Answerer) string { return Or(a.User, fmt.Sprintf("uid %d", a.UID)) }

// Asked is what a turn was opened for: the person's words, or what a client asks
// for by itself beside them, like a title.
func Asked(kind, prompt string) string {
	if side, ok := strings.CutPrefix(kind, "side:"); ok {
		return "(" + side + ", asked by the client itself)"
	}
	return prompt
}

// Runs prints a command of a held action with what runs it.
func Runs(c lemma.HeldCommand) string {
	if len(c.Wrappers) == 0 {
		return Argv(c.Argv)
	}
	return Argv(c.Argv) + "  by " + strings.Join(c.Wrappers, " › ")
}

// Covers says what an approval of an action lets out beside this very call.
func Covers(a lemma.HeldAction, s lemma.AnswerScope) string {
	switch {
	case s == lemma.ScopeOnce:
		return "exactly this, once"
	case len(a.Prefix) == 0:
		return "exactly this, for this task"
	}
	text := "for this task: " + strings.Join(a.Prefix, " ; ")
	if len(a.Targets) > 0 {
		text += " on nothing but " + Argv(a.Targets)
	}
	return text
}

// Scope is a scope without its prefix: shop for project:shop.
func Scope(s string) string { return strings.TrimPrefix(s, "project:") }

// ShortID is the end of an id when there is nothing to tell it from.
func ShortID(id string) string { return lemma.Short(id, nil) }
