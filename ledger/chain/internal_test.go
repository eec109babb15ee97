package chain

import (
	"bytes"
	"testing"
)

func surelyCanonical(b []byte) bool { return canonicalValue(b, 0, 0) == len(b) }

// FuzzSurelyCanonical: the quick check never says yes where the slow one differs.
func FuzzSurelyCanonical(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":[true,null,"x\n\"ü"],"c":{}}`, `{"b":1,"a":2}`, `{"a":1,"a":2}`, `-0`, `01`, `1.0`, `"\u0041"`, `"\/"`, `[1,]`, `{"ü":1}`, "\"\x7f\"", "\"seven bytes\x1f and more\"", `"eight byt\n\\es of it"`, "\"12345678\xffabcdefg\"", `{"a":{"a":[[[]]]}}`, `[-1,0,999999999999999]`, `nulltrue`, `"\ud800"`, "\"\xed\xa0\x80\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !surelyCanonical(b) {
			return
		}
		if canon, err := Canonical(b); err != nil || !bytes.Equal(canon, b) {
			t.Fatalf("sure of %q; canonical is %q, %v", b, canon, err)
		}
	})
}

func TestSurelyCanonicalKnowsOrdinaryEntries(t *testing.T) {
	for _, s := range []string{`{"a":1,"b":[true,null,"x\n\"ü"],"c":{}}`, `[]`, `{}`, `[-1,0,999999999999999]`, `""`} {
		if !surelyCanonical([]byte(s)) {
			t.Errorf("not sure of %s", s)
		}
	}
}
