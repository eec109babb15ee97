package ledger_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/archive"
	"gettier.dev/gettierd/ledger/chain"
	"gettier.dev/gettierd/ledger/verify"
)

var makeVectors = flag.Bool("make-vectors", false, "write testdata/vectors anew; never needed for a format that exists")

// The files under testdata/vectors, as FORMAT.md describes them.
type (
	canonicalVector struct {
		In  string `json:"in"`            // hex
		Out string `json:"out,omitempty"` // hex; absent = refused
		Why string `json:"why"`
	}
	entryVector struct {
		Raw  string `json:"raw"`            // the bytes as text
		Hash string `json:"hash,omitempty"` // absent = refused
		Why  string `json:"why,omitempty"`
	}
	rootVector struct {
		Size uint64 `json:"size"` // of a tree whose leaf i is the hash of the decimal of i
		Root string `json:"root"`
	}
	proofVector struct {
		Size  uint64   `json:"size"`
		Index uint64   `json:"index"`
		Leaf  string   `json:"leaf"`
		Path  []string `json:"path"`
		Root  string   `json:"root"`
		OK    bool     `json:"ok"`
	}
	noteVector struct {
		Key  string `json:"key"`
		Note string `json:"note"`
		Size uint64 `json:"size,omitempty"`
		Root string `json:"root,omitempty"` // absent = refused
		Why  string `json:"why,omitempty"`
	}
)

