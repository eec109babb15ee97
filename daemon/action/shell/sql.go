package shell

import "strings"

// database is a client program that is given statements.
func database(w *walker, c call) ruling {
	name := base(c.args[0].s)
	switch name {
	case "redis-cli", "valkey-cli":
		return redis(c)
	case "mongosh", "mongo":
		for i, a := range c.args {
			if (a.s == "--eval" || a.s == "-e") && i+1 < len(c.args) {
				return mongo(c.args[i+1].s)
			}
			if s, ok := strings.CutPrefix(a.s, "--eval="); ok {
				return mongo(s)
			}
		}
		if c.in.kind == known {
			return mongo(c.in.text)
		}
		return mutate("db.session", "a database session")
	}
	var stmts []string
	dyn := false
	add := func(v word) { stmts = append(stmts, v.s); dyn = dyn || v.dyn }
	var pos []word
	file := false
	for i := 1; i < len(c.args); i++ {
		a := c.args[i].s
		switch {
		case (a == "-c" || a == "-e" || a == "--command" || a == "--execute" || a == "-Q" || a == "-cmd" && name != "bq" || a == "-q" && (name == "sqlcmd" || name == "clickhouse-client" || name == "clickhouse" || name == "snowsql" || name == "impala-shell" || name == "mssql-cli") || a == "--query" || a == "--statement" || a == "--sql" || a == "--run") && i+1 < len(c.args):
			add(c.args[i+1])
			i++
		case strings.HasPrefix(a, "--command="), strings.HasPrefix(a, "--execute="), strings.HasPrefix(a, "--query="):
			stmts = append(stmts, a[strings.IndexByte(a, '=')+1:])
		case (name == "mysql" || name == "mariadb") && strings.HasPrefix(a, "-e") && len(a) > 2:
			stmts = append(stmts, a[2:])
		case name == "psql" && len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.HasSuffix(a, "c") && i+1 < len(c.args):
			add(c.args[i+1])
			i++
		case a == "-f" || a == "--file" || a == "-i" || strings.HasPrefix(a, "--file="):
			file = true
			i++
		case a == "-l" || a == "--list" || a == "--version" || a == "-V":
			return readOnly("lists databases")
		case len(a) > 1 && a[0] == '-':
			if a == "-p" && (name == "mysql" || name == "mariadb" || name == "mysqlsh") { // a password never stands in the next word
				continue
			}
			if takesValue("-h -p -U -d -u -D -P -S -o -F -R -v -H --host --port --user --username --dbname --database --set -separator", a) {
				i++
			}
		default:
			pos = append(pos, c.args[i])
		}
	}
	switch name {
	case "cypher-shell", "surreal", "usql", "litecli", "rqlite", "osqueryi", "db2", "vsql":
		for _, p := range pos {
			if strings.ContainsRune(p.s, ' ') {
				add(p)
			}
		}
	case "sqlite3", "duckdb":
		for _, p := range pos[min(1, len(pos)):] {
			add(p)
		}
	case "bq", "cockroach":
		if len(stmts) == 0 {
			for _, p := range pos {
				if strings.ContainsRune(p.s, ' ') {
					add(p)
				}
				if destructiveVerb(p.s) && strings.IndexByte(p.s, ' ') < 0 {
					return destroy("verb.destroy", name+" "+p.s)
				}
			}
		}
	}
	if len(stmts) == 0 {
		if c.in.kind == known {
			stmts = append(stmts, c.in.text)
		} else if c.in.text != "" {
			stmts, dyn = append(stmts, c.in.text), true
		}
	}
	if len(stmts) == 0 {
		if file || c.in.kind == unknown {
			return mutate("db.file", "runs statements from a file")
		}
		return mutate("db.session", "a database session")
	}
	r := ruling{}
	for _, s := range stmts {
		e, rule, why := SQL(s)
		if r.effect == "" || e.Rank() > r.effect.Rank() {
			r = ruling{effect: e, rule: rule, why: why}
		}
	}
	if dyn && !r.effect.AtLeast(Destroy) {
		r = ruling{effect: Opaque, rule: "sql.dynamic", why: "statements that are known only when they run"}
	}
	if r.effect == ReadOnly {
		for i, a := range c.args {
			if (a.s == "-o" || a.s == "--output" || a.s == "-L" || a.s == "--log-file" || a.s == "--tee") && i+1 < len(c.args) && name != "mysql" && name != "mariadb" || a.s == "--tee" {
				return mutate("write.option", name+" "+a.s+" writes a file", c.args[min(i+1, len(c.args)-1)])
			}
			if strings.HasPrefix(a.s, "--output=") || strings.HasPrefix(a.s, "--log-file=") || strings.HasPrefix(a.s, "--tee=") {
				return mutate("write.option", name+" writes a file", word{s: a.s[strings.IndexByte(a.s, '=')+1:]})
			}
			if name == "psql" && len(a.s) > 2 && strings.HasPrefix(a.s, "-o") {
				return mutate("write.option", "psql -o writes a file", word{s: a.s[2:]})
			}
		}
	}
	return r
}

