package config

import (
	"strings"
	"testing"
)

func TestDefaultMatchesTable(t *testing.T) {
	c := Default()
	vals := values(c)
	for _, k := range Keys {
		name := strings.Replace(k.Name, "*", "openai", 1)
		v, ok := vals[name]
		if !ok {
			t.Errorf("%s is in the table and not in the struct", name)
			continue
		}
		if text, _ := check(k, name, v); text != "" {
			t.Errorf("%s: its own default %v %s", name, v, text)
		}
	}
	for key := range vals {
		if keyOf(key).Name == "" {
			t.Errorf("%s is in the struct and not in the table", key)
		}
	}
	if c.Proxy.Port != DefaultPort || c.Upstreams["anthropic"].Format != "anthropic" || !c.Upstreams["openai"].Trusted {
		t.Errorf("defaults: %+v", c)
	}
}

func TestLoadFile(t *testing.T) {
	c, w, err := Parse("gettierd.yaml", []byte("version: 1\ngate:\n  classes: {explore: off, edit: log}\n  client_wait: 7d\nproxy: {max_body: 1MiB}\nupstreams:\n  local: {base_url: 'http://127.0.0.1:1', headers: {X-Foo: bar}}\nprojects:\n- name: shop\n  root: /tmp\n"), nil, nil)
	t.Logf("%+v %v %v", c, w, err)
	if err == nil {
		t.Error("7d is too long a wait")
	}
	_, _, err = Parse("gettierd.yaml", Sample(), nil, nil)
	if err != nil {
		t.Error(err)
	}
	t.Logf("%s", Sample())
}
