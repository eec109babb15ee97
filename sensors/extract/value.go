package extract

import (
	"math/big"
	"strings"
	"time"

	"gettier.dev/gettierd/sensors/spec"
)

// Unlimited is the special value a map may name: larger than every quantity.
const Unlimited = "unlimited"

// maxNumeral bounds the text of a number; a longer one is no reading.
const maxNumeral = 64

// Parses reports whether text reads as t. Unlimited reads as every ordered type.
func Parses(t spec.Type, text string) bool {
	text = strings.TrimSpace(text)
	if Ordered(t) && strings.EqualFold(text, Unlimited) {
		return true
	}
	var ok bool
	switch t {
	case spec.Number:
		_, ok = Number(text)
	case spec.Bool:
		_, ok = Bool(text)
	case spec.Bytes:
		_, ok = Bytes(text)
	case spec.Duration:
		_, ok = Duration(text)
	case spec.Version:
		_, ok = ParseVersion(text)
	default:
		ok = true
	}
	return ok
}

// Ordered reports whether < and > mean something for t.
func Ordered(t spec.Type) bool {
	switch t {
	case spec.Number, spec.Bytes, spec.Duration, spec.Version:
		return true
	}
	return false
}

// Number reads a decimal number exactly. Thousands may be set off by
// underscores, or by commas when there are two groups or more: 1,500 is one and
// a half somewhere, so it is no reading. An exponent has at most two digits.
func Number(text string) (*big.Rat, bool) {
	num, rest := splitNumeral(text)
	if num == "" {
		return nil, false
	}
	if rest != "" {
		if exp := strings.TrimLeft(rest[1:], "+-"); (rest[0] != 'e' && rest[0] != 'E') || len(rest)-1-len(exp) > 1 ||
			exp == "" || len(exp) > 2 || strings.Trim(exp, "0123456789") != "" {
			return nil, false
		}
	}
	return new(big.Rat).SetString(num + rest)
}

// splitNumeral cuts the leading plain decimal from text: sign, digits and one
// point, groups removed. num is "" when text does not start with one.
func splitNumeral(text string) (num, rest string) {
	text = strings.TrimSpace(text)
	if len(text) > maxNumeral {
		return "", text
	}
	i := 0
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		i++
	}
	start, commas, point := i, 0, false
	for ; i < len(text); i++ {
		c := text[i]
		switch {
		case c >= '0' && c <= '9':
			continue
		case c == '_' && i > start && digitAt(text, i-1) && digitAt(text, i+1) && !point:
			continue
		case c == ',' && i > start && !point && threeDigits(text[i+1:]):
			commas++
			continue
		case c == '.' && !point && digitAt(text, i+1):
			point = true
			continue
		}
		break
	}
	if i == start || commas == 1 || !digitAt(text, start) && text[start] != '.' {
		return "", text
	}
	if commas > 1 && strings.IndexByte(text[start:i], ',') > 3 {
		return "", text
	}
	return strings.NewReplacer(",", "", "_", "").Replace(text[:i]), text[i:]
}

func digitAt(s string, i int) bool { return i >= 0 && i < len(s) && s[i] >= '0' && s[i] <= '9' }

// threeDigits: s starts with exactly three digits.
func threeDigits(s string) bool {
	return digitAt(s, 0) && digitAt(s, 1) && digitAt(s, 2) && !digitAt(s, 3)
}

// Bool reads the closed set of words for on and off.
func Bool(text string) (value, ok bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "on", "true", "t", "yes", "1":
		return true, true
	case "off", "false", "f", "no", "0":
		return false, true
	}
	return false, false
}

// Unit is a byte unit as it was spelled: how many thousands it stands for, and
// whether the spelling (MiB) leaves no doubt that these are 1024s.
type Unit struct {
	Power int
	Exact bool
}

// byteUnits in lower case, without a hyphen before them.
var byteUnits = map[string]Unit{
	"": {}, "b": {}, "byte": {}, "bytes": {},
	"k": {Power: 1}, "kb": {Power: 1}, "kilobyte": {Power: 1}, "kilobytes": {Power: 1},
	"m": {Power: 2}, "mb": {Power: 2}, "meg": {Power: 2}, "megs": {Power: 2}, "megabyte": {Power: 2}, "megabytes": {Power: 2},
	"g": {Power: 3}, "gb": {Power: 3}, "gig": {Power: 3}, "gigs": {Power: 3}, "gigabyte": {Power: 3}, "gigabytes": {Power: 3},
	"t": {Power: 4}, "tb": {Power: 4}, "terabyte": {Power: 4}, "terabytes": {Power: 4},
	"ki": {1, true}, "kib": {1, true}, "kibibyte": {1, true}, "kibibytes": {1, true},
	"mi": {2, true}, "mib": {2, true}, "mebibyte": {2, true}, "mebibytes": {2, true},
	"gi": {3, true}, "gib": {3, true}, "gibibyte": {3, true}, "gibibytes": {3, true},
	"ti": {4, true}, "tib": {4, true}, "tebibyte": {4, true}, "tebibytes": {4, true},
}

