// Package connect rules on where a CONNECT request may go (RFC 9110, 9.3.6): an
// AI vendor that was not approved is refused, because a program that reaches it
// directly goes around the gate (I-240). Only host and port are known; nothing of
// what flows is read. It is pure: resolving and dialing are done elsewhere.
package connect

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Class is what kind of place a host is.
type Class string

const (
	Vendor      Class = "ai_vendor"   // of a model, in the table of vendors
	Marketplace Class = "marketplace" // of extensions and MCP servers
	Local       Class = "local"       // this machine or a private network
	Other       Class = "other"
	Unreadable  Class = "unreadable" // no host and port
)

// Rules are what the configuration says of connect.
type Rules struct {
	AIVendors        []string // approved: names of the table, or host patterns
	Allow, Deny      []string // host patterns
	MarketplaceAllow []string // approved: host patterns
}

// Ruling is what becomes of one target.
type Ruling struct {
	Host    string `json:"host"`
	Port    uint16 `json:"port"`
	Class   Class  `json:"class"`
	Name    string `json:"name,omitempty"` // of the vendor or marketplace
	Allowed bool   `json:"allowed"`
	Why     string `json:"why"`
}

// https is the one port that needs no naming: a tunnel to any port would make the
// proxy a way to mail servers and shells.
const https = 443

// Decide rules on a request's target, HOST:PORT.
func (r Rules) Decide(target string) Ruling {
	out := Ruling{Class: Unreadable}
	host, port, err := split(target)
	if err != nil {
		out.Why = err.Error()
		return out
	}
	out.Host, out.Port = host, port
	out.Class, out.Name = classify(host)
	named := func(list []string) (string, bool) {
		i := slices.IndexFunc(list, func(p string) bool { return matches(p, host, port) })
		if i < 0 {
			return "", false
		}
		return list[i], true
	}
	if p, ok := named(r.Deny); ok {
		out.Why = "connect.deny has " + p
		return out
	}
	if out.Class == Local {
		out.Why = "this machine and private networks are not reached through the proxy"
		return out
	}
	if p, ok := named(r.Allow); ok {
		out.Allowed, out.Why = true, "connect.allow has "+p
		return out
	}
	if port != https {
		out.Why = fmt.Sprintf("port %d is reached only where connect.allow names it (%s:%d)", port, host, port)
		return out
	}
	switch out.Class {
	case Vendor:
		if p, ok := named(r.AIVendors); ok || slices.Contains(r.AIVendors, out.Name) {
			out.Allowed, out.Why = true, "connect.ai_vendors has "+cmp.Or(p, out.Name)
			return out
		}
		out.Why = fmt.Sprintf("%s is an AI vendor that is not in connect.ai_vendors; through the base URL of gettier env it is gated", out.Name)
	case Marketplace:
		if p, ok := named(r.MarketplaceAllow); ok {
			out.Allowed, out.Why = true, "connect.marketplace_allow has "+p
			return out
		}
		out.Why = fmt.Sprintf("%s is a marketplace that is not in connect.marketplace_allow", out.Name)
	default:
		out.Allowed, out.Why = true, "no rule names it"
	}
	return out
}

// split reads HOST:PORT; the host comes back in lower case and without the root's
// dot, an address in its shortest form.
func split(target string) (host string, port uint16, err error) {
	i := strings.LastIndexByte(target, ':')
	if i < 0 {
		return "", 0, fmt.Errorf("%.100q names no port", target)
	}
	n, err := strconv.ParseUint(target[i+1:], 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("%.100q names no port", target)
	}
	host = strings.ToLower(strings.TrimSuffix(target[:i], "."))
	if inner, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(inner, "]")
		a, err := netip.ParseAddr(host)
		if err != nil || !strings.HasSuffix(target[:i], "]") || a.Zone() != "" || !a.Is6() {
			return "", 0, fmt.Errorf("%.100q is no address", target)
		}
		return a.Unmap().String(), uint16(n), nil
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if !a.Is4() {
			return "", 0, fmt.Errorf("%.100q: an IPv6 address stands in brackets", target)
		}
		return a.String(), uint16(n), nil
	}
	if !hostname(host) {
		return "", 0, fmt.Errorf("%.100q is no host name", target)
	}
	return host, uint16(n), nil
}

