// Package packs holds the embedded sensor packs: registry files that were tested
// here and are hash-pinned by being part of the binary. A person approves a pack
// as one decision. Nothing is parsed, approved or run here.
package packs

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed everyday/*.yaml nginx/*.yaml haproxy/*.yaml postgres/*.yaml mysql/*.yaml redis/*.yaml sqlite/*.yaml node/*.yaml python/*.yaml go/*.yaml git/*.yaml tls/*.yaml docker/*.yaml kubernetes/*.yaml systemd/*.yaml cloud/*.yaml machine/*.yaml
var files embed.FS

// FilePrefix begins the name of a pack's file where registry files are named.
const FilePrefix = "pack:"

// Pack is one set of sensors, judge rules and premises.
type Pack struct {
	Name  string
	About string
	// Programs are those that a machine must have, any of them, for the pack to be
	// offered; none means that it fits everywhere.
	Programs []string
	Files    []File
	Hash     string // SHA-256 hex over names and contents
}

// File is one registry file of a pack; Name is pack:NAME/FILE.
type File struct {
	Name string
	Data []byte
}

// table is the order in which packs are offered, and in which their sensors
// match.
var table = []Pack{
	{Name: "everyday", About: "what daily work takes for granted: work tree, branch, ports, package manager, database, environment, cluster; built-in, no program runs"},
	{Name: "git", About: "history: commits, tags, what is merged", Programs: []string{"git"}},
	{Name: "node", About: "versions of node, npm and installed packages", Programs: []string{"node"}},
	{Name: "python", About: "versions of python and installed packages", Programs: []string{"python3"}},
	{Name: "go", About: "version of go", Programs: []string{"go"}},
	{Name: "nginx", About: "nginx's effective configuration: limits, timeouts, upstreams", Programs: []string{"nginx"}},
	{Name: "haproxy", About: "haproxy's version and the validity of its configuration", Programs: []string{"haproxy"}},
	{Name: "postgres", About: "a local PostgreSQL: version, role, limits, row security", Programs: []string{"psql"}},
	{Name: "mysql", About: "MySQL and MariaDB: the client, and a local server as far as it answers without a password", Programs: []string{"mysql", "mariadb"}},
	{Name: "redis", About: "a local redis: version, memory, eviction, persistence", Programs: []string{"redis-cli"}},
	{Name: "sqlite", About: "sqlite's version and a database file's pragmas", Programs: []string{"sqlite3"}},
	{Name: "tls", About: "certificates in files: names, dates", Programs: []string{"openssl"}},
	{Name: "docker", About: "containers and images of the docker daemon", Programs: []string{"docker"}},
	{Name: "kubernetes", About: "the cluster of the current context", Programs: []string{"kubectl"}},
	{Name: "systemd", About: "units and timers", Programs: []string{"systemctl"}},
	{Name: "cloud", About: "which account aws, gcloud and az would use", Programs: []string{"aws", "gcloud", "az"}},
	{Name: "machine", About: "memory, processors, disk, Debian packages, character encoding", Programs: []string{"nproc"}},
}

// All lists the packs in the order in which they are offered.
func All() ([]Pack, error) {
	out := make([]Pack, len(table))
	for i, p := range table {
		entries, err := fs.ReadDir(files, p.Name)
		if err != nil {
			return nil, fmt.Errorf("read pack %s: %w", p.Name, err)
		}
		sum := sha256.New()
		for _, e := range entries {
			data, err := files.ReadFile(path.Join(p.Name, e.Name()))
			if err != nil {
				return nil, fmt.Errorf("read pack %s: %w", p.Name, err)
			}
			fmt.Fprintf(sum, "%s %d\x00", e.Name(), len(data))
			sum.Write(data)
			p.Files = append(p.Files, File{Name: FilePrefix + p.Name + "/" + e.Name(), Data: data})
		}
		p.Hash = hex.EncodeToString(sum.Sum(nil))
		out[i] = p
	}
	return out, nil
}

// Of is the name of the pack that a registry file belongs to, "" for none.
func Of(file string) string {
	rest, ok := strings.CutPrefix(file, FilePrefix)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// Fits reports whether a machine has what the pack measures; has looks a program
// up.
func (p Pack) Fits(has func(program string) bool) bool {
	for _, prog := range p.Programs {
		if has(prog) {
			return true
		}
	}
	return len(p.Programs) == 0
}