// Size splits a text like 25 MB into its number and unit.
func Size(text string) (*big.Rat, Unit, bool) {
	num, rest := splitNumeral(text)
	if num == "" {
		return nil, Unit{}, false
	}
	u, ok := byteUnits[unitWord(rest)]
	if !ok {
		return nil, Unit{}, false
	}
	r, ok := new(big.Rat).SetString(num)
	return r, u, ok && r.Sign() >= 0
}

// unitWord is the unit after a number: 25 MB, 25-MB, 25MB.
func unitWord(rest string) string {
	rest = strings.TrimSpace(rest)
	rest = strings.TrimSpace(strings.TrimPrefix(rest, "-"))
	return strings.ToLower(rest)
}

// Scale multiplies r by base to the power.
func Scale(r *big.Rat, base int64, power int) *big.Rat {
	out, b := new(big.Rat).Set(r), big.NewRat(base, 1)
	for range power {
		out.Mul(out, b)
	}
	return out
}

// Bytes reads a measured size: k, m, g are powers of 1024 (1m = 1048576).
func Bytes(text string) (*big.Rat, bool) {
	r, u, ok := Size(text)
	if !ok {
		return nil, false
	}
	return Scale(r, 1024, u.Power), true
}

var durationUnits = map[string]time.Duration{
	"ns": time.Nanosecond, "nanosecond": time.Nanosecond, "nanoseconds": time.Nanosecond,
	"us": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond, "microsecond": time.Microsecond, "microseconds": time.Microsecond,
	"ms": time.Millisecond, "msec": time.Millisecond, "msecs": time.Millisecond, "millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
	"w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour, "weeks": 7 * 24 * time.Hour,
}

// Duration reads 30s, 1h30m, 24 hours, in nanoseconds. A bare number other than
// zero has no unit (nginx would mean seconds, HAProxy milliseconds) and is no
// reading. A capital M is nginx's month: no reading.
func Duration(text string) (*big.Rat, bool) {
	text = strings.TrimSpace(text)
	if r, ok := Number(text); ok {
		return r, r.Sign() == 0
	}
	total := new(big.Rat)
	for first := true; text != ""; first = false {
		num, rest := splitNumeral(text)
		if num == "" || num[0] == '-' || !first && num[0] == '+' {
			return nil, false
		}
		rest = strings.TrimLeft(rest, " -")
		end := strings.IndexFunc(rest, func(r rune) bool { return r >= '0' && r <= '9' || r == ' ' })
		if end < 0 {
			end = len(rest)
		}
		unit := rest[:end]
		d, ok := durationUnits[unit]
		if !ok && unit == "m" {
			d, ok = time.Minute, true
		}
		if !ok && len(unit) > 1 {
			d, ok = durationUnits[strings.ToLower(unit)]
		} else if !ok && (unit == "S" || unit == "H" || unit == "D") {
			d, ok = durationUnits[strings.ToLower(unit)]
		}
		n, good := new(big.Rat).SetString(num)
		if !ok || !good {
			return nil, false
		}
		total.Add(total, n.Mul(n, big.NewRat(int64(d), 1)))
		text = strings.TrimSpace(rest[end:])
	}
	return total, true
}

// Version is the numeric components of a version, most significant first, and
// what followed them (-rc1, a distribution's tail), which order ignores.
type Version struct {
	Parts  []string // digits without leading zeros
	Suffix string
}

// maxParts bounds a version's components.
const maxParts = 8

// ParseVersion reads v20.11.1, nginx/1.22.1, go1.26, 14.11 (Debian …), 20.x.
func ParseVersion(text string) (Version, bool) {
	s := strings.TrimSpace(text)
	name := 0
	for name < len(s) && (s[name] >= 'a' && s[name] <= 'z' || s[name] >= 'A' && s[name] <= 'Z') {
		name++
	}
	if name > 32 {
		return Version{}, false
	}
	if s = s[name:]; name > 0 && s != "" && (s[0] == '/' || s[0] == ' ') {
		s = strings.TrimPrefix(strings.TrimPrefix(s[1:], "v"), "V")
	}
	var v Version
	for {
		n := 0
		for digitAt(s, n) {
			n++
		}
		if n == 0 || n > 18 || len(v.Parts) == maxParts {
			return Version{}, false
		}
		part := strings.TrimLeft(s[:n], "0")
		if part == "" {
			part = "0"
		}
		v.Parts = append(v.Parts, part)
		s = s[n:]
		if len(s) > 1 && s[0] == '.' && digitAt(s, 1) {
			s = s[1:]
			continue
		}
		break
	}
	switch strings.ToLower(s) {
	case ".x", ".*", "+":
		s = ""
	case ".x.x", ".*.*":
		s = ""
	}
	if s != "" {
		c := s[0]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if c == ' ' && digitAt(strings.TrimLeft(s, " "), 0) {
			return Version{}, false // two versions are not one
		}
		if !letter && c != '-' && c != '+' && c != '~' && c != '(' && c != ' ' {
			return Version{}, false
		}
	}
	v.Suffix = strings.TrimSpace(s)
	return v, true
}
