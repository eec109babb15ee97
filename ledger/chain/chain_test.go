package chain_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/chain"
	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"
)

func TestCanonical(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"order by UTF-16 units", `{"\ufb33":1,"\ud83d\ude00":2,"a":3}`, "{\"a\":3,\"\U0001F600\":2,\"\ufb33\":1}"},
		{"nested, spaces", ` { "b" : [ 1 , {"y":2,"x":1} ] , "a" : null } `, `{"a":null,"b":[1,{"x":1,"y":2}]}`},
		{"the RFC's numbers", `[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001,-0]`, `[333333333.3333333,1e+30,4.5,0.002,1e-27,0]`},
		{"escapes", `"\u20ac$\u000F\nA'\u0042\u0022\u005c\\\"\/<>&"`, "\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/<>&\""},
		{"largest integers", `[9007199254740992,-9007199254740992]`, `[9007199254740992,-9007199254740992]`},
		{"digits in text", `{"n":"9007199254740993"}`, `{"n":"9007199254740993"}`},
		{"a long fraction is a double", `0.12345678901234567890123`, `0.12345678901234568`},
	} {
		got, err := chain.Canonical([]byte(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", c.name, got, err, c.want)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for _, c := range []struct{ name, in string }{
		{"duplicate name", `{"a":1,"a":2}`},
		{"duplicate name by escape", `{"a":1,"\u0061":2}`},
		{"duplicate name, nested", `[{"x":{"b":1,"b":1}}]`},
		{"lone high surrogate", `"\ud800"`},
		{"lone low surrogate", `"x\udc00"`},
		{"lone surrogate as a name", `{"\udfff":1}`},
		{"invalid UTF-8", "\"\xff\""},
		{"integer beyond 2^53", `9007199254740993`},
		{"negative integer beyond 2^53", `{"a":[-9007199254740993]}`},
		{"very long integer", `{"a":123456789012345678901234567890}`},
		{"two values", `{} {}`},
		{"nothing", ``},
		{"leading zero", `01`},
		{"NaN", `NaN`},
		{"infinite", `1e400`},
	} {
		if got, err := chain.Canonical([]byte(c.in)); !errors.Is(err, chain.ErrFormat) {
			t.Errorf("%s: got %s, %v", c.name, got, err)
		}
	}
}

// anyJSON draws values whose numbers both implementations may keep.
func anyJSON(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 6
		if depth == 0 {
			kinds = 4
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return rapid.String().Draw(t, "s")
		case 1:
			return rapid.Int64Range(-1<<53, 1<<53).Draw(t, "i")
		case 2:
			return rapid.Float64().Filter(func(f float64) bool { return math.Abs(f) < 1<<52 }).Draw(t, "f")
		case 3:
			return rapid.SampledFrom([]any{nil, true, false}).Draw(t, "w")
		case 4:
			return rapid.SliceOfN(anyJSON(depth-1), 0, 4).Draw(t, "a")
		}
		return rapid.MapOfN(rapid.String(), anyJSON(depth-1), 0, 4).Draw(t, "o")
	})
}

// TestCanonicalAgainstJCS holds our canonical form against another
// implementation of RFC 8785.
func TestCanonicalAgainstJCS(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, err := json.Marshal(anyJSON(3).Draw(t, "v"))
		if err != nil {
			t.Skip(err)
		}
		want, err := jcs.Transform(in)
		if err != nil {
			t.Skip(err)
		}
		got, err := chain.Canonical(in)
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("in   %s\ngot  %s\nwant %s", in, got, want)
		}
		again, err := chain.Canonical(got)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("not a fixed point: %s, %v", again, err)
		}
	})
}

func entry() chain.Entry {
	return chain.Entry{V: 1, Seq: 7, TS: "2026-03-01T12:00:00.000000000Z", Kind: "turn.closed", Tenant: "local", Turn: "t_a", Prev: strings.Repeat("ab", 32), Body: json.RawMessage(`{"b":[1,2],"a":"x}\"{"}`)}
}