func vectorsOf[T any](t *testing.T, name string) (out []T) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "vectors", name))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil || len(out) == 0 {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

func writeVector(t *testing.T, name string, v any) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", "vectors", name), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestVectors holds both implementations against the files that a third one
// would be written from.
func TestVectors(t *testing.T) {
	if *makeVectors {
		makeVectorFiles(t)
	}
	t.Run("canonical", func(t *testing.T) {
		for _, v := range vectorsOf[canonicalVector](t, "canonical.json") {
			in := unhex(t, v.In)
			a, errA := chain.Canonical(in)
			b, errB := verify.Canonical(in)
			if (errA == nil) != (v.Out != "") || (errB == nil) != (v.Out != "") || hex.EncodeToString(a) != v.Out || hex.EncodeToString(b) != v.Out {
				t.Errorf("%s: %q\n%q %v\n%q %v", v.Why, in, a, errA, b, errB)
			}
		}
	})
	t.Run("entries", func(t *testing.T) {
		for _, v := range vectorsOf[entryVector](t, "entries.json") {
			_, errA := chain.Decode([]byte(v.Raw))
			_, errB := verify.ParseEntry([]byte(v.Raw))
			hash := verify.LeafHash([]byte(v.Raw))
			ok := v.Hash != ""
			if (errA == nil) != ok || (errB == nil) != ok || chain.Hash([]byte(v.Raw)) != hash || ok && hex.EncodeToString(hash[:]) != v.Hash {
				t.Errorf("%s: %.200q: %v, %v", v.Why, v.Raw, errA, errB)
			}
		}
	})
	t.Run("roots", func(t *testing.T) {
		var tree chain.Tree
		var leaves []verify.Digest
		for _, v := range vectorsOf[rootVector](t, "roots.json") {
			for tree.Size() < v.Size {
				leaf := vectorLeaf(tree.Size())
				tree.Append(leaf, nil)
				leaves = append(leaves, leaf)
			}
			a, b := tree.Root(), verify.Root(leaves)
			if hex.EncodeToString(a[:]) != v.Root || b != a {
				t.Errorf("size %d: %x, %x, not %s", v.Size, a, b, v.Root)
			}
		}
	})
	t.Run("proofs", func(t *testing.T) {
		for _, v := range vectorsOf[proofVector](t, "proofs.json") {
			var path []chain.Digest
			for _, h := range v.Path {
				path = append(path, chain.Digest(unhex(t, h)))
			}
			leaf, want := chain.Digest(unhex(t, v.Leaf)), chain.Digest(unhex(t, v.Root))
			err := chain.CheckInclusion(path, chain.Checkpoint{Size: v.Size, Root: want}, v.Index, leaf)
			root, ok := verify.RootFromProof(path, v.Size, v.Index, leaf)
			if (err == nil) != v.OK || (ok && root == want) != v.OK {
				t.Errorf("leaf %d of %d: %v, %v", v.Index, v.Size, err, ok)
			}
		}
	})
	t.Run("checkpoints", func(t *testing.T) {
		for _, v := range vectorsOf[noteVector](t, "checkpoints.json") {
			_, pub, err := archive.ParseKey(v.Key)
			key, kerr := verify.ParseKey(v.Key)
			if err != nil || kerr != nil {
				t.Fatal(err, kerr)
			}
			a, errA := chain.OpenCheckpoint([]byte(v.Note), pub)
			b, errB := verify.OpenCheckpoint([]byte(v.Note), key)
			ok := v.Root != ""
			if (errA == nil) != ok || (errB == nil) != ok || ok && (a.Size != v.Size || b.Size != v.Size || hex.EncodeToString(a.Root[:]) != v.Root || a.Root != b.Root) {
				t.Errorf("%s: %v, %v", v.Why, errA, errB)
			}
		}
	})
	t.Run("export", func(t *testing.T) {
		tar, err := os.ReadFile(filepath.Join("testdata", "vectors", "export.tar"))
		if err != nil {
			t.Fatal(err)
		}
		if a, _ := agree(t, tar); !a.OK() || a.Size != 16 {
			t.Fatalf("%+v", a)
		}
		proof, err := os.ReadFile(filepath.Join("testdata", "vectors", "entry-5.tlog-proof"))
		if err != nil {
			t.Fatal(err)
		}
		key := vectorsOf[noteVector](t, "checkpoints.json")[0].Key
		p, err := archive.ParseProof(proof)
		if err == nil {
			_, _, err = p.Check(key)
		}
		if _, _, verr := verify.Proof(proof, key); err != nil || verr != nil {
			t.Fatal(err, verr)
		}
		// The stored ledger of format 1 gives these bytes, for ever.
		l, err := ledger.Open(filepath.Join("testdata", "v1.db"), ledger.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if now := exported(t, l); !bytes.Equal(now, tar) {
			t.Error("v1.db exports other bytes than export.tar")
		}
	})
}

func vectorLeaf(i uint64) chain.Digest {
	b, _ := json.Marshal(i) // a number: never fails
	return chain.Hash(b)
}

func makeVectorFiles(t *testing.T) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join("testdata", "vectors"), 0o755); err != nil {
		t.Fatal(err)
	}
	var canonical []canonicalVector
	for _, v := range [][2]string{
		{"members are sorted", `{"b":1,"a":2}`}, {"white space goes", " {\n\t\"a\" : [ 1 , 2 ] }\r\n"},
		{"names sort by UTF-16 units", "{\"\ufb33\":1,\"\U0001f600\":2,\"\\u20ac\":3,\"\\r\":4,\"1\":5}"},
		{"numbers as ECMAScript writes them", `[1.0,-0,-0.0,1e21,1e20,1e-6,1e-7,4.50,2e-3,5e-324,0.1,333333333.33333329,1E30]`},
		{"the largest integers", `[9007199254740992,-9007199254740992]`}, {"escapes as short as they go", `"\u0041\/\u001f\b\u0008\n\"\\\u00e9\ud83d\ude00\u007f\u2028"`},
		{"an underflow is nothing", `1e-400`}, {"empty ones", `{"":[],"a":{}}`},
		{"a name twice", `{"a":1,"a":1}`}, {"a name twice, spelled differently", `{"a":1,"\u0061":2}`}, {"a lone surrogate", `"\ud800"`}, {"surrogates in the wrong order", `"\ude00\ud83d"`},
		{"invalid UTF-8", "\"\xff\""}, {"an encoded surrogate", "\"\xed\xa0\x80\""}, {"an integer beyond 2^53", `9007199254740993`}, {"a negative one", `-9007199254740993`},
		{"a number beyond the doubles", `1e400`}, {"a leading zero", `01`}, {"no digits behind the point", `1.`}, {"a plus", `+1`}, {"not a number", `NaN`}, {"a control character", "\"\x01\""},
		{"an unknown escape", `"\x41"`}, {"a comma too many", `[1,]`}, {"two values", `1 2`}, {"nothing", ``}, {"a byte order mark", "\ufeff1"}, {"a comment", `[1/**/]`},
		{"10,000 levels", strings.Repeat("[", 10000) + strings.Repeat("]", 10000)}, {"10,001 levels", strings.Repeat("[", 10001) + strings.Repeat("]", 10001)},
	} {
		c := canonicalVector{In: hex.EncodeToString([]byte(v[1])), Why: v[0]}
		if out, err := verify.Canonical([]byte(v[1])); err == nil {
			c.Out = hex.EncodeToString(out)
		}
		canonical = append(canonical, c)
	}
	writeVector(t, "canonical.json", canonical)

	l, err := ledger.Open(filepath.Join("testdata", "v1.db"), ledger.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var entries []entryVector
	add := func(raw, why string) {
		v := entryVector{Raw: raw, Why: why}
		if _, err := verify.ParseEntry([]byte(raw)); err == nil {
			h := verify.LeafHash([]byte(raw))
			v.Hash = hex.EncodeToString(h[:])
		}
		entries = append(entries, v)
	}
	for seq := range l.Head().Size {
		_, raw, err := l.At(seq)
		if err != nil {
			t.Fatal(err)
		}
		add(string(raw), "")
	}
	const good = `{"body":{"a":[1,"x"]},"kind":"turn.opened","prev":"00000000000000000000000000000000000000000000000000000000000000ab","seq":3,"tenant":"local","ts":"2026-02-28T23:59:59.000000001Z","turn":"t_1","v":1}`
	add(good, "an unknown body stays")
	for _, r := range [][3]string{{`"turn.opened"`, `"a.kind.of.tomorrow"`, "an unknown kind stays"}, {`2026-02-28`, `2024-02-29`, "a leap day"}, {`,"turn":"t_1"`, ``, "no turn"}, {`"seq":3`, `"seq":9007199254740991`, "the last number"},
		{`"seq":3`, `"seq":9007199254740992`, "a number too far"}, {`"seq":3`, `"seq":0`, "the first entry links to nothing"}, {`"seq":3`, `"seq":3.0`, "a number with a fraction"}, {`"turn":"t_1"`, `"turn":""`, "an empty turn"}, {`59.0`, `59,0`, "a comma in the time"},
		{`2026-02-28`, `2026-02-29`, "no such day"}, {`T23`, `T24`, "no such hour"}, {`:59.`, `:60.`, "a leap second"}, {`{"a":[1,"x"]}`, `[]`, "a body that is no object"}, {`{"a":[1`, `{"a": [1`, "a space"},
		{`"v":1`, `"v":2`, "another version"}, {`"v":1}`, `"v":1,"w":1}`, "a member too many"}, {`"tenant":"local",`, ``, "a member too few"}, {`"local"`, `"lo\u0063al"`, "an escape that need not be"}, {`00ab`, `00AB`, "upper case in the link"},
		{`00ab"`, `0ab"`, "a short link"}, {`"turn.opened"`, `"Turn"`, "upper case in the kind"}, {`"body":{"a":[1,"x"]},"kind":"turn.opened"`, `"kind":"turn.opened","body":{"a":[1,"x"]}`, "members in another order"}, {`"v":1}`, "\"v\":1}\n", "a line feed behind it"}} {
		add(strings.Replace(good, r[0], r[1], 1), r[2])
	}
	add(strings.Replace(good, `"x"`, `"`+strings.Repeat("x", 65535-len(good)+1)+`"`, 1), "65,535 bytes")
	add(strings.Replace(good, `"x"`, `"`+strings.Repeat("x", 65535-len(good)+2)+`"`, 1), "65,536 bytes")
	writeVector(t, "entries.json", entries)

	var roots []rootVector
	var tree chain.Tree
	for _, size := range []uint64{0, 1, 2, 3, 4, 5, 7, 8, 255, 256, 257, 1000, 65535, 65536, 65537, 70000} {
		for tree.Size() < size {
			tree.Append(vectorLeaf(tree.Size()), nil)
		}
		root := tree.Root()
		roots = append(roots, rootVector{size, hex.EncodeToString(root[:])})
	}
	writeVector(t, "roots.json", roots)

	var proofs []proofVector
	for _, at := range [][2]uint64{{1, 0}, {2, 0}, {2, 1}, {3, 2}, {7, 3}, {7, 6}, {8, 5}, {257, 256}, {1000, 999}, {1000, 511}} {
		size, n := at[0], at[1]
		path, err := chain.InclusionProof(size, n, subtree)
		if err != nil {
			t.Fatal(err)
		}
		t2 := new(chain.Tree)
		for t2.Size() < size {
			t2.Append(vectorLeaf(t2.Size()), nil)
		}
		root, leaf := t2.Root(), vectorLeaf(n)
		p := proofVector{Size: size, Index: n, Leaf: hex.EncodeToString(leaf[:]), Path: []string{}, Root: hex.EncodeToString(root[:]), OK: true}
		for _, h := range path {
			p.Path = append(p.Path, hex.EncodeToString(h[:]))
		}
		proofs = append(proofs, p)
		for _, harm := range []func(*proofVector){
			func(p *proofVector) { p.Index = size }, func(p *proofVector) { p.Root = p.Leaf[:62] + "00" },
			func(p *proofVector) { p.Path = append(p.Path, p.Leaf) }, func(p *proofVector) { p.Path = p.Path[:max(len(p.Path), 1)-1]; p.Leaf = strings.Repeat("0", 64) },
		} {
			bad := p
			bad.OK, bad.Path = false, append([]string{}, p.Path...)
			harm(&bad)
			proofs = append(proofs, bad)
		}
	}
	writeVector(t, "proofs.json", proofs)

	keys, err := l.VerifierKeys()
	if err != nil {
		t.Fatal(err)
	}
	key, signed := strings.TrimSpace(string(keys)), string(l.Checkpoint())
	var notes []noteVector
	note := func(text, why string) {
		v := noteVector{Key: key, Note: text, Why: why}
		k, err := verify.ParseKey(key)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := verify.OpenCheckpoint([]byte(text), k); err == nil {
			v.Size, v.Root = c.Size, hex.EncodeToString(c.Root[:])
		}
		notes = append(notes, v)
	}
	note(signed, "")
	note(signed+"— other.example AAAAAAAAAA==\n", "a signature of somebody else beside it")
	note(strings.Replace(signed, "\n16\n", "\n17\n", 1), "another size")
	note(strings.Replace(signed, "\n16\n", "\n016\n", 1), "a leading zero")
	note(strings.Replace(signed, "oZ", "pZ", 1), "another root")
	note(strings.Replace(signed, "gettier.dev", "gettier.example", 1), "another origin")
	note(strings.TrimSuffix(signed, "\n"), "no line feed at the end")
	note(signed+"\n", "a line feed too many")
	note(strings.Replace(signed, "— ", "- ", 1), "a hyphen for the dash")
	note(signed[:strings.Index(signed, "\n\n")+2], "no signature")
	note(strings.Replace(signed, "\n16\n", "\r\n16\n", 1), "a carriage return")
	unused := strings.TrimSuffix(signed, "=\n")
	note(unused[:len(unused)-1]+string(unused[len(unused)-1]+1)+"=\n", "a bit set that base64 does not use")
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, ed25519.SeedSize))
	foreign, err := chain.SignCheckpoint(chain.Checkpoint{Origin: chain.Origin(other.Public().(ed25519.PublicKey)), Size: 16}, other)
	if err != nil {
		t.Fatal(err)
	}
	note(string(foreign), "another log's")
	writeVector(t, "checkpoints.json", notes)

	var tar bytes.Buffer
	if _, err := l.Export(context.Background(), &tar, nil); err != nil {
		t.Fatal(err)
	}
	proof, err := l.Proof(5)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"export.tar": tar.Bytes(), "entry-5.tlog-proof": proof} {
		if err := os.WriteFile(filepath.Join("testdata", "vectors", name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// subtree is the hash of the n-th complete subtree of a level, of vectorLeaf.
func subtree(level int, n uint64) (chain.Digest, error) {
	if level == 0 {
		return vectorLeaf(n), nil
	}
	left, _ := subtree(level-1, 2*n) // never fails
	right, _ := subtree(level-1, 2*n+1)
	return chain.NodeHash(left, right), nil
}