func mongo(code string) ruling {
	for _, s := range [...]string{"dropDatabase", ".drop(", "deleteMany", "deleteOne", "remove(", "dropIndex", "dropUser", "shutdownServer", "findOneAndDelete"} {
		if strings.Contains(code, s) {
			return destroy("mongo.drop", "mongo "+s)
		}
	}
	for _, s := range [...]string{"insert", "update", "replace", "create", "rename", "save(", "bulkWrite", "findAndModify", "load(", "grant", "fs.", "require", "$out", "$merge", "runCommand", "adminCommand"} {
		if strings.Contains(code, s) {
			return mutate("mongo.write", "mongo "+s)
		}
	}
	return readOnly("mongo reads")
}

func redis(c call) ruling {
	pos := positional(c.args, "-h -p -a -n -u -s --user --pass -r -i")
	if len(pos) == 0 {
		if c.in.kind == known && strings.Contains(strings.ToLower(c.in.text), "flush") {
			return destroy("redis.flush", "empties a redis database")
		}
		return mutate("db.session", "a redis session")
	}
	if cmd := strings.ToLower(pos[0].s); (cmd == "eval" || cmd == "eval_ro") && len(pos) > 1 {
		for _, gone := range [...]string{"flush", "'del'", "\"del\"", "unlink"} {
			if strings.Contains(strings.ToLower(pos[1].s), gone) {
				return destroy("redis.flush", "runs a script that removes keys")
			}
		}
	}
	switch cmd := strings.ToLower(pos[0].s); cmd {
	case "flushall", "flushdb", "shutdown", "debug", "del", "unlink", "xtrim", "ltrim":
		return destroy("redis.flush", "redis "+cmd)
	case "get", "mget", "keys", "scan", "ttl", "pttl", "type", "exists", "info", "ping", "dbsize", "hget", "hgetall", "hkeys", "hvals", "hlen", "lrange", "llen", "smembers", "scard", "sismember", "zrange", "zcard", "zscore", "strlen", "time", "lastsave", "memory", "xlen", "xrange", "xinfo", "object", "randomkey", "slowlog", "getrange":
		return readOnly("redis " + cmd)
	case "config":
		if len(pos) > 1 && strings.EqualFold(pos[1].s, "get") {
			return readOnly("redis config get")
		}
	case "client", "cluster", "acl", "command", "latency":
		if len(pos) > 1 {
			switch strings.ToLower(pos[1].s) {
			case "list", "info", "nodes", "slots", "id", "whoami", "docs", "count", "getname", "doctor", "shards":
				return readOnly("redis " + cmd)
			}
		}
	}
	return mutate("redis.write", "redis "+pos[0].s)
}

// SQL rules on a text of statements: the strongest of them. Whether a backslash
// escapes a quote differs from server to server, so both are read.
func SQL(text string) (Effect, string, string) {
	if len(text) > maxText {
		return Opaque, "size", "statements longer than 64 KiB"
	}
	e, rule, why := readSQL(text, true)
	if strings.Contains(text, `\'`) {
		if e2, rule2, why2 := readSQL(text, false); e2.Rank() > e.Rank() {
			return e2, rule2, why2
		}
	}
	return e, rule, why
}

func readSQL(text string, escapes bool) (Effect, string, string) {
	e, rule, why := ReadOnly, "sql.read", "reads"
	for _, st := range statements(text, escapes) {
		if runsText(st) { // what it runs stands in a literal
			inner := strings.NewReplacer("''", " ", "'", ";").Replace(text)
			for _, in := range statements(inner, escapes) {
				if ie, ir, iw := statement(in); ie.AtLeast(Destroy) && ie.Rank() > e.Rank() {
					e, rule, why = ie, ir, iw
				}
			}
		}
		if se, sr, sw := statement(st); se.Rank() > e.Rank() {
			e, rule, why = se, sr, sw
		}
	}
	return e, rule, why
}