func TestEncodeDecode(t *testing.T) {
	e := entry()
	raw, err := chain.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"body":{"a":"x}\"{","b":[1,2]},"kind":"turn.closed","prev":"` + e.Prev + `","seq":7,"tenant":"local","ts":"2026-03-01T12:00:00.000000000Z","turn":"t_a","v":1}`
	if string(raw) != want {
		t.Fatalf("got  %s\nwant %s", raw, want)
	}
	canon, err := jcs.Transform(raw)
	if err != nil || !bytes.Equal(canon, raw) {
		t.Fatalf("not canonical: %s, %v", canon, err)
	}
	got, err := chain.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	e.Body = json.RawMessage(`{"a":"x}\"{","b":[1,2]}`)
	if d := cmp.Diff(e, got); d != "" {
		t.Fatal(d)
	}
	if sum := sha256.Sum256(append([]byte{0}, raw...)); chain.Hash(raw) != sum || tlog.RecordHash(raw) != tlog.Hash(sum) {
		t.Fatal("leaf hash is not RFC 6962's")
	}
}

func TestDecodeRefuses(t *testing.T) {
	good, err := chain.Encode(entry())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, new string }{
		{"unordered body", `{"a":"x}\"{","b":[1,2]}`, `{"b":[1,2],"a":"x"}`},
		{"duplicate in body", `"b":[1,2]`, `"a":[1,2]`},
		{"space", `"seq":7`, `"seq": 7`},
		{"leading zero", `"seq":7`, `"seq":07`},
		{"float", `"seq":7`, `"seq":7.0`},
		{"body is a list", `{"a":"x}\"{","b":[1,2]}`, `[1]`},
		{"open body", `"b":[1,2]}`, `"b":[1,2]`},
		{"mismatched brackets", `[1,2]`, `[1,2}`},
		{"another version", `"v":1`, `"v":2`},
		{"another member", `"v":1`, `"v":1,"w":1`},
		{"upper-case link", `"abab`, `"ABab`},
		{"short link", `"abab`, `"ab`},
		{"empty turn", `"t_a"`, `""`},
		{"turn with marks", `"t_a"`, `"t-a"`},
		{"kind with a quote", `turn.closed`, `turn\"closed`},
		{"ts with an offset", `000000000Z"`, `0000+01:00"`},
		{"ts of no day", `2026-03-01`, `2026-02-30`},
		{"trailing bytes", `"v":1}`, `"v":1}{}`},
		{"escaped letter", `"x}`, `"\u0078}`},
	} {
		bad := strings.Replace(string(good), c.old, c.new, 1)
		if bad == string(good) {
			t.Fatalf("%s: nothing replaced", c.name)
		}
		if e, err := chain.Decode([]byte(bad)); !errors.Is(err, chain.ErrFormat) {
			t.Errorf("%s: read as %+v, %v", c.name, e, err)
		}
	}
}

