package verdict

import (
	"slices"
	"sort"
	"strings"
	"sync"
)

// keywords is category → phrases, the whole of step three of matching. A phrase
// fits when each of its words stands in the claim as a whole word, in any
// order; a|b is either, !a|b neither. # is any number, #size a size, #time a
// time span. Two
// words or more each, save names that mean one thing only: a phrase that fits
// ordinary talk about a language makes holds nobody wants. The list is meant to
// be read in an audit: a wrong match can be pointed at.
var keywords = map[string][]string{
	// The way of a request.
	"request_path.size_limits":        sizeLimits,
	"proxy.size_limits":               sizeLimits,
	"proxy.limits":                    slices.Concat(sizeLimits, timeouts),
	"request_path.timeouts":           timeouts,
	"proxy.timeouts":                  timeouts,
	"request_path.rate_limits":        rateLimits,
	"proxy.rate_limits":               rateLimits,
	"request_path.headers":            headers,
	"proxy.headers":                   headers,
	"request_path.middleware_order":   {"middleware order", "middleware before|after", "middlewares before|after", "body parser runs|mounted|registered|applied before|after", "body-parser before|after", "route middleware chain", "parser before|after route|router|handler", "mounted before|after"},
	"request_path.stream_consumption": {"stream consumed|consumes|drained|read", "body consumed|drained|read already|twice|once", "raw body available|consumed|read|stream", "request stream", "buffered body|bodies before|memory"},
	"proxy.configuration": {
		"nginx config|configuration|conf|setting|directive", "proxy config|configuration|setting|directive|buffering", "haproxy config|configuration|backend|frontend", "client_max_body_size",
		"proxy_read_timeout", "proxy_pass", "proxy_buffering", "reverse proxy|proxied", "edge proxy|limit|accepts|rejects|forwards|passes", "nginx accepts|accept|allows|allow|forwards|forward|passes|rejects|limits|caps|terminates|buffers", "caddy|traefik|envoy config|configuration|route",
	},
	"proxy.routing": {"proxy routes|forwards|upstream", "nginx routes|forwards|upstream|location", "upstream server|servers|block", "proxy_pass", "load balancer", "route|path forwarded|proxied"},
	// Processes.
	"route.workers":     workers,
	"process.workers":   workers,
	"process.model":     workers,
	"process.count":     workers,
	"runtime.workers":   workers,
	"runtime.processes": workers,
	"process.freshness": {
		"running process|server|service current|latest|new|old|stale|edited|code|release|build", "process|server|service restarted|reloaded since|after|already", "running code|build|binary", "runs|running current|latest release|build|code|version", "hot reload|reloads",
		"change|changes live|deployed|running", "dev server reloaded|restarted|picks", "process started|start after|before|since", "stale build|process|image|container|server",
	},
	"process.cwd":     {"process|service|server runs|running|started from|in directory|release|current|cwd", "working directory process|service|server"},
	"service.status":  {"service|unit|daemon active|running|enabled|started|up", "systemd unit|service", "process|server is up|running|listening"},
	"runtime.version": runtimeVersion,
	"runtime.deployed": slices.Concat(runtimeVersion, []string{
		"deployed|production|running|server runtime", "runtime same|equals|matches ci|local|development|production",
	}),
	"node.version":   {"node|nodejs version !available|supported|since|introduced|every|all|any", "node|nodejs # runs|running|run|installed|uses|using|deployed|runtime|image|active", "nvmrc", "node-version"},
	"python.version": {"python|python3 version", "python|python3 # runs|running|run|installed|uses|using|deployed|runtime|interpreter|image|active"},
	"go.version":     {"go|golang version", "go|golang # installed|uses|using|toolchain|builds|compiler", "go toolchain"},
	"java.version":   {"java|jdk|jre|jvm version", "java|jdk|jre # runs|running|installed|uses|using|runtime|image"},
	"ruby.version":   {"ruby version", "ruby # runs|running|installed|uses|using|runtime|image"},
	"php.version":    {"php version", "php # runs|running|installed|uses|using|runtime|image"},
	"rust.version":   {"rust|rustc|cargo version", "rustc|rust toolchain", "rust # installed|uses|using|compiler"},
	// Packages.
	"package.manager":    packageManager,
	"node.pm":            packageManager,
	"package.version":    packageVersion,
	"dependency.version": packageVersion,
	"dependency.api":     dependencyAPI,
	"api.symbols":        dependencyAPI,
	"python.env":         {"virtualenv|venv active|activated|used|selected|in", "virtual environment", "pip|python project|virtualenv|venv interpreter|environment", "site-packages", "poetry|uv environment|venv|lock", "conda environment|env"},
	// Databases.
	"db.target":       {"database|db local|localhost|remote|production|staging|test|development|machine|host", "database|db url|host|connection|target|name", "database_url", "connects|connected|connection|points database|db|postgres|mysql|mongo|mongodb|redis", "connection string", "prisma|drizzle|alembic|migration|migrations target|targets|against|runs"},
	"db.version":      {"database|db|postgres|postgresql|mysql|mariadb|sqlite|redis|mongodb version", "database|db server|production|runs|running|is postgres|postgresql|mysql|mariadb|sqlite #", "runs|running|uses|using|server postgres|postgresql|mysql|mariadb|sqlite|redis|mongodb #", "server_version"},
	"db.role":         dbRole,
	"db.permissions":  dbRole,
	"db.rls":          rls,
	"db.row_security": rls,
	"db.session":      slices.Concat(dbSession, dbTimeZone),
	"db.search_path":  dbSession,
	"db.timezone":     dbTimeZone,
	"db.schema": {
		"table|column|enum|view|index|constraint exists|exist|present|defined|has|named|unique|nullable|required|type", "column type|null|default|nullable|unique|indexed", "schema has|contains|defines table|column", "table has|contains column|columns|rows|index", "unique index|constraint", "primary key", "information_schema", "not null column|constraint",
	},
	"db.migrations":   {"migration|migrations applied|pending|ran|run|up-to-date|latest|current", "schema migrated|current|up-to-date", "migration table|history|state"},
	"db.triggers":     {"trigger|triggers enabled|disabled|active|fires|fire|runs|exists|audits|audit|writes|records", "audit trigger|triggers", "tgenabled"},
	"db.constraints":  foreignKeys,
	"db.foreign_keys": foreignKeys,
	"db.pragmas":      slices.Concat(foreignKeys, []string{"sqlite pragma|pragmas|wal|journal", "journal mode", "busy timeout"}),
	"db.extensions":   {"extension|extensions installed|enabled|available|created postgres|postgresql|database|db", "pgcrypto|postgis|pgvector|pg_trgm|timescaledb|uuid-ossp"},
	"db.limits":       {"max_connections", "connection pool|limit|limits", "statement timeout", "statement_timeout"},
	"db.replication":  {"replica|replicas lag|behind|sync|read", "replication lag|slot|enabled|mode", "read replica"},
	// Caches and queues.
	"redis.memory":      redisMemory,
	"redis.eviction":    redisMemory,
	"cache.eviction":    redisMemory,
	"redis.persistence": persistence,
	"cache.persistence": persistence,
	"queue.persistence": persistence,
	"cache.ttl":         {"cache|cached ttl|expires|expire|expiry|#time", "keys|key ttl|expire|expires|live", "cache-control max-age|header|headers", "cdn cache|caches|cached"},
	"session.lifetime":  {"session|sessions #time", "session|sessions ttl|expire|expires|last|lifetime|live|survive", "cookie|cookies #time", "cookie max-age|expires|expiry"},
	// Deploying.
	"deploy.version":      rollout,
	"deploy.rollout":      rollout,
	"backend.versions":    rollout,
	"deploy.target":       {"deployed|deploys|deployment production|staging|cluster|host|target|region", "deploy target"},
	"container.image":     {"image tag|digest|built|version|contains|base", "container runs|running|uses image|tag", "docker image", "dockerfile base|installs"},
	"container.running":   {"container|containers running|up|healthy|stopped|started", "docker running|up"},
	"compose.project":     {"docker compose project|service|services|stack", "compose project|file|services|service|stack", "docker-compose project|file|service"},
	"infra.context":       infraContext,
	"kubernetes.context":  infraContext,
	"kubernetes.replicas": {"replica|replicas|pod|pods #", "number replicas|pods", "deployment replicas|scaled|scales"},
	"tls.certificate":     {"certificate|cert served|serves|serving|renewed|expires|expired|expiry|valid|installed|file|loaded|current|new", "tls certificate|cert|version", "https certificate|cert", "ssl certificate|cert"},
	"dns.records":         {"dns record|records|resolves|resolve|points", "hostname|domain resolves|resolve|points", "cname", "a record"},
	"network.egress":      {"outbound network|internet|traffic|access", "internet access|reachable|available", "proxy variable|variables|environment", "firewall allows|blocks|open"},
	"ports.owner":         ports,
	"network.ports":       ports,
	// The machine.
	"time.zone":      {"time zone|zones", "timezone", "timezones", "utc server|system|session|machine|process|cron|clock|local|runs|is", "tz variable|set|utc", "cron|scheduler utc|local|zone"},
	"time.today":     {"today date|is", "current date|day|year|month", "system|server clock|date"},
	"locale.charset": {"locale is|set|utf-8|c|posix", "charset|encoding|collation database|db|file|system|terminal|default|utf-8|utf8", "lc_all|lc_collate|lang set|is"},
	"os.tools":       {"gnu|bsd sed|date|stat|xargs|grep|find|tar|coreutils|userland|tools", "sed|date|stat|xargs|timeout|jq|curl|rg|tree|make installed|available|present|gnu|bsd"},
	"os.packages":    {"package|packages apt|dpkg|rpm|apk|brew|system installed", "apt|dpkg|brew|apk installed|package"},
	"os.platform":    {"operating system", "kernel version", "runs|running|host|machine|server linux|macos|darwin|windows|debian|ubuntu|alpine|wsl|arm64|amd64|x86_64", "cpu architecture"},
	"fs.permissions": {"writable|readable|permission|permissions directory|file|path|folder|disk", "write|read permission|permissions|access file|directory|path|folder", "owned|owner root|user|file|directory", "executable bit|permission"},
	"disk.space":     {"disk space|full|free|usage|left", "free space", "disk|volume|partition #size"},
	"host.memory":    {"memory|ram #size", "memory limit|available|total", "oom killer|limit"},
	"host.cpu":       {"cpu|cpus|core|cores #", "number cpus|cores"},
	"fs.limits":      {"file descriptors|descriptor limit", "open files limit", "ulimit"},
	"cron.schedule":  {"cron|crontab job|jobs|schedule|scheduled|runs|entry", "job scheduled|runs hourly|daily|nightly|weekly|minutes"},
	// Working copies.
	"git.branch":       {"branch is|named|checked|current|base|default|main|master|develop|ahead|behind|up-to-date", "on branch|main|master branch|checked", "head detached|at|points", "base branch", "default branch"},
	"git.dirty":        {"working tree|copy clean|dirty|changes", "tree clean|dirty", "uncommitted changes|work|files", "unstaged|staged|untracked changes|files", "everything|changes committed|stashed"},
	"git.where":        {"working directory|tree|dir root|repository|repo|worktree|project|is", "current directory", "repository|repo root", "worktree|worktrees"},
	"git.remote":       {"remote origin|url|fork|upstream|named", "origin points|is|url", "push|pushes origin|remote|fork|upstream", "branch pushed|tracks|tracking"},
	"git.history":      {"commit|commits exists|merged|reachable|tagged|contains", "tag|tags exists|points|released", "merged into|already main|master"},
	"file.kind":        {"file|files generated|vendored|ignored|source|handwritten", "generated code|from", "do not edit", "gitignored|vendored"},
	"file.exists":      fileExists,
	"claim.file":       fileExists,
	"backup.age":       {"backup|backups exists|exist|recent|taken|available|daily|nightly|current|restore|restorable", "snapshot|snapshots exists|recent|taken|available", "dump exists|recent|taken"},
	"test.command":     {"tests|test|suite command|script|run|runs|runner|watch", "npm test", "test suite", "pytest|jest|vitest|mocha runs|run|configured|collects"},
	"test.status":      {"tests|test|suite pass|passes|passing|green|fail|fails|failing", "ci green|passes|passing|red"},
	"env.names":        envNames,
	"env.variables":    envNames,
	"env.files":        {"env file|files", "dotenv file|files|loads|loaded|precedence", "env.local|env.production|env.test|env.development"},
	"config.effective": {"config|configuration|setting|flag|option value|effective|default|set|enabled|disabled|effect|loaded|overridden|override", "settings loaded|effective|overridden", "effective value|setting|limit", "default applies|applied|effect"},
	"storage.bucket":   {"bucket|buckets exists|public|private|versioned|versioning|region|named", "s3|gcs bucket|object|objects|versioning"},
	"mail.delivery":    {"smtp host|server|relay|configured", "mail|email|emails sent|delivered|relay|sandbox"},
	"log.level":        {"log|logging level", "logs written|go|file|stdout|rotated", "log rotation|file"},
}

