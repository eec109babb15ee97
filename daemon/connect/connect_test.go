package connect_test

import (
	"net/netip"
	"strings"
	"testing"

	"gettier.dev/gettierd/daemon/connect"
)

func TestDecide(t *testing.T) {
	rules := connect.Rules{
		AIVendors: []string{"mistral", "api.deepseek.com"}, Allow: []string{"git.example.com:22", "api.openai.com", "10.0.0.1", "*.groq.com"},
		Deny: []string{"*.tracker.example", "evil.example", "pastebin.com:8443"}, MarketplaceAllow: []string{"open-vsx.org"},
	}
	for _, c := range []struct {
		target  string
		class   connect.Class
		allowed bool
		why     string // a part of it
	}{
		{"example.com:443", connect.Other, true, "no rule names it"},
		{"EXAMPLE.com.:443", connect.Other, true, ""},
		{"example.com:22", connect.Other, false, "example.com:22"},
		{"git.example.com:22", connect.Other, true, "connect.allow"},
		{"git.example.com:443", connect.Other, true, "no rule"},
		{"git.example.com:23", connect.Other, false, "port 23"},
		{"api.anthropic.com:443", connect.Vendor, false, "anthropic is an AI vendor"},
		{"docs.anthropic.com:443", connect.Other, true, ""},
		{"notanthropic.com:443", connect.Other, true, ""},
		{"api.openai.com:443", connect.Vendor, true, "connect.allow"},
		{"chatgpt.com:443", connect.Vendor, false, "openai"},
		{"api.mistral.ai:443", connect.Vendor, true, "connect.ai_vendors has mistral"},
		{"api.deepseek.com:443", connect.Vendor, true, "api.deepseek.com"},
		{"chat.deepseek.com:443", connect.Vendor, false, "deepseek"},
		{"api.groq.com:443", connect.Vendor, true, "*.groq.com"},
		{"groq.com:443", connect.Vendor, false, "groq"},
		{"bedrock-runtime.eu-central-1.amazonaws.com:443", connect.Vendor, false, "bedrock"},
		{"bedrock-runtime.a.b.amazonaws.com:443", connect.Other, true, ""},
		{"s3.eu-central-1.amazonaws.com:443", connect.Other, true, ""},
		{"europe-west4-aiplatform.googleapis.com:443", connect.Vendor, false, "google"},
		{"storage.googleapis.com:443", connect.Other, true, ""},
		{"my-thing.openai.azure.com:443", connect.Vendor, false, "azure"},
		{"marketplace.visualstudio.com:443", connect.Marketplace, false, "vscode"},
		{"open-vsx.org:443", connect.Marketplace, true, "marketplace_allow"},
		{"a.tracker.example:443", connect.Other, false, "connect.deny"},
		{"tracker.example:443", connect.Other, true, ""},
		{"evil.example:443", connect.Other, false, "connect.deny"},
		{"localhost:443", connect.Local, false, "private"},
		{"metadata:443", connect.Local, false, ""},
		{"metadata.google.internal:443", connect.Local, false, ""},
		{"printer.local:443", connect.Local, false, ""},
		{"127.0.0.1:443", connect.Local, false, ""},
		{"10.0.0.1:443", connect.Local, false, "private"}, // not even where connect.allow has it
		{"169.254.169.254:443", connect.Local, false, ""},
		{"[::1]:443", connect.Local, false, ""},
		{"[::ffff:127.0.0.1]:443", connect.Local, false, ""},
		{"[fd00::1]:443", connect.Local, false, ""},
		{"[64:ff9b::7f00:1]:443", connect.Local, false, ""},
		{"8.8.8.8:443", connect.Other, true, ""},
		{"[2606:4700:4700::1111]:443", connect.Other, true, ""},
		{"127.1:443", connect.Unreadable, false, "no host name"},
		{"2130706433:443", connect.Unreadable, false, "no host name"},
		{"0x7f.0.0.1:443", connect.Unreadable, false, "no host name"},
		{"0177.0.0.1:443", connect.Unreadable, false, ""},
		{"fd00::1:443", connect.Unreadable, false, "brackets"},
		{"[fe80::1%eth0]:443", connect.Unreadable, false, ""},
		{"[::1:443", connect.Unreadable, false, ""},
		{"example.com", connect.Unreadable, false, "no port"},
		{"example.com:0", connect.Unreadable, false, "no port"},
		{"example.com:65536", connect.Unreadable, false, "no port"},
		{"exa mple.com:443", connect.Unreadable, false, ""},
		{"user@example.com:443", connect.Unreadable, false, ""},
		{"example..com:443", connect.Unreadable, false, ""},
		{"пример.рф:443", connect.Unreadable, false, ""},
		{":443", connect.Unreadable, false, ""},
		{"", connect.Unreadable, false, ""},
	} {
		got := rules.Decide(c.target)
		if got.Class != c.class || got.Allowed != c.allowed || !strings.Contains(got.Why, c.why) || got.Why == "" {
			t.Errorf("%s: %+v", c.target, got)
		}
		if again := rules.Decide(c.target); again != got {
			t.Errorf("%s: %+v, then %+v", c.target, got, again)
		}
	}
}

func TestCheck(t *testing.T) {
	for p, good := range map[string]bool{
		"example.com": true, "*.example.com": true, "example.com:8443": true, "8.8.8.8": true, "[2606:4700::1]": true, "[2606:4700::1]:8443": true,
		"": false, "*": false, "*example.com": false, "a.*.com": false, "https://example.com": false, "example.com:0": false, "example.com/x": false, "exa mple": false,
	} {
		if err := connect.Check(p); (err == nil) != good {
			t.Errorf("%q: %v", p, err)
		}
	}
	if connect.CheckVendor("openai") != nil || connect.CheckVendor("opnai") == nil {
		t.Error("the table's names")
	}
}

func TestPublic(t *testing.T) {
	for _, a := range []string{"0.0.0.0", "127.0.0.2", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254", "192.0.0.8", "198.18.0.1", "224.0.0.1", "255.255.255.255",
		"::", "::1", "fe80::1", "fc00::1", "fec0::1", "ff02::1", "2001:db8::1", "2002:7f00:1::", "64:ff9b::a00:1", "::ffff:10.0.0.1"} {
		if connect.Public(netip.MustParseAddr(a)) {
			t.Errorf("%s is taken for public", a)
		}
	}
	for _, a := range []string{"1.1.1.1", "172.15.0.1", "172.32.0.1", "2606:4700::1", "::ffff:8.8.8.8"} {
		if !connect.Public(netip.MustParseAddr(a)) {
			t.Errorf("%s is taken for private", a)
		}
	}
	if connect.Public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

func FuzzDecide(f *testing.F) {
	f.Add("example.com:443", "*.example.com")
	f.Add("[::1]:443", "[::1]:443")
	f.Fuzz(func(t *testing.T, target, pattern string) {
		r := connect.Rules{Allow: []string{pattern}}.Decide(target)
		if r.Allowed && (r.Class == connect.Local || r.Class == connect.Unreadable || r.Host == "" || r.Port == 0) {
			t.Fatalf("%q with %q: %+v", target, pattern, r)
		}
		if a, err := netip.ParseAddr(r.Host); err == nil && r.Allowed && !connect.Public(a) {
			t.Fatalf("%q with %q reaches %s", target, pattern, a)
		}
		if (connect.Rules{Deny: []string{pattern}}).Decide(target).Allowed && r.Allowed && strings.Contains(r.Why, "connect.allow") {
			t.Fatalf("%q: %q allows and does not deny", target, pattern)
		}
	})
}