func TestEncodeLimits(t *testing.T) {
	e := entry()
	e.Body = json.RawMessage(`{"a":"` + strings.Repeat("x", chain.MaxEntry) + `"}`)
	if _, err := chain.Encode(e); !errors.Is(err, chain.ErrTooLarge) || !strings.Contains(err.Error(), "turn.closed") {
		t.Errorf("too large: %v", err)
	}
	for n := chain.MaxEntry - 300; ; n++ {
		e.Body = json.RawMessage(`{"a":"` + strings.Repeat("x", n) + `"}`)
		raw, err := chain.Encode(e)
		if err != nil {
			if n < chain.MaxEntry-260 {
				t.Errorf("refused at %d", n)
			}
			break
		}
		if over := len(raw) - len(e.Body); over > chain.Overhead(e.Kind, e.Tenant, e.Turn) {
			t.Fatalf("overhead is %d", over)
		}
		if _, err := chain.Decode(raw); err != nil {
			t.Fatalf("%d bytes: %v", len(raw), err)
		}
	}
	first := entry()
	first.Seq = 0
	if _, err := chain.Encode(first); !errors.Is(err, chain.ErrFormat) {
		t.Errorf("first entry with a link: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	good, err := chain.Encode(entry())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"body":{"a":{"b":["}"]}},"kind":"x","prev":"` + chain.ZeroPrev + `","seq":0,"tenant":"local","ts":"2026-03-01T12:00:00.000000000Z","v":1}`))
	f.Add([]byte(`{"body":{`))
	f.Add([]byte(`{"body":{"\`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := chain.Decode(raw)
		if err != nil {
			return
		}
		again, err := chain.Encode(e)
		if err != nil || !bytes.Equal(again, raw) {
			t.Fatalf("read %q, wrote %q, %v", raw, again, err)
		}
		if canon, err := jcs.Transform(raw); err != nil || !bytes.Equal(canon, raw) {
			t.Fatalf("accepted %q, canonical is %q, %v", raw, canon, err)
		}
	})
}

// hashes is a tlog.HashReader over everything that a tree completed.
type hashes map[uint64]chain.Digest

func (h hashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		v, ok := h[uint64(x)]
		if !ok {
			return nil, errors.New("no such hash")
		}
		out[i] = tlog.Hash(v)
	}
	return out, nil
}

// TestTreeAgainstTlog grows a tree and holds roots, numbering and reload against
// golang.org/x/mod/sumdb/tlog at every size.
func TestTreeAgainstTlog(t *testing.T) {
	tree, stored := new(chain.Tree), hashes{}
	if tree.Root() != sha256.Sum256(nil) {
		t.Error("root of the empty tree")
	}
	for n := range int64(300) {
		leaf := chain.Hash([]byte{byte(n), byte(n >> 8)})
		tree.Append(leaf, func(x chain.Node) {
			if _, ok := stored[x.Index()]; ok {
				t.Fatalf("node %v twice", x)
			}
			if l, m := chain.NodeAt(x.Index()); l != x.Level || m != x.N {
				t.Fatalf("node %v reads back as %d, %d", x, l, m)
			}
			stored[x.Index()] = x.Hash
		})
		if want := tlog.StoredHashCount(n + 1); int64(len(stored)) != want {
			t.Fatalf("size %d: %d nodes, tlog has %d", n+1, len(stored), want)
		}
		want, err := tlog.TreeHash(n+1, stored)
		if err != nil {
			t.Fatal(err)
		}
		if tree.Root() != chain.Digest(want) || tree.Size() != uint64(n+1) {
			t.Fatalf("size %d: another root", n+1)
		}
		loaded, err := chain.LoadTree(uint64(n+1), func(level int, m uint64) (chain.Digest, error) { return stored[chain.NodeIndex(level, m)], nil })
		if err != nil || loaded.Root() != tree.Root() {
			t.Fatalf("size %d: loaded tree differs, %v", n+1, err)
		}
		side := tree.Clone()
		side.Append(leaf, nil)
		if tree.Root() != chain.Digest(want) {
			t.Fatal("a clone grew its original")
		}
	}
}

func TestCheckpoint(t *testing.T) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	pub := key.Public().(ed25519.PublicKey)
	want := chain.Checkpoint{Origin: chain.Origin(pub), Size: 12, Root: sha256.Sum256([]byte("x"))}
	signed, err := chain.SignCheckpoint(want, key)
	if err != nil {
		t.Fatal(err)
	}
	got, err := chain.OpenCheckpoint(signed, pub)
	if err != nil || got != want {
		t.Fatalf("%+v, %v", got, err)
	}
	// Any note tool opens it with the published verifier key.
	vkey, err := chain.VerifierKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	v, err := note.NewVerifier(vkey)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := note.Open(signed, note.VerifierList(v)); err != nil || n.Text != want.Text() {
		t.Fatalf("note.Open: %v", err)
	}
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, 32))
	if _, err := chain.OpenCheckpoint(signed, other.Public().(ed25519.PublicKey)); !errors.Is(err, chain.ErrFormat) {
		t.Errorf("another key: %v", err)
	}
	stolen := want
	stolen.Origin = chain.Origin(other.Public().(ed25519.PublicKey))
	forged, err := chain.SignCheckpoint(stolen, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []ed25519.PublicKey{pub, other.Public().(ed25519.PublicKey)} {
		if _, err := chain.OpenCheckpoint(forged, p); !errors.Is(err, chain.ErrFormat) {
			t.Errorf("another log's name: %v", err)
		}
	}
	for i := range signed {
		for _, bit := range []byte{1, 4, 0x20, 0x80} {
			bad := bytes.Clone(signed)
			bad[i] ^= bit
			if c, err := chain.OpenCheckpoint(bad, pub); err == nil {
				t.Errorf("byte %d changed by %#x: read as %+v", i, bit, c)
			}
		}
	}
	for _, text := range []string{"", "a\n1\n", "a\n1\nAAAA\n", "a\n01\n" + strings.Repeat("A", 43) + "=\n", want.Text() + "more\n", "\n1\n" + strings.Repeat("A", 43) + "=\n", "a\n-1\n" + strings.Repeat("A", 43) + "=\n"} {
		if c, err := chain.ParseCheckpoint(text); !errors.Is(err, chain.ErrFormat) {
			t.Errorf("%q: read as %+v", text, c)
		}
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add(chain.Checkpoint{Origin: "a", Size: 3}.Text())
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := chain.ParseCheckpoint(text); err == nil && c.Text() != text {
			t.Fatalf("read %q, writes %q", text, c.Text())
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	e := entry()
	e.Body = json.RawMessage(`{"a":"` + strings.Repeat("x", 760) + `"}`)
	raw, err := chain.Encode(e)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(raw)))
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			if _, err := chain.Canonical(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("jcs", func(b *testing.B) {
		for b.Loop() {
			if _, err := jcs.Transform(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestAppendNext: with the hash of the entry before it writes what AppendEntry
// writes with its spelling, and refuses the same.
func TestAppendNext(t *testing.T) {
	prev := chain.Hash([]byte("x"))
	good := chain.Entry{V: chain.Version, Seq: 7, TS: "2026-12-01T10:00:00.000000000Z", Kind: "state.lost", Tenant: "local", Turn: "t_1", Body: []byte(`{"a":1}`)}
	for name, spoil := range map[string]func(*chain.Entry){
		"good": func(*chain.Entry) {}, "first": func(e *chain.Entry) { e.Seq = 0 }, "kind": func(e *chain.Entry) { e.Kind = "A" }, "ts": func(e *chain.Entry) { e.TS = "now" },
		"body": func(e *chain.Entry) { e.Body = []byte("1") }, "no turn": func(e *chain.Entry) { e.Turn = "" }, "large": func(e *chain.Entry) { e.Body = []byte(`{"a":"` + strings.Repeat("x", chain.MaxEntry) + `"}`) },
	} {
		e := good
		spoil(&e)
		got, err1 := chain.AppendNext([]byte("before"), e, prev)
		e.Prev = chain.Link(prev)
		want, err2 := chain.AppendEntry([]byte("before"), e)
		if string(got) != string(want) || (err1 == nil) != (err2 == nil) {
			t.Errorf("%s: %q %v, want %q %v", name, got, err1, want, err2)
		}
	}
}