var (
	sizeLimits = []string{
		"body|bodies|upload|uploads|payload|payloads|attachment|attachments|multipart #size", "request|requests|post|posts|put #size", "file|files|pdf|pdfs|image|images upload|uploads|uploaded|proxy|nginx|edge|gateway|ingress #size",
		"nginx|proxy|edge|gateway|ingress|haproxy|caddy|traefik accepts|accept|allows|allow|permits|passes|pass|forwards|limits|limit|caps|cap|rejects|maximum|max #size", "client_max_body_size", "body|bodies|upload|uploads|payload|request|file size|sizes limit|limits|limited|maximum|max|cap|capped",
		"body|upload|payload|request limit|limits|cap", "body|upload|payload|request size", "max|maximum body|upload|payload", "entity|payload|content too large", "413 status|error|response|returns|upload|uploads|request", "body parser limit|limits", "body-parser limit|limits", "bodyparser limit|limits", "parser limit|limits",
		"proxy-body-size", "large|big|bigger|larger upload|uploads|body|bodies|payload|payloads", "maxrequestbodysize", "limitrequestbody",
	}
	timeouts = []string{
		"timeout|timeouts proxy|nginx|haproxy|upstream|backend|gateway|request|requests|edge|server|client|read|idle|connect|default|load", "time|times out request|requests|proxy|backend|upstream|after|export|response", "request|requests|response|responses|export|proxy|backend|upstream #time",
		"timeout|timeouts #time", "proxy_read_timeout", "proxy_connect_timeout", "proxy_send_timeout", "504 gateway|timeout|error|status", "gateway timeout|timeouts", "keep-alive timeout", "keepalive timeout|keepalive_timeout",
	}
	rateLimits = []string{
		"rate limit|limits|limited|limiter|limiting", "limit_req", "429 status|error|returns|response", "requests per|a second|minute|hour", "throttle|throttled|throttles|throttling", "logins|attempts per|a minute|hour|second",
	}
	headers = []string{
		"header|headers unchanged|reach|reaches|passed|passes|pass|forwarded|forwards|stripped|dropped|drops|removed|set|sets|added|preserved|survive|survives|arrives|arrive|sent|kept", "x-forwarded-for|x-forwarded-proto|x-forwarded-host|x-real-ip", "underscores header|headers|names",
		"underscores_in_headers", "proxy_set_header", "host header", "client ip|address real|forwarded|remote|proxy",
	}
	workers = []string{
		"single|one|multiple|several|two|three|four process|processes|worker|workers|instance|instances|replica|replicas serves|serve|served|serving|handles|handle|handled|handling|runs|run|running|owns|own|holds|receives|answers",
		"only|exactly|just one|1|single process|worker|instance|replica|thread", "single process|worker|instance|replica app|application|server|service|route|login|api|node", "process|processes|worker|workers # serve|serves|served|serving|handle|handles|handled|run|runs|running|listen|listens|app|application|server|route|socket|cluster",
		"worker|workers count|number|processes|configured|share|shared|sharing|listen|socket", "number|count workers|processes|instances|replicas", "worker_processes", "cluster mode", "pm2 instances|cluster|workers", "gunicorn|uvicorn|puma|unicorn|passenger|php-fpm worker|workers|process|processes",
		"web_concurrency", "login|logins|route|requests served|handled|hits|hit|reach|reaches|go|goes same|one|single process|worker|instance", "memory map|state|store|counter|counters|cache shared|seen|visible|sees|process|processes|worker|workers|requests|sufficient|enough", "in-memory map|state|store|counter|limiter|cache|counts|sees|enough|sufficient",
		"single-process", "single-threaded app|server|process", "preforks|prefork|forks|forked worker|workers|server|processes",
	}
	runtimeVersion = []string{
		"runtime version|versions", "runtime same|equals|matches|identical", "deployed|production|running|installed runtime", "node|nodejs|python|python3|ruby|php|java|jdk|deno|bun version|versions !available|supported|since|introduced|every|all|any",
		"node|nodejs|python|python3|ruby|php|java|jdk|deno|bun # runs|running|run|installed|deployed|runtime|image|process|active|server|production|uses|using !available|supported|since|introduced|every|all|any", "interpreter version", "running process version", "nvmrc", "go|golang|rust toolchain|version",
	}
	packageManager = []string{
		"package manager", "npm|yarn|pnpm|bun lockfile|lock|package-lock|workspaces|workspace|install|installs|manages|uses|project|repository|repo", "project|repository|repo|app uses|managed npm|yarn|pnpm|bun|poetry|uv|pipenv|pip|cargo|composer|bundler", "package-lock.json|yarn.lock|pnpm-lock.yaml|bun.lockb",
	}
	packageVersion = []string{
		"installed|resolved|locked|pinned version|versions", "version|versions installed|package|dependency|library|module|resolved", "package|dependency|library|module # installed|pinned|locked|resolved|depends|uses|version", "dependency|dependencies installed|outdated|pinned|locked|up-to-date", "lockfile|lock pins|resolves|version|file version", "package.json|go.mod|requirements.txt|pyproject.toml|cargo.toml pins|requires|depends|lists|version",
	}
	dependencyAPI = []string{
		"installed version|package|library|module exports|export|has|provides|supports|includes", "package|library|module|dependency exports|export|provides|exposes helper|function|method|class|api|named|symbol", "helper|function|method package|library|module|dependency from|exported|exists|installed",
	}
	dbRole = []string{
		"superuser", "bypassrls", "is_superuser", "role|user|account privileges|privilege|permission|permissions|grants|granted|restricted|owner|owns database|db|postgres|app|application|table|schema|connected|connects|has|have", "database|db|connected|connects|connection|app|application role", "database|db user is|has|connects|named|account",
		"connects|connected as role|user|superuser|owner|postgres|root|admin", "current_user", "session_user",
	}
	rls = []string{
		"rls", "row level security|policy|policies", "row-level security|policy|policies", "policy|policies tenant|tenants|rows|isolate|isolates|enforced|table", "tenant isolation|isolated|isolates|isolate", "bypassrls", "superuser",
	}
	dbSession   = []string{"search_path", "search path", "default schema", "public schema|table", "unqualified table|name|names", "table resolves|resolve|refers|schema public"}
	dbTimeZone  = []string{"session|database|db|postgres|connection|role utc|timezone|zone", "current_date", "now utc|zone|timezone"}
	foreignKeys = []string{
		"foreign key|keys", "foreign_keys", "referential integrity", "cascade|cascades|cascading delete|deletes|deleting|deleted|constraint|constraints|rows|orders|key", "on delete cascade", "constraint|constraints enforced|enforces|active|checked|valid",
	}
	redisMemory = []string{
		"redis memory|maxmemory|evicts|evict|evicted|eviction|policy", "maxmemory", "maxmemory-policy", "eviction policy|disabled|off|never|noeviction", "noeviction", "allkeys-lru", "key|keys evicted|evict|eviction|live|survive|kept|stay", "cache evicts|evict|evicted|eviction",
	}
	persistence = []string{
		"redis persists|persist|persistent|persistence|persisted|durable|aof|rdb|snapshot|snapshots|saves|disk|restart", "appendonly", "append-only file|enabled", "aof enabled|disabled|on|off", "rdb snapshot|snapshots|enabled", "job|jobs|queue|queues survive|survives|persist|persisted|durable|restart", "queue persistent|durable|persistence",
	}
	rollout = []string{
		"deployed version|versions|release|build|everywhere|backends|servers|is", "version|release|build|field|endpoint|route|feature deployed|live|production|rolled|released|everywhere", "backend|backends|server|servers|instance|instances|node|nodes|replica|replicas|pods version|versions|# run|runs|running|serve|serves|release",
		"all|every backend|backends|server|servers|instance|instances|replica|replicas|pods|nodes run|runs|running|serve|serves|on|have|has|return|returns", "roll-out|rollout complete|finished|done|partial|completed", "rolled out", "production|live runs|running|serves version|release|build|#", "v2 deployed|available|live|served|field|endpoint|backends|everywhere",
	}
	infraContext = []string{
		"kubectl|kubernetes|k8s context|cluster|namespace", "current context|cluster|namespace|workspace|account", "terraform workspace|state|backend", "aws|gcp|azure|gcloud account|profile|project|region|subscription", "docker context", "helm release|context",
	}
	ports      = []string{"port|ports # free|used|taken|listens|listening|bound|open|owned|serves|occupied|available|in|mine|exposed", "port|ports free|taken|occupied|owner|listening|open|available|exposed", "listens|listening|listen on|port #", "process on|owns port", "server listens|listening|bound|binds"}
	fileExists = []string{"file|files|directory|folder|script|module|fixture exists|exist|present|created|missing|written|there", "file at|named|called path|exists", "path exists|exist"}
	envNames   = []string{"environment variable|variables", "env var|vars|variable|variables", "variable|variables set|unset|defined|exported|empty", "secret|token|key|credential set|configured|provided environment|env"}
)