// hostname reports a name of DNS in ASCII (RFC 1123, 2.1), with the underscores
// that are in use. A last label of digits is refused: resolvers take such names
// for addresses in odd spellings.
func hostname(s string) bool {
	labels := strings.Split(s, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
			return false
		}
		for i := range len(l) {
			if c := l[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	last := labels[len(labels)-1]
	return len(s) <= 253 && !(last[0] >= '0' && last[0] <= '9')
}

// matches reports whether a pattern names a host: example.com that one,
// *.example.com each one under it, with :PORT that port, else any that is allowed
// without naming (443).
func matches(pattern, host string, port uint16) bool {
	want := uint16(https)
	if i := strings.LastIndexByte(pattern, ':'); i >= 0 && !strings.HasSuffix(pattern, "]") {
		n, err := strconv.ParseUint(pattern[i+1:], 10, 16)
		if err != nil {
			return false
		}
		pattern, want = pattern[:i], uint16(n)
	}
	pattern = strings.Trim(strings.ToLower(pattern), "[]")
	if port != want {
		return false
	}
	if under, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasPrefix(under, ".") && strings.HasSuffix(host, under)
	}
	return host == strings.TrimSuffix(pattern, ".")
}

// Check is an error where a pattern can match nothing.
func Check(pattern string) error {
	p, port := pattern, ""
	if i := strings.LastIndexByte(p, ':'); i >= 0 && !strings.HasSuffix(p, "]") {
		p, port = p[:i], p[i+1:]
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("%q: %q is no port", pattern, port)
		}
	}
	p = strings.TrimPrefix(p, "*.")
	if _, _, err := split(p + ":443"); err != nil {
		return fmt.Errorf("%q is no host: HOST, *.HOST or HOST:PORT", pattern)
	}
	return nil
}

// CheckVendor is an error where the table has no vendor of that name.
func CheckVendor(name string) error {
	names := make([]string, len(vendors))
	for i, v := range vendors {
		names[i] = v.name
	}
	if slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("%q is no AI vendor of gettier's table (%s) and no host", name, strings.Join(names, ", "))
}

// Public reports whether an address is of the public internet: neither of this
// machine, nor of a private network, nor set aside for other uses (RFC 6890).
func Public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsValid() || a.IsUnspecified() || a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.Zone() != "" {
		return false
	}
	return !slices.ContainsFunc(setAside, func(p netip.Prefix) bool { return p.Contains(a) })
}

// setAside are the special-purpose blocks of IANA's registries that netip's
// methods do not cover. NAT64's prefix is among them: behind it lies any IPv4
// address, also a private one.
var setAside = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10")

func prefixes(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// classify says what kind of place a host is, and its name.
func classify(host string) (Class, string) {
	if a, err := netip.ParseAddr(host); err == nil {
		if !Public(a) {
			return Local, ""
		}
		return Other, ""
	}
	if !strings.Contains(host, ".") { // also localhost: a name of this machine or network
		return Local, ""
	}
	for _, suffix := range []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"} {
		if strings.HasSuffix(host, suffix) {
			return Local, ""
		}
	}
	if name := find(vendors, host); name != "" && !reading(host) {
		return Vendor, name
	}
	if name := find(marketplaces, host); name != "" {
		return Marketplace, name
	}
	return Other, ""
}

// reading reports a vendor's host that answers people and no prompts.
func reading(host string) bool {
	first, _, _ := strings.Cut(host, ".")
	return first == "docs" || first == "status"
}

// place is a vendor or marketplace and its hosts: a name is that host and all
// under it, "*" within a name is any run of letters, digits and hyphens.
type place struct {
	name  string
	hosts []string
}

func find(table []place, host string) string {
	for _, p := range table {
		for _, h := range p.hosts {
			if before, after, ok := strings.Cut(h, "*"); ok {
				if len(host) > len(before)+len(after) && strings.HasPrefix(host, before) && strings.HasSuffix(host, after) && !strings.Contains(host[len(before):len(host)-len(after)], ".") {
					return p.name
				}
			} else if host == h || strings.HasSuffix(host, "."+h) {
				return p.name
			}
		}
	}
	return ""
}