// runsText reports a statement that runs a text as SQL.
func runsText(st []string) bool {
	for i, w := range st {
		switch w {
		case "EXECUTE", "EXEC", "SP_EXECUTESQL", "DBLINK_EXEC", "DBLINK", "PREPARE":
			if i+1 < len(st) {
				return true
			}
		}
	}
	return false
}

// statements splits SQL into words per statement; literals, comments and quoted
// names do not count as words.
func statements(s string, escapes bool) [][]string {
	var all [][]string
	var cur []string
	end := func() {
		if len(cur) > 0 {
			all = append(all, cur)
			cur = nil
		}
	}
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == ';':
			end()
			i++
		case strings.HasPrefix(s[i:], "--") || c == '#' && (i == 0 || s[i-1] == '\n'):
			for i < len(s) && s[i] != '\n' {
				i++
			}
		case strings.HasPrefix(s[i:], "/*"):
			// MySQL runs what stands in /*! … */.
			if strings.HasPrefix(s[i:], "/*!") {
				i += 3
				for i < len(s) && s[i] >= '0' && s[i] <= '9' {
					i++
				}
				continue
			}
			j := strings.Index(s[i+2:], "*/")
			if j < 0 {
				i = len(s)
			} else {
				i += j + 4
			}
		case strings.HasPrefix(s[i:], "*/"):
			i += 2
		case c == '\'':
			i = skipQuoted(s, i, c, escapes)
			cur = append(cur, "'")
		case c == '"' || c == '`':
			i = skipQuoted(s, i, c, escapes)
			cur = append(cur, `"`)
		case c == '$':
			if tag := dollarTag(s[i:]); tag != "" {
				j := strings.Index(s[i+len(tag):], tag)
				if j < 0 {
					i = len(s)
				} else {
					// A body that runs as code: its statements count.
					body := s[i+len(tag) : i+len(tag)+j]
					all = append(all, statements(body, escapes)...)
					i += j + 2*len(tag)
				}
				cur = append(cur, "'")
			} else {
				i++
			}
		case c == '\\': // psql's own commands, to the end of the line
			line, _, _ := strings.Cut(s[i:], "\n")
			end()
			switch {
			case strings.ContainsAny(line, "`|") || strings.Contains(strings.ToLower(line), "program"):
				cur = append(cur, `\!`)
			case strings.TrimRight(strings.ToLower(line), " ;\t\r") != `\g`: // which ends a statement
				cur = append(cur, strings.ToUpper(line[:min(len(line), 4)]))
			}
			end()
			i += len(line)
		case c == '.' && len(cur) == 0 && i+1 < len(s) && isWordByte(s[i+1]) && (i == 0 || s[i-1] == '\n' || s[i-1] == ';'): // and sqlite's
			j := strings.IndexByte(s[i:], '\n')
			if j < 0 {
				j = len(s) - i
			}
			word, _, _ := strings.Cut(strings.TrimSpace(s[i:i+j]), " ")
			cur = append(cur, strings.ToUpper(word))
			end()
			i += j
		case isWordByte(c) || c >= 0x80:
			j := i
			for j < len(s) && (isWordByte(s[j]) || s[j] >= 0x80 || s[j] == '.') {
				j++
			}
			cur = append(cur, strings.ToUpper(s[i:j]))
			i = j
		case c == '(' || c == ')' || c == '=' || c == '*':
			cur = append(cur, string(c))
			i++
		default:
			i++
		}
	}
	end()
	return all
}

func skipQuoted(s string, i int, q byte, escapes bool) int {
	for i++; i < len(s); i++ {
		if s[i] == '\\' && q == '\'' && escapes {
			i++
			continue
		}
		if s[i] == q {
			if i+1 < len(s) && s[i+1] == q {
				i++
				continue
			}
			return i + 1
		}
	}
	return len(s)
}

func dollarTag(s string) string {
	for i := 1; i < len(s) && i < 64; i++ {
		if s[i] == '$' {
			return s[:i+1]
		}
		if !isWordByte(s[i]) {
			return ""
		}
	}
	return ""
}