// Hit is a category found in a text, and the phrase that found it.
type Hit struct {
	Category string
	Phrase   string
}

// phrase is one compiled entry.
type phrase struct {
	category string
	text     string
	words    [][]string
	barred   []bool // beside words: none of these may stand in the claim
}

// table is keywords made for look-up: a phrase stands under each alternative of
// its first word.
type table map[string][]*phrase

func (t table) add(category, text string) {
	p := &phrase{category: category, text: text}
	for w := range strings.FieldsSeq(text) {
		alternatives, barred := strings.CutPrefix(w, "!")
		p.words = append(p.words, strings.Split(alternatives, "|"))
		p.barred = append(p.barred, barred)
	}
	if len(p.words) == 0 {
		return
	}
	for _, first := range p.words[0] {
		t[first] = append(t[first], p)
	}
}

var builtin = sync.OnceValue(func() table {
	t := table{}
	for category, phrases := range keywords {
		for _, p := range phrases {
			t.add(category, p)
		}
	}
	return t
})

// Known reports whether any phrase, of the table or one's own, leads to the
// category; without one only a named sensor can reach it.
func Known(category string, own map[string][]string) bool {
	return len(keywords[category]) > 0 || len(own[category]) > 0
}

// KnownCategories lists the table's categories, sorted: what `verifies` may
// name without own phrases.
func KnownCategories() []string {
	out := make([]string, 0, len(keywords))
	for c := range keywords {
		out = append(out, c)
	}
	sort.Strings(out)
	return out
}

