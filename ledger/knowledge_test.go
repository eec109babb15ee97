package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger"
	"gettier.dev/gettierd/ledger/lemma"
	"github.com/google/go-cmp/cmp"
)

func TestKnowledgeFold(t *testing.T) {
	b := newBench(t)
	l := b.open(t)
	change := func(op lemma.KnowledgeOp, k lemma.Knowledge) {
		add(t, l, ledger.Draft{Body: lemma.KnowledgeChanged{Contract: lemma.Contract, Op: op, Knowledge: k}})
	}
	one := lemma.Knowledge{ID: "k_1", Scope: "project:shop", Text: "invoices are numbered by the database", Topics: []string{"invoice"}, Sensitivity: "internal"}
	two := lemma.Knowledge{ID: "k_2", Scope: "host", Text: "backups run at three", Topics: []string{}, Sensitivity: "public"}
	change(lemma.KnowledgeAdded, one)
	change(lemma.KnowledgeAdded, two)
	bad := one
	bad.ID, bad.Text = "k_3", "two\nlines"
	change(lemma.KnowledgeAdded, bad) // an entry of another program: on the chain, in no request
	one.Text = "invoices are numbered by a sequence"
	change(lemma.KnowledgeEdited, one)
	want := func(scopes []string, items ...lemma.Knowledge) {
		t.Helper()
		p, err := l.Knowledge(scopes...)
		if err != nil || p.AsOf != l.Head().Size-1 {
			t.Errorf("as of %d of %d, %v", p.AsOf, l.Head().Size, err)
		}
		if d := cmp.Diff(items, p.Items); d != "" {
			t.Error(d)
		}
	}
	want(nil, one, two)
	want([]string{"host"}, two)
	l = reopen(t, b, l)
	want([]string{"host", "project:shop"}, one, two)
	change(lemma.KnowledgeRemoved, one)
	want(nil, two)
	if _, err := l.KnowledgeBy("k_1"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a removed one: %v", err)
	}
	verified(t, l)
}

func TestKnowledgeBounds(t *testing.T) {
	good := lemma.Knowledge{Scope: "host", Text: "ü is fine", Sensitivity: "internal"}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*lemma.Knowledge){
		"scope":       func(k *lemma.Knowledge) { k.Scope = "project:" },
		"empty":       func(k *lemma.Knowledge) { k.Text = "  " },
		"long":        func(k *lemma.Knowledge) { k.Text = strings.Repeat("x", lemma.MaxKnowledgeText+1) },
		"two lines":   func(k *lemma.Knowledge) { k.Text = "a\u2028b" },
		"escape":      func(k *lemma.Knowledge) { k.Text = "a\x1b[2Jb" },
		"bidi":        func(k *lemma.Knowledge) { k.Text = "a\u202eb" },
		"utf-8":       func(k *lemma.Knowledge) { k.Text = "a\xffb" },
		"topics":      func(k *lemma.Knowledge) { k.Topics = make([]string, lemma.MaxKnowledgeTopics+1) },
		"topic":       func(k *lemma.Knowledge) { k.Topics = []string{"a\tb"} },
		"sensitivity": func(k *lemma.Knowledge) { k.Sensitivity = "" },
	} {
		k := good
		spoil(&k)
		if err := k.Check(); !errors.Is(err, lemma.ErrKnowledge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
