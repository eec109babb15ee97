package probe

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// dbTarget: which database would this tool change? (row 1) It follows the tool's
// own order of environment, dotenv files and configuration, and prints host and
// database, never a user name or a password.
func (p *probe) dbTarget() error {
	if u := p.param("url"); strings.Contains(u, "://") || strings.Contains(u, "host=") {
		t := parseURL(u)
		t.source = "the command"
		p.putTarget(t)
		return nil
	}
	tool := p.param("tool")
	if h := p.param("host"); h != "" {
		t := target{host: h, source: "the command", engine: clientEngine[tool]}
		p.putTarget(t.checked())
		return nil
	}
	if e := clientEngine[tool]; e != "" {
		p.putTarget(p.client(tool, e))
		return nil
	}
	t, err := p.files()
	if err != nil {
		return err
	}
	if name := p.param("variable"); name != "" {
		got, err := p.generic(t, name)
		if err != nil {
			return err
		}
		p.putTarget(got)
		return nil
	}
	if tool == "" {
		if tool, err = t.dbTool(); err != nil {
			return err
		}
	}
	p.put("tool", tool)
	f, ok := dbTools[tool]
	if !ok {
		f = func(p *probe, t *tree) (target, error) { return p.generic(t, "DATABASE_URL") }
	}
	got, err := f(p, t)
	if err != nil {
		return err
	}
	p.putTarget(got)
	return nil
}

var dbTools = map[string]func(*probe, *tree) (target, error){
	"prisma": (*probe).prisma, "drizzle": (*probe).drizzle, "alembic": (*probe).alembic, "rails": (*probe).rails, "artisan": (*probe).artisan,
	"sequelize": (*probe).sequelize,
}

// clientEngine are the command line clients, which read no project files.
var clientEngine = map[string]string{"psql": "postgresql", "mysql": "mysql", "redis-cli": "redis", "mongosh": "mongodb"}

