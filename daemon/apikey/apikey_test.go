package apikey_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"gettier.dev/gettierd/daemon/apikey"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func secretOf(t testing.TB, fill byte) string {
	t.Helper()
	s, err := apikey.New(bytes.NewReader(bytes.Repeat([]byte{fill}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNew(t *testing.T) {
	s := secretOf(t, 1)
	if !strings.HasPrefix(s, "gt_live_") || len(s) != 51 || s == secretOf(t, 2) {
		t.Errorf("%q", s)
	}
	if _, err := apikey.New(bytes.NewReader(make([]byte, 31))); err == nil {
		t.Error("a key of 31 bytes")
	}
}

func TestFrom(t *testing.T) {
	a, b := secretOf(t, 1), secretOf(t, 2)
	for name, c := range map[string]struct {
		header  []string
		secret  string
		instead bool
		none    bool
	}{
		"none":                         {none: true},
		"another credential":           {header: []string{"Authorization", "Bearer other", "X-Api-Key", "other"}, none: true},
		"its own header":               {header: []string{"X-Gettier-Key", " " + a, "Authorization", "Bearer other"}, secret: a},
		"anything in its own header":   {header: []string{"X-Gettier-Key", "x"}, secret: "x"},
		"nothing in its own header":    {header: []string{"X-Gettier-Key", ""}, secret: ""},
		"bearer":                       {header: []string{"Authorization", "bearer  " + a}, secret: a, instead: true},
		"x-api-key":                    {header: []string{"X-Api-Key", a}, secret: a, instead: true},
		"the same twice":               {header: []string{"X-Gettier-Key", a, "X-Api-Key", a}, secret: a, instead: true},
		"two":                          {header: []string{"X-Gettier-Key", a, "Authorization", "Bearer " + b}, secret: "", instead: true},
		"two, the first one once more": {header: []string{"X-Gettier-Key", a, "X-Gettier-Key", b, "X-Api-Key", a}, secret: "", instead: true},
		"basic":                        {header: []string{"Authorization", "Basic " + a}, none: true},
	} {
		h := http.Header{}
		for i := 0; i < len(c.header); i += 2 {
			h.Add(c.header[i], c.header[i+1])
		}
		g, ok := apikey.From(h)
		if ok == c.none || g.Secret != c.secret || g.Instead != c.instead {
			t.Errorf("%s: %+v %v", name, g, ok)
		}
	}
}

func TestCheck(t *testing.T) {
	own, other := 1000, 1001
	key := func(fill byte, change func(*apikey.Key)) apikey.Key {
		k := apikey.Key{ID: "k" + string('0'+rune(fill)), SHA256: apikey.Sum(secretOf(t, fill)), Scopes: []string{"proxy"}, Expires: noon.Add(time.Hour)}
		change(&k)
		return k
	}
	var b apikey.Book
	if _, err := b.Check("", noon, own); !errors.Is(err, apikey.ErrUnknown) {
		t.Error(err)
	}
	b.Set([]apikey.Key{
		key(1, func(*apikey.Key) {}),
		key(2, func(k *apikey.Key) { k.Expires = noon }),
		key(3, func(k *apikey.Key) { k.Revoked = true }),
		key(4, func(k *apikey.Key) { k.Scopes = []string{"facts"} }),
		key(5, func(k *apikey.Key) { k.UID = &other }),
		key(6, func(k *apikey.Key) { k.SHA256 = "zz" }),
	})
	for fill, want := range map[byte]error{1: nil, 2: apikey.ErrExpired, 3: apikey.ErrRevoked, 4: apikey.ErrScope, 5: apikey.ErrScope, 6: apikey.ErrUnknown, 7: apikey.ErrUnknown} {
		if _, err := b.Check(secretOf(t, fill), noon, own); !errors.Is(err, want) {
			t.Errorf("%d: %v", fill, err)
		}
	}
	if _, err := b.Check(secretOf(t, 5), noon, other); err != nil {
		t.Error(err)
	}
	if _, err := b.Check(secretOf(t, 5), noon, -1); !errors.Is(err, apikey.ErrScope) {
		t.Errorf("a peer that cannot be told: %v", err)
	}
	if b.Usable(noon) != 3 {
		t.Errorf("usable %d", b.Usable(noon))
	}
}

// TestSpend: a day of a key has so many requests, also after a restart; a clock
// that steps back gives none back.
func TestSpend(t *testing.T) {
	var b apikey.Book
	k, free := apikey.Key{ID: "k", PerDay: 2}, apikey.Key{ID: "free"}
	spend := func(at time.Time, want time.Duration) {
		t.Helper()
		if wait := b.Spend(k, at); wait != want {
			t.Errorf("at %v: %v, not %v", at, wait, want)
		}
	}
	late := time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)
	spend(late.Add(-time.Hour), 0)
	spend(late, 0)
	spend(late, time.Hour)
	spend(late.Add(-time.Minute), time.Hour+time.Minute)
	spend(late.In(time.FixedZone("east", 7200)), time.Hour) // a day is one of UTC
	if u := b.Used("k", late); u.Requests != 2 || !u.At.Equal(late) {
		t.Errorf("%+v", u)
	}
	again := apikey.Book{}
	again.Recall(b.Uses())
	b.Recall(map[string]apikey.Use{"k": {At: late.Add(-2 * time.Hour), Requests: 9}}) // older than what is known
	if again.Spend(k, late) != time.Hour || b.Used("k", late).Requests != 2 {
		t.Error("a restart gave the day back, or an older count was taken")
	}
	if u := b.Used("k", late.Add(time.Hour)); u.Requests != 0 {
		t.Errorf("the next day began with %+v", u)
	}
	spend(late.Add(time.Hour), 0)
	for range 5 {
		if b.Spend(free, late) != 0 {
			t.Error("a key without a bound has one")
		}
	}
	if u := b.Used("free", late); u.Requests != 5 || len(b.Uses()) != 2 {
		t.Errorf("%+v", u)
	}
}

func TestReaches(t *testing.T) {
	k := apikey.Key{Upstreams: []string{"openai"}, Projects: []string{"shop", "site"}}
	for _, c := range []struct {
		upstream string
		projects []string
		may      bool
	}{
		{"openai", []string{"shop", ""}, true}, {"openai", []string{"", "site"}, true}, {"openai", []string{"", ""}, false},
		{"openai", []string{"other", ""}, false}, {"anthropic", []string{"shop"}, false},
	} {
		if err := k.Reaches(c.upstream, c.projects...); (err == nil) != c.may || err != nil && !errors.Is(err, apikey.ErrScope) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := (apikey.Key{}).Reaches("any"); err != nil {
		t.Error(err)
	}
}

func BenchmarkCheck(b *testing.B) {
	keys := make([]apikey.Key, apikey.Max)
	for i := range keys {
		keys[i] = apikey.Key{ID: "k", SHA256: apikey.Sum(secretOf(b, byte(i))), Scopes: []string{"proxy"}, Expires: noon.Add(time.Hour)}
	}
	var book apikey.Book
	book.Set(keys)
	secret := secretOf(b, 3)
	for b.Loop() {
		if _, err := book.Check(secret, noon, 0); err != nil {
			b.Fatal(err)
		}
	}
}