// Categories finds the categories whose phrases stand in text, sorted, each
// with its first phrase in the table's order. own adds phrases, of plain words.
func Categories(text string, own map[string][]string) []Hit {
	words := wordSet(text)
	best := map[string]*phrase{}
	visit := func(t table) {
		for w := range words {
			for _, p := range t[w] {
				if b := best[p.category]; b != nil && !before(p, b) || !p.fits(words) {
					continue
				}
				best[p.category] = p
			}
		}
	}
	visit(builtin())
	if len(own) > 0 {
		visit(ownTable(own))
	}
	hits := make([]Hit, 0, len(best))
	for c, p := range best {
		hits = append(hits, Hit{c, p.text})
	}
	sort.Slice(hits, func(i, j int) bool { return hits[i].Category < hits[j].Category })
	return hits
}

// before prefers the shorter explanation, so that the choice does not depend on
// the order of a map.
func before(a, b *phrase) bool {
	if len(a.text) != len(b.text) {
		return len(a.text) < len(b.text)
	}
	return a.text < b.text
}

func ownTable(own map[string][]string) table {
	t := table{}
	for category, phrases := range own {
		for _, p := range phrases {
			t.add(category, strings.Join(plainWords(p), " "))
		}
	}
	return t
}

func (p *phrase) fits(words map[string]bool) bool {
	for i, alternatives := range p.words {
		if p.barred[i] {
			for _, a := range alternatives {
				if words[a] {
					return false
				}
			}
			continue
		}
		ok := false
		for _, a := range alternatives {
			ok = ok || words[a]
		}
		if !ok {
			return false
		}
	}
	return true
}