func statement(st []string) (Effect, string, string) {
	has := func(w string) int {
		for i, x := range st {
			if x == w {
				return i
			}
		}
		return -1
	}
	switch st[0] {
	case "MATCH", "OPTIONAL", "UNWIND", "CALL", "LOAD": // Cypher
		if i := has("DELETE"); i > 0 {
			if has("DETACH") > 0 || has("WHERE") < 0 || has("WHERE") > i {
				return Destroy, "cypher.delete", "DELETE of nodes and what hangs on them"
			}
			return Mutate, "sql.delete", "DELETE … WHERE"
		}
		if st[0] == "MATCH" || st[0] == "OPTIONAL" {
			if has("SET") > 0 || has("CREATE") > 0 || has("MERGE") > 0 || has("REMOVE") > 0 {
				return Mutate, "sql.write", "writes a graph"
			}
			return ReadOnly, "sql.read", "reads a graph"
		}
	case "REVOKE":
		if at(st, 1) == "ALL" {
			return Destroy, "sql.revoke", "REVOKE ALL"
		}
	case "PURGE":
		return Destroy, "sql.purge", "PURGE " + at(st, 1)
	case "RESET":
		switch at(st, 1) {
		case "MASTER", "SLAVE", "REPLICA", "BINARY":
			return Destroy, "sql.reset", "RESET " + at(st, 1)
		}
	case "RENAME":
		if at(st, 1) == "DATABASE" || at(st, 1) == "TABLE" || at(st, 1) == "TABLES" {
			return Destroy, "sql.rename", "RENAME " + at(st, 1)
		}
	case "CREATE":
		if at(st, 1) == "OR" && at(st, 2) == "REPLACE" && (at(st, 3) == "TABLE" || at(st, 3) == "DATABASE" || at(st, 3) == "SCHEMA") {
			return Destroy, "sql.replace", "CREATE OR REPLACE " + at(st, 3)
		}
	case "INSERT":
		if at(st, 1) == "OVERWRITE" {
			return Destroy, "sql.overwrite", "INSERT OVERWRITE"
		}
	case "MERGE":
		if has("DELETE") > 0 {
			return Destroy, "sql.delete", "MERGE … DELETE"
		}
	case "COPY":
		if has("PROGRAM") > 0 {
			return Opaque, "sql.shell", "runs a shell command"
		}
	case "SYSTEM":
		if at(st, 1) == "DROP" || at(st, 1) == "SHUTDOWN" || at(st, 1) == "KILL" {
			return Destroy, "sql.system", "SYSTEM " + at(st, 1)
		}
	case "VACUUM":
		if has("RETAIN") > 0 {
			return Destroy, "sql.vacuum", "VACUUM … RETAIN"
		}
	case "EXEC", "EXECUTE":
		if at(st, 1) == "XP_CMDSHELL" || at(st, 1) == "MASTER..XP_CMDSHELL" || strings.HasSuffix(at(st, 1), "XP_CMDSHELL") {
			return Opaque, "sql.shell", "runs a shell command"
		}
	}
	if st[0] == "EXPLAIN" && has("ANALYZE") < 0 {
		return ReadOnly, "sql.read", "explains"
	}
	// WITH x AS (DELETE …): the strongest verb anywhere rules.
	for i, w := range st {
		switch w {
		case "DROP":
			if i == 0 || st[0] == "ALTER" || st[0] == "EXPLAIN" || st[0] == "BEGIN" {
				return Destroy, "sql.drop", "DROP " + at(st, i+1)
			}
		case "GRANT":
			if i == 0 && at(st, 1) == "ALL" && everyDatabase(st) {
				return Destroy, "sql.grant", "GRANT ALL on every database"
			}
		case "TRUNCATE":
			if i == 0 || st[0] == "BEGIN" || st[0] == "EXPLAIN" {
				return Destroy, "sql.truncate", "TRUNCATE"
			}
		case "DELETE":
			if i == 0 || st[0] == "WITH" || st[0] == "BEGIN" || at(st, i+1) == "FROM" {
				return whereless(st, i, "DELETE", "sql.delete")
			}
		case "UPDATE":
			if i == 0 || st[0] == "WITH" || st[0] == "BEGIN" || st[0] == "EXPLAIN" {
				return whereless(st, i, "UPDATE", "sql.update")
			}
		}
	}
	switch st[0] {
	case "SELECT", "WITH", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "USE", "HELP", "(":
		if has("INTO") > 0 && st[0] != "SHOW" {
			return Mutate, "sql.write", "SELECT INTO"
		}
		for i, w := range st {
			if w == "(" && i > 0 && !safeFunction[st[i-1]] && isWordByte(st[i-1][0]) && !sqlWord[st[i-1]] {
				return Mutate, "sql.function", "calls " + st[i-1]
			}
		}
		if has("INSERT") > 0 || has("MERGE") > 0 {
			return Mutate, "sql.write", "writes"
		}
		return ReadOnly, "sql.read", "reads"
	case "EXPLAIN":
		if has("SELECT") < 0 || has("INTO") > 0 {
			return Mutate, "sql.explain", "EXPLAIN ANALYZE runs the statement"
		}
		e, rule, why := statement(st[has("SELECT"):])
		return e, rule, why
	case "PRAGMA":
		if has("=") > 0 {
			return Mutate, "sql.pragma", "sets a pragma"
		}
		return ReadOnly, "sql.read", "reads a pragma"
	case "FLASHBACK", "RESTORE", "SHUTDOWN":
		return Destroy, "sql.restore", st[0]
	}
	if st[0][0] == '.' {
		switch st[0] {
		case ".SHELL", ".SYSTEM":
			return Opaque, "sql.shell", "runs a shell command"
		case ".TABLES", ".SCHEMA", ".DATABASES", ".INDEXES", ".INDICES", ".HEADERS", ".HEADER", ".MODE", ".HELP", ".SHOW", ".STATS", ".TIMER", ".WIDTH", ".DBINFO", ".FULLSCHEMA", ".DUMP", ".QUIT", ".EXIT", ".NULLVALUE", ".SEPARATOR", ".EQP", ".ECHO", ".PROMPT", ".VERSION", ".COLUMNS", ".MAXROWS":
			return ReadOnly, "sql.read", "describes"
		case ".RESTORE":
			return Destroy, "sql.restore", "RESTORE"
		}
		return Mutate, "sql.meta", "a command of the client"
	}
	if st[0][0] == '\\' {
		switch {
		case strings.HasPrefix(st[0], `\D`), strings.HasPrefix(st[0], `\L`), strings.HasPrefix(st[0], `\CON`), strings.HasPrefix(st[0], `\X`), strings.HasPrefix(st[0], `\TIM`), strings.HasPrefix(st[0], `\PSE`), strings.HasPrefix(st[0], `\Q`), strings.HasPrefix(st[0], `\Z`):
			return ReadOnly, "sql.read", "describes"
		case strings.HasPrefix(st[0], `\!`):
			return Opaque, "sql.shell", "runs a shell command"
		}
		return Mutate, "sql.meta", "a command of the client"
	}
	return Mutate, "sql.write", st[0]
}

