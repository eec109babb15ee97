// Command gen writes ../gitleaks.go: the token rules of gitleaks' configuration (MIT) in
// the form that package redact uses. Run in ledger/redact/bench:
//
//	go run ./gen > ../gitleaks.go
//
// What is left out or changed stands below with its reason; everything else is
// taken as it is, so that a newer version of gitleaks is one line of go.mod.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/format"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/zricethezav/gitleaks/v8/config"
)

const gitleaks = "github.com/zricethezav/gitleaks/v8"

// left are the rules that are not taken, with the reason. Rules that look at
// paths of files only have no expression and are skipped anyhow.
var left = map[string]string{
	"azure-ad-client-secret": "ownTokens has it",
	"curl-auth-header":       "(*scan).authorization reads headers",
	"curl-auth-user":         "(*scan).userFlag reads flags",
	"freemius-secret-key":    "(*scan).keyValue reads its key",
	"generic-api-key":        "(*scan).keyValue judges key and value",
	"hashicorp-tf-password":  "(*scan).keyValue reads its key",
	"jwt":                    "ownTokens has it with a check of its dots",
	"jwt-base64":             "ownTokens has it",
	"kubernetes-secret-yaml": "(*scan).kubernetesSecret reads whole manifests",
	"nuget-config-password":  "(*scan).keyValue reads its key",
	"private-key":            "(*scan).pem reads blocks, open ones too",
	"sidekiq-sensitive-url":  "(*scan).url reads userinfo",
	"twilio-api-key":         "ownTokens has it with a check of its start",
	"vault-service-token":    "ownTokens has it in two rules",
}

// changed are expressions that let too much through: a bare hash of 40 digits
// is no token because the text names Sourcegraph.
var changed = map[string]string{
	"sourcegraph-access-token": `(?i)\b(\b(sgp_(?:[a-fA-F0-9]{16}|local)_[a-fA-F0-9]{40}|sgp_[a-fA-F0-9]{40}))(?:[\x60'"\s;]|\\[nr]|$)`,
}

// keywords are better starting points where the expression begins at another
// word than gitleaks' keywords say, or where one of them is not needed.
var keywords = map[string][]string{
	"gocardless-api-token":        {"gocardless"},
	"new-relic-browser-api-token": {"new-relic", "newrelic", "new_relic"},
	"new-relic-insert-key":        {"new-relic", "newrelic", "new_relic"},
	"new-relic-user-api-key":      {"new-relic", "newrelic", "new_relic"},
	"typeform-api-token":          {"typeform"},
	"lob-api-key":                 {"lob"},
	"lob-pub-api-key":             {"lob"},
	"sourcegraph-access-token":    {"sgp_"},
}

type rule struct {
	ID         string
	Regex      string
	Path       string
	Entropy    float64
	Keywords   []string
	Allowlists []struct {
		Regexes     []string
		RegexTarget string `toml:"regexTarget"`
		StopWords   []string
		Paths       []string
	}
}

// prefix is what gitleaks puts before a vendor's name. Our window begins at the
// name, so the expression is anchored there.
var prefix = regexp.MustCompile(`^(?:\[\\w\.-\]\{0,50\}\?)?(\(\?i\)|\(\?i:)\[\\w\.-\]\{0,50\}\?`)

func main() {
	if err := run(os.Stdout, version()); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, version string) error {
	var c struct{ Rules []rule }
	if err := toml.Unmarshal([]byte(config.DefaultConfig), &c); err != nil {
		return fmt.Errorf("read gitleaks' configuration: %w", err)
	}
	slices.SortStableFunc(c.Rules, func(a, b rule) int { return cmp.Compare(a.ID, b.ID) })
	var b bytes.Buffer
	fmt.Fprintf(&b, head, version, licence)
	for _, r := range c.Rules {
		if left[r.ID] != "" || r.Regex == "" {
			continue
		}
		expr, keyed := r.Regex, false
		if e, ok := changed[r.ID]; ok {
			expr = e
		}
		if m := prefix.FindStringSubmatch(expr); m != nil {
			rest := expr[len(m[0]):]
			if m[1] == "(?i)" {
				expr = "(?i)^" + rest
			} else {
				expr = "^(?i:" + rest
			}
			keyed = true
		}
		if k, ok := keywords[r.ID]; ok {
			r.Keywords = k
		}
		words := make([]string, len(r.Keywords))
		for i, k := range r.Keywords {
			words[i] = strconv.Quote(strings.ToLower(k))
		}
		fmt.Fprintf(&b, "{id: %q, keywords: []string{%s}, expr: `%s`", r.ID, strings.Join(words, ", "), expr)
		if keyed {
			b.WriteString(", keyed: true")
		}
		if r.Entropy > 0 {
			fmt.Fprintf(&b, ", entropy: %s", strconv.FormatFloat(r.Entropy, 'f', -1, 64))
		}
		if a := allowed(r); a != "" {
			fmt.Fprintf(&b, ", allow: `%s`", a)
		}
		b.WriteString("},\n")
	}
	b.WriteString("}...)\n")
	src, err := format.Source(b.Bytes())
	if err != nil {
		return fmt.Errorf("format: %w", err)
	}
	_, err = out.Write(src)
	return err
}

// allowed joins what the rule's own allowlists say of the secret.
func allowed(r rule) string {
	var all []string
	for _, a := range r.Allowlists {
		if a.RegexTarget == "" || a.RegexTarget == "secret" {
			all = append(all, a.Regexes...)
		}
	}
	return strings.Join(all, "|")
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == gitleaks {
				return d.Version
			}
		}
	}
	return "unknown"
}

const head = `// Code generated by ledger/redact/bench/gen from gitleaks %s. DO NOT EDIT.

package redact

// The token rules below were taken from the configuration of gitleaks
// (config/gitleaks.toml), without its generic, path and curl rules, for which
// this package has matchers of its own. Its licence:
//
%s

var tokenRules = append(ownTokens, []tokenRule{
`

const licence = `// MIT License
//
// Copyright (c) 2019 Zachary Rice
//
// Permission is hereby granted, free of charge, to any person obtaining a copy
// of this software and associated documentation files (the "Software"), to deal
// in the Software without restriction, including without limitation the rights
// to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all
// copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
// AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
// SOFTWARE.`