// dbTool guesses nothing: only one kind of tool may be set up here.
func (t *tree) dbTool() (string, error) {
	var found []string
	for _, k := range []struct{ file, tool string }{
		{"prisma/schema.prisma", "prisma"}, {"schema.prisma", "prisma"}, {"prisma.config.ts", "prisma"}, {"drizzle.config.ts", "drizzle"},
		{"drizzle.config.js", "drizzle"}, {"drizzle.config.mjs", "drizzle"}, {"alembic.ini", "alembic"}, {"config/database.yml", "rails"},
		{"artisan", "artisan"}, {".sequelizerc", "sequelize"}, {"config/config.json", "sequelize"},
	} {
		for _, dir := range t.up() {
			ok, err := t.has(path.Join(dir, k.file))
			if err != nil {
				return "", err
			}
			if ok && !contains(found, k.tool) {
				found = append(found, k.tool)
			}
		}
	}
	switch len(found) {
	case 0:
		return "dotenv", nil
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("several database tools are set up here: %s", strings.Join(found, ", "))
}

// ofSetting turns a variable's value into a target.
func ofSetting(name string, s setting) target {
	t := target{unknown: s.unknown}
	switch {
	case s.unknown != "":
	case !s.set:
		t.unknown = name + " is set nowhere"
	default:
		t = parseURL(s.value)
	}
	t.source, t.variable = s.source, name
	return t
}

// generic looks one variable up in the environment and in .env, as plain dotenv
// does, or in the order of a framework that reads more files.
func (p *probe) generic(t *tree, name string) (target, error) {
	dir, _, err := t.nearest(".env", ".env.local", "package.json", "pyproject.toml", "go.mod", "Gemfile", "composer.json")
	if err != nil {
		return target{}, err
	}
	names := []string{".env"}
	if p.layered(t) {
		mode, err := p.mode()
		if err != nil {
			return target{}, err
		}
		names = []string{".env." + mode + ".local", ".env.local", ".env." + mode, ".env"}
	}
	files, err := t.envFiles(or(dir, "."), names...)
	if err != nil {
		return target{}, err
	}
	s := p.setting(name, files)
	if !s.set && s.unknown == "" && len(files) == 0 {
		return target{}, fmt.Errorf("%w: no %s and no .env", ErrNone, name)
	}
	return ofSetting(name, s), nil
}

var (
	datasource = regexp.MustCompile(`(?s)\bdatasource\s+\w+\s*\{(.*?)\n\s*\}`)
	prismaURL  = regexp.MustCompile(`(?m)^\s*(url|directUrl)\s*=\s*(?:env\(\s*"(\w+)"\s*\)|"([^"]*)")`)
	configURL  = regexp.MustCompile(`\b(?:url|connectionString)\s*:\s*(?:env(?:<[^>]*>)?\(\s*['"](\w+)['"]\s*\)|process\.env\.(\w+)|process\.env\[\s*['"](\w+)['"]\s*\]|['"]([^'"]+)['"])`)
	configHost = regexp.MustCompile(`\bhost\s*:\s*(?:process\.env\.(\w+)|['"]([^'"]+)['"])`)
	dotenvPath = regexp.MustCompile(`config\(\s*\{\s*path\s*:\s*(?:\[\s*)?['"]([^'"]+)['"]\s*\}`)
)

// prisma: env() of the schema, an environment that wins, then .env beside
// package.json and beside the schema. It reads no .env.local. directUrl, where
// there is one, is what migrations go to. With a prisma.config file nothing is
// loaded but what that file loads.
func (p *probe) prisma(t *tree) (target, error) {
	dirs := []string{t.cwd}
	m, err := t.manifest()
	if err != nil {
		return target{}, err
	}
	if m != nil && m.dir != t.cwd {
		dirs = append(dirs, m.dir)
	}
	for _, dir := range dirs {
		for _, name := range []string{"prisma.config.ts", "prisma.config.js", "prisma.config.mjs"} {
			text, err := t.file(path.Join(dir, name))
			if absent(err) {
				continue
			}
			if err != nil {
				return target{}, err
			}
			return p.prismaConfig(t, dir, text)
		}
		schemas := []string{"prisma/schema.prisma", "schema.prisma"}
		if m != nil && m.Prisma.Schema != "" && dir == m.dir {
			schemas = []string{m.Prisma.Schema}
		}
		for _, s := range schemas {
			text, err := t.file(path.Join(dir, s))
			if absent(err) {
				continue
			}
			if err != nil {
				return target{}, err
			}
			files, err := t.envFiles(dir, ".env", path.Join(path.Dir(s), ".env"))
			if err != nil {
				return target{}, err
			}
			return p.prismaSchema(text, path.Join(dir, s), files), nil
		}
	}
	return target{}, fmt.Errorf("%w: no prisma schema", ErrNone)
}

func (p *probe) prismaSchema(text, name string, files []envFile) target {
	block := datasource.FindStringSubmatch(stripComments(text, "//"))
	if block == nil {
		return unknownTarget("the schema has no datasource")
	}
	best := target{unknown: "the schema has no url"}
	for _, m := range prismaURL.FindAllStringSubmatch(block[1], -1) {
		var t target
		if m[2] != "" {
			t = ofSetting(m[2], p.setting(m[2], files))
		} else {
			t = parseURL(m[3])
			t.source = name
		}
		if m[1] == "directUrl" {
			return t
		}
		best = t
	}
	return best
}

func (p *probe) prismaConfig(t *tree, dir, text string) (target, error) {
	text = stripComments(text, "//")
	files, why, err := p.loaded(t, dir, text)
	if err != nil {
		return target{}, err
	}
	got := p.fromConfig(text, files, why)
	if got.unknown == "" || configURL.MatchString(text) {
		return got, nil
	}
	for _, s := range []string{"prisma/schema.prisma", "schema.prisma"} { // the url stands in the schema still
		schema, err := t.file(path.Join(dir, s))
		if err == nil && why == "" {
			return p.prismaSchema(schema, path.Join(dir, s), files), nil
		}
	}
	return got, nil
}

// loaded says which dotenv files a configuration script loads; why is not empty
// when that cannot be told.
func (p *probe) loaded(t *tree, dir, text string) (files []envFile, why string, err error) {
	var names []string
	switch m := dotenvPath.FindStringSubmatch(text); {
	case m != nil:
		names = []string{m[1]}
	case strings.Contains(text, "dotenv/config"), strings.Contains(text, "dotenv.config()"), strings.Contains(text, "process.loadEnvFile()"):
		names = []string{".env"}
	case strings.Contains(text, "dotenv") || strings.Contains(text, "loadEnv"):
		return nil, "its configuration loads variables in its own way", nil
	}
	files, err = t.envFiles(dir, names...)
	return files, "", err
}

// fromConfig finds the one connection that a configuration script names.
func (p *probe) fromConfig(text string, files []envFile, why string) target {
	all := configURL.FindAllStringSubmatch(text, -1)
	if len(all) > 1 {
		return unknownTarget("its configuration names several connections")
	}
	if len(all) == 1 {
		m := all[0]
		name := or(m[1], or(m[2], m[3]))
		if name == "" {
			t := parseURL(m[4])
			t.source = "its configuration"
			return t
		}
		s := p.setting(name, files)
		if !s.set && why != "" {
			s.unknown = why
		}
		return ofSetting(name, s)
	}
	if hosts := configHost.FindAllStringSubmatch(text, -1); len(hosts) == 1 {
		if hosts[0][1] == "" {
			return target{host: hosts[0][2], source: "its configuration"}.checked()
		}
		s := p.setting(hosts[0][1], files)
		switch {
		case s.unknown != "":
			return target{unknown: s.unknown, variable: hosts[0][1]}
		case s.set:
			return target{host: s.value, source: s.source, variable: hosts[0][1]}.checked()
		}
	}
	return unknownTarget("its configuration names no connection that can be read")
}

// drizzle: the url of its configuration. Whether a version of it loads .env by
// itself differs, so without a line that does a value in .env is not told.
func (p *probe) drizzle(t *tree) (target, error) {
	for _, name := range []string{"drizzle.config.ts", "drizzle.config.js", "drizzle.config.mjs", "drizzle.config.json"} {
		dir, found, err := t.nearest(name)
		if err != nil {
			return target{}, err
		}
		if len(found) == 0 {
			continue
		}
		text, err := t.file(path.Join(dir, name))
		if err != nil {
			return target{}, err
		}
		text = stripComments(strings.ReplaceAll(text, `"url"`, "url"), "//")
		files, why, err := p.loaded(t, dir, text)
		if err != nil {
			return target{}, err
		}
		got := p.fromConfig(text, files, why)
		if got.unknown != "" && got.source == "" && got.variable != "" && len(files) == 0 {
			got.unknown = "whether it loads .env is not certain"
		}
		return got, nil
	}
	return target{}, fmt.Errorf("%w: no drizzle configuration", ErrNone)
}

// stripComments takes whole-line and trailing comments out, but not the // of a
// URL.
func stripComments(text, mark string) string {
	out := strings.Split(text, "\n")
	for i, l := range out {
		if strings.HasPrefix(strings.TrimSpace(l), mark) {
			out[i] = ""
		} else if j := strings.Index(l, " "+mark+" "); j >= 0 {
			out[i] = l[:j]
		}
	}
	return strings.Join(out, "\n")
}

var (
	iniURL     = regexp.MustCompile(`(?m)^\s*sqlalchemy\.url\s*=\s*(\S+)`)
	iniScripts = regexp.MustCompile(`(?m)^\s*script_location\s*=\s*(\S+)`)
	pyEnv      = regexp.MustCompile(`(?:os\.environ(?:\.get)?|os\.getenv|getenv|environ)\s*[\[(]\s*['"](\w+)['"]`)
)

// alembic: sqlalchemy.url of the ini file, unless env.py sets another one.
func (p *probe) alembic(t *tree) (target, error) {
	dir, found, err := t.nearest("alembic.ini")
	if err != nil {
		return target{}, err
	}
	if len(found) == 0 {
		return target{}, fmt.Errorf("%w: no alembic.ini", ErrNone)
	}
	ini, err := t.file(path.Join(dir, "alembic.ini"))
	if err != nil {
		return target{}, err
	}
	scripts := "alembic"
	if m := iniScripts.FindStringSubmatch(ini); m != nil {
		scripts = strings.TrimPrefix(strings.ReplaceAll(m[1], "%(here)s/", ""), "./")
	}
	env, err := t.file(path.Join(dir, scripts, "env.py"))
	if err != nil && !absent(err) {
		return target{}, err
	}
	env = stripComments(env, "#")
	names := map[string]bool{}
	for _, m := range pyEnv.FindAllStringSubmatch(env, -1) {
		names[m[1]] = true
	}
	switch {
	case len(names) == 1:
		var files []envFile
		if strings.Contains(env, "load_dotenv()") {
			if files, err = t.envFiles(dir, ".env"); err != nil {
				return target{}, err
			}
		} else if strings.Contains(env, "load_dotenv") {
			return unknownTarget("env.py loads variables in its own way"), nil
		}
		for n := range names {
			return ofSetting(n, p.setting(n, files)), nil
		}
	case len(names) > 1, strings.Contains(env, "set_main_option(") && strings.Contains(env, "sqlalchemy.url"), strings.Contains(env, "settings"), strings.Contains(env, "create_engine("):
		return unknownTarget("env.py decides"), nil
	}
	m := iniURL.FindStringSubmatch(ini)
	if m == nil {
		return unknownTarget("alembic.ini has no sqlalchemy.url"), nil
	}
	got := parseURL(m[1])
	got.source = path.Join(dir, "alembic.ini")
	return got, nil
}

// rails: DATABASE_URL, then config/database.yml of the environment.
func (p *probe) rails(t *tree) (target, error) {
	dir, found, err := t.nearest("config/database.yml")
	if err != nil {
		return target{}, err
	}
	if len(found) == 0 {
		return target{}, fmt.Errorf("%w: no config/database.yml", ErrNone)
	}
	mode := "development"
	if v, set, _ := p.env("RAILS_ENV"); set && v != "" {
		mode = v
	}
	gemfile, err := t.file(path.Join(dir, "Gemfile"))
	if err != nil && !absent(err) {
		return target{}, err
	}
	var files []envFile
	if strings.Contains(gemfile, "dotenv") {
		if files, err = t.envFiles(dir, ".env."+mode+".local", ".env.local", ".env."+mode, ".env"); err != nil {
			return target{}, err
		}
	}
	s := p.setting("DATABASE_URL", files)
	if s.set || s.unknown != "" {
		return ofSetting("DATABASE_URL", s), nil
	}
	text, err := t.file(path.Join(dir, "config/database.yml"))
	if err != nil {
		return target{}, err
	}
	got := databaseYML(text, mode)
	got.source = path.Join(dir, "config/database.yml")
	return got, nil
}

// databaseYML reads one environment of the file, which is a template: whatever
// a template decides cannot be told.
func databaseYML(text, mode string) target {
	sections := map[string]map[string]string{}
	anchors := map[string]string{}
	name := ""
	for l := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(l)
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(trimmed, ":")
		if !ok {
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		if l[0] != ' ' && l[0] != '\t' {
			name = key
			sections[name] = map[string]string{}
			if anchor, ok := strings.CutPrefix(value, "&"); ok {
				anchors[anchor] = name
			}
			continue
		}
		if name == "" {
			continue
		}
		if key == "<<" {
			for k, v := range sections[anchors[strings.TrimPrefix(value, "*")]] {
				if _, have := sections[name][k]; !have {
					sections[name][k] = v
				}
			}
			continue
		}
		if key == "primary" || key == "replica" {
			return unknownTarget("config/database.yml has several databases")
		}
		sections[name][key] = value
	}
	s, ok := sections[mode]
	if !ok {
		return unknownTarget("config/database.yml has no " + cut(mode, 40))
	}
	for _, k := range []string{"url", "host", "database", "socket", "port"} {
		if strings.Contains(s[k], "<%") {
			return unknownTarget("config/database.yml is put together when it runs")
		}
	}
	if s["url"] != "" {
		return parseURL(s["url"])
	}
	engine := engines[s["adapter"]]
	return target{engine: engine, host: s["host"], port: s["port"], database: path.Base(or(s["database"], ".")), file: engine == "sqlite"}.checked()
}

// artisan: Laravel's variables, from its environment, then its .env.
func (p *probe) artisan(t *tree) (target, error) {
	dir, found, err := t.nearest("artisan")
	if err != nil {
		return target{}, err
	}
	if len(found) == 0 {
		return target{}, fmt.Errorf("%w: no artisan", ErrNone)
	}
	if cached, err := t.has(path.Join(dir, "bootstrap/cache/config.php")); err != nil {
		return target{}, err
	} else if cached {
		return unknownTarget("a cached configuration decides"), nil
	}
	names := []string{".env"}
	if v, set, _ := p.env("APP_ENV"); set && envName.MatchString(v) {
		if ok, err := t.has(path.Join(dir, ".env."+v)); err != nil {
			return target{}, err
		} else if ok {
			names = []string{".env." + v}
		}
	}
	files, err := t.envFiles(dir, names...)
	if err != nil {
		return target{}, err
	}
	get := map[string]setting{}
	for _, n := range []string{"DB_URL", "DATABASE_URL", "DB_CONNECTION", "DB_HOST", "DB_PORT", "DB_DATABASE"} {
		get[n] = p.setting(n, files)
		if get[n].unknown != "" {
			return target{unknown: get[n].unknown, variable: n}, nil
		}
	}
	for _, n := range []string{"DB_URL", "DATABASE_URL"} {
		if s := get[n]; s.set && s.value != "" {
			return ofSetting(n, s), nil
		}
	}
	host := get["DB_HOST"]
	out := target{engine: engines[get["DB_CONNECTION"].value], host: or(host.value, "127.0.0.1"), port: get["DB_PORT"].value, database: get["DB_DATABASE"].value}
	if out.engine == "sqlite" {
		out.file, out.database = true, path.Base(or(out.database, "database.sqlite"))
	}
	out.source, out.variable = or(host.source, "its default"), "DB_HOST"
	return out.checked(), nil
}

// sequelize: config/config.json of the environment; a script cannot be read.
func (p *probe) sequelize(t *tree) (target, error) {
	dir, found, err := t.nearest("config/config.json")
	if err != nil {
		return target{}, err
	}
	if len(found) == 0 {
		return unknownTarget("its configuration is a script, or not here"), nil
	}
	if rc, err := t.has(path.Join(dir, ".sequelizerc")); err != nil {
		return target{}, err
	} else if rc {
		return unknownTarget(".sequelizerc decides"), nil
	}
	text, err := t.file(path.Join(dir, "config/config.json"))
	if err != nil {
		return target{}, err
	}
	var envs map[string]struct {
		Host        string `json:"host"`
		Port        any    `json:"port"`
		Database    string `json:"database"`
		Dialect     string `json:"dialect"`
		Storage     string `json:"storage"`
		UseVariable string `json:"use_env_variable"`
	}
	if err := json.Unmarshal([]byte(text), &envs); err != nil {
		return target{}, fmt.Errorf("read config/config.json: %w", err)
	}
	mode := "development"
	v, set, known := p.env("NODE_ENV")
	if !known {
		return unknownTarget("the agent's environment is not known"), nil
	}
	if set && v != "" {
		mode = v
	}
	c, ok := envs[mode]
	if !ok {
		return unknownTarget("config/config.json has no " + cut(mode, 40)), nil
	}
	if c.UseVariable != "" {
		return ofSetting(c.UseVariable, p.setting(c.UseVariable, nil)), nil
	}
	out := target{engine: engines[c.Dialect], host: c.Host, database: c.Database, source: path.Join(dir, "config/config.json")}
	if c.Port != nil {
		out.port = fmt.Sprint(c.Port)
	}
	if out.file = out.engine == "sqlite"; !out.file && out.host == "" {
		out.host = "localhost"
	}
	return out.checked(), nil
}

// client: what a command line client takes when the command names no host.
func (p *probe) client(tool, engine string) target {
	t := target{engine: engine, source: "its default"}
	names := map[string][3]string{"psql": {"PGHOST", "PGPORT", "PGDATABASE"}, "mysql": {"MYSQL_HOST", "MYSQL_TCP_PORT", ""}}[tool]
	for i, n := range names {
		if n == "" {
			continue
		}
		v, set, known := p.env(n)
		if !known {
			return unknownTarget("the agent's environment is not known")
		}
		if !set || v == "" {
			continue
		}
		switch i {
		case 0:
			t.host, t.source, t.variable = v, "environment", n
		case 1:
			t.port = v
		case 2:
			t.database = v
		}
	}
	switch tool {
	case "psql":
		for _, n := range []string{"PGSERVICE", "PGHOSTADDR"} {
			if _, set, _ := p.env(n); set {
				return unknownTarget(n + " decides")
			}
		}
	case "mysql":
		for _, name := range []string{".my.cnf", ".mylogin.cnf"} {
			if text, err := p.home(name); err == nil && t.host == "" && (strings.Contains(text, "host") || name == ".mylogin.cnf") {
				return unknownTarget("~/" + name + " decides")
			}
		}
	default:
		if t.host == "" {
			t.host = "127.0.0.1"
		}
	}
	if db := p.param("url"); db != "" && t.database == "" {
		t.database = db
	}
	return t.checked()
}
