package probe

import (
	"net/netip"
	"os"
	"path"
	"strings"
)

// target is what a connection points at. Its password is never kept.
type target struct {
	engine, host, port, database string
	hosts                        []string // of a URL that names several
	file                         bool     // a file of this machine
	source, variable             string
	unknown                      string // why it cannot be told
}

func unknownTarget(why string) target { return target{unknown: why} }

var engines = map[string]string{
	"postgres": "postgresql", "postgresql": "postgresql", "pgsql": "postgresql", "mysql": "mysql", "mysql2": "mysql", "mariadb": "mariadb",
	"mongodb": "mongodb", "redis": "redis", "rediss": "redis", "sqlserver": "sqlserver", "mssql": "sqlserver", "sqlsrv": "sqlserver",
	"cockroachdb": "cockroachdb", "libsql": "libsql", "amqp": "amqp", "amqps": "amqp", "prisma": "prisma", "postgis": "postgresql",
	"sqlite": "sqlite", "sqlite3": "sqlite", "file": "sqlite",
}

// parseURL takes host, port and database out of a connection URL. It is written
// by hand because passwords in such URLs are seldom escaped as they should be.
func parseURL(s string) target {
	s = strings.TrimSpace(s)
	if s == "" {
		return unknownTarget("it is empty")
	}
	s = strings.TrimPrefix(s, "jdbc:")
	if rest, ok := strings.CutPrefix(s, "file:"); ok {
		return target{engine: "sqlite", file: true, database: path.Base(strings.SplitN(rest, "?", 2)[0])}
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		if strings.Contains(s, "host=") || strings.Contains(s, "dbname=") {
			return parseDSN(s)
		}
		if scheme, _, ok := strings.Cut(s, ":"); ok && engines[scheme] == "sqlite" {
			return target{engine: "sqlite", file: true}
		}
		return unknownTarget("it is no URL")
	}
	scheme, driver, _ := strings.Cut(strings.ToLower(scheme), "+") // postgresql+asyncpg, mongodb+srv, prisma+postgres
	t := target{engine: engines[scheme]}
	if t.engine == "" {
		return unknownTarget("its scheme is not known")
	}
	if t.engine == "sqlite" {
		t.file, t.database = true, path.Base(strings.SplitN(rest, "?", 2)[0])
		return t
	}
	query := ""
	if i := strings.LastIndexByte(rest, '@'); i >= 0 { // what stands before is user name and password
		rest = rest[i+1:]
	}
	rest, query, _ = strings.Cut(rest, "?")
	authority, database, _ := strings.Cut(rest, "/")
	t.database = strings.SplitN(database, "/", 2)[0]
	for pair := range strings.SplitSeq(query, "&") {
		if k, v, _ := strings.Cut(pair, "="); k == "host" && authority == "" {
			v = strings.ReplaceAll(strings.ReplaceAll(v, "%2F", "/"), "%2f", "/")
			authority = v
		}
	}
	if strings.HasPrefix(strings.ToLower(authority), "%2f") {
		authority = "/socket"
	}
	if strings.HasPrefix(authority, "/") {
		t.host = authority
		return t
	}
	for h := range strings.SplitSeq(authority, ",") {
		name, port := splitPort(h)
		t.hosts = append(t.hosts, name)
		t.host, t.port = name, port
	}
	t.host = t.hosts[0]
	if driver == "srv" {
		t.port = ""
	}
	return t.checked()
}

// parseDSN reads libpq's key=value form.
func parseDSN(s string) target {
	t := target{engine: "postgresql"}
	for f := range strings.FieldsSeq(s) {
		k, v, _ := strings.Cut(f, "=")
		v = strings.Trim(v, `'"`)
		switch k {
		case "host", "hostaddr":
			t.host = v
		case "port":
			t.port = v
		case "dbname":
			t.database = v
		case "service":
			return unknownTarget("a service file decides")
		}
	}
	return t.checked()
}

// checked refuses what is still a template.
func (t target) checked() target {
	if strings.ContainsAny(t.host+t.port+t.database, "${}<>%`*") || strings.ContainsAny(t.host, " \t@") {
		return unknownTarget("its value is put together elsewhere")
	}
	return t
}

func splitPort(s string) (host, port string) {
	if strings.HasPrefix(s, "[") {
		host, rest, _ := strings.Cut(s[1:], "]")
		return host, strings.TrimPrefix(rest, ":")
	}
	if strings.Count(s, ":") > 1 {
		return s, "" // an IPv6 address without brackets
	}
	host, port, _ = strings.Cut(s, ":")
	return host, port
}

// defaultPorts are those of the engines that a tunnel is looked for at.
var defaultPorts = map[string]string{"postgresql": "5432", "mysql": "3306", "mariadb": "3306", "mongodb": "27017", "redis": "6379", "sqlserver": "1433"}

// tunnels are programs that listen here for something elsewhere.
var tunnels = []string{
	"ssh", "kubectl", "cloud_sql_proxy", "cloud-sql-proxy", "session-manager-plugin", "session-manager", "socat", "stunnel", "stunnel4", "chisel", "gost",
	"autossh", "telepresence", "flyctl", "boundary", "teleport", "tsh", "alloydb-auth-pr", "cloudflared",
}

// class says where a target is: local, tunnel, private (a private network's
// address), remote, or "" when that cannot be told.
func (p *probe) class(t target) string {
	if t.file {
		return "local"
	}
	if len(t.hosts) > 1 {
		first := ""
		for _, h := range t.hosts {
			one := t
			one.hosts, one.host = nil, h
			c := p.class(one)
			if first != "" && c != first {
				return ""
			}
			first = c
		}
		return first
	}
	host := strings.ToLower(strings.TrimSuffix(t.host, "."))
	if host == "" || strings.HasPrefix(host, "/") {
		return "local" // a socket of this machine
	}
	loopback := host == "localhost" || strings.HasSuffix(host, ".localhost") || host == "host.docker.internal"
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		a = a.Unmap()
		switch {
		case a.IsLoopback() || a.IsUnspecified():
			loopback = true
		case a.IsPrivate() || a.IsLinkLocalUnicast():
			return "private"
		default:
			return "remote"
		}
	}
	if loopback {
		port := or(t.port, defaultPorts[t.engine])
		if port != "" && p.tunnelAt(port) {
			return "tunnel"
		}
		return "local"
	}
	if name, err := os.Hostname(); err == nil && strings.EqualFold(name, host) {
		return "local"
	}
	if p.composeService(host) {
		return "local"
	}
	if !strings.Contains(host, ".") {
		return "" // a name that only some network's resolver knows
	}
	return "remote"
}

// composeService reports whether a host is a service of the compose file here,
// whose containers run on this machine.
func (p *probe) composeService(host string) bool {
	if _, set, known := p.env("DOCKER_HOST"); set || !known || strings.Contains(host, ".") {
		return false
	}
	c, err := p.compose()
	return err == nil && c != nil && contains(c.services, host)
}

func (p *probe) putTarget(t target) {
	if t.unknown != "" {
		p.put("unknown", t.unknown)
		p.put("source", t.source)
		p.put("variable", t.variable)
		return
	}
	c := p.class(t)
	p.put("host_class", c)
	switch {
	case t.file:
		p.put("host", "file")
	case t.host == "" || strings.HasPrefix(t.host, "/"):
		p.put("host", "socket")
	default:
		p.put("host", strings.ToLower(t.host))
	}
	p.put("port", or(t.port, defaultPorts[t.engine]))
	p.put("database", t.database)
	p.put("engine", t.engine)
	p.put("source", t.source)
	p.put("variable", t.variable)
}