func at(st []string, i int) string {
	if i < len(st) {
		return st[i]
	}
	return ""
}

// whereless is destruction when nothing narrows the rows: no WHERE, or one that
// is true for all of them.
func whereless(st []string, from int, verb, rule string) (Effect, string, string) {
	for i := from; i < len(st); i++ {
		if st[i] == "WHERE" {
			if i+1 >= len(st) || at(st, i+1) == "TRUE" || i+3 < len(st)+1 && at(st, i+2) == "=" && at(st, i+1) == at(st, i+3) && at(st, i+1) != "" {
				return Destroy, rule + ".all", verb + " with a WHERE that is always true"
			}
			return Mutate, rule, verb + " … WHERE"
		}
		if st[i] == "LIMIT" {
			return Mutate, rule, verb + " … LIMIT"
		}
	}
	return Destroy, rule + ".all", verb + " without WHERE"
}

var safeFunction = set(`COUNT SUM MIN MAX AVG COALESCE NOW VERSION CURRENT_DATABASE CURRENT_SCHEMA CURRENT_USER CURRENT_TIMESTAMP LOWER UPPER LENGTH CAST CONCAT SUBSTRING SUBSTR TRIM ROUND ABS DATE EXTRACT TO_CHAR DATE_TRUNC
 ROW_NUMBER RANK DENSE_RANK NULLIF GREATEST LEAST STRING_AGG ARRAY_AGG JSON_AGG JSONB_AGG GROUP_CONCAT IFNULL IF ISNULL STRFTIME PG_SIZE_PRETTY PG_TOTAL_RELATION_SIZE PG_DATABASE_SIZE PG_RELATION_SIZE DATABASE USER TYPEOF JSON_EXTRACT UNNEST GENERATE_SERIES PG_IS_IN_RECOVERY CURRENT_SETTING DISTINCT`)

var sqlWord = set(`SELECT FROM WHERE AND OR NOT IN EXISTS AS ON USING VALUES WITH UNION ALL EXCEPT INTERSECT OVER FILTER ANY SOME ARRAY BY JOIN LATERAL HAVING THEN ELSE WHEN CASE BETWEEN LIKE RECURSIVE ROW`)

// everyDatabase reports ON *.* in a grant.
func everyDatabase(st []string) bool {
	for i, w := range st {
		if w == "ON" {
			return at(st, i+1) == "*"
		}
	}
	return false
}
