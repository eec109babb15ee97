package sensors

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gettier.dev/gettierd/ledger/lemma"
	"gettier.dev/gettierd/sensors/spec"
	"gettier.dev/gettierd/sensors/verdict"
)

func packSensor(t *testing.T, id string) *spec.Sensor { return moved(t, id) }

// The packs' programs as Debian has them: what they print is read as the packs
// expect, for a true and a false claim each.
func TestPackPrograms(t *testing.T) {
	root := shop(t, nil)
	write := func(name string, cmd ...string) {
		c := exec.Command(cmd[0], cmd[1:]...)
		c.Dir = root
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("make %s: %v\n%s", name, err, out)
		}
	}
	run := NewRunner(RunnerOptions{Env: func(n string) (string, bool) {
		if n == "PATH" {
			return "/usr/bin:/usr/sbin:/bin:" + os.Getenv("PATH"), true // before wrappers that choose a version
		}
		return os.LookupEnv(n)
	}})
	for _, c := range []struct {
		sensor, program, claim, not string // a true and a false claim, "" for none
		key, value                  string // a value, as a prefix
		params                      map[string]string
		make                        []string
	}{
		{"node.version", "node", "", "the system node is 4", "version", "", nil, nil},
		{"python.version", "python3", "", "the system python is 2.7", "version", "3.", nil, nil},
		{"sqlite.version", "sqlite3", "", "the installed sqlite is 2.8", "version", "3.", nil, nil},
		{"sqlite.file", "sqlite3", "in the database dev.db journal mode is wal", "in the database dev.db journal mode is off", "tables", "1", map[string]string{"path": "dev.db"}, []string{"sqlite3", "dev.db", "pragma journal_mode=wal; create table a(b); pragma user_version=7"}},
		{"tls.file", "openssl", "the certificate web.crt is issued for shop.example", "the certificate web.crt is issued for blog.example", "subject", "shop.example", map[string]string{"path": "web.crt"},
			[]string{"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "/dev/null", "-out", "web.crt", "-days", "30", "-subj", "/CN=shop.example", "-addext", "subjectAltName=DNS:shop.example,DNS:www.shop.example"}},
		{"haproxy.version", "haproxy", "", "the installed haproxy is 1.4", "version", "", nil, nil},
		{"mysql.client", "mysql", "", "the installed mysql client is 3.23", "version", "", nil, nil},
		{"host.cpu", "nproc", "", "the machine has 4096 cores", "count", "", nil, nil},
		{"host.memory", "cat", "", "", "total_kb", "", nil, nil},
		{"git.tag", "git", "the tag v1.0 exists", "", "tags", "1", map[string]string{"tag": "v1.0"}, []string{"sh", "-c", "git init -q -b main . && git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m 1 && git tag v1.0"}},
		{"git.history", "git", "", "the last commit is abcdefabcdef", "commit", "", nil, nil},
	} {
		t.Run(c.sensor, func(t *testing.T) {
			if _, err := exec.LookPath(c.program); err != nil {
				if _, err := os.Stat("/usr/sbin/" + c.program); err != nil {
					t.Skipf("%s is not installed", c.program)
				}
			}
			if c.make != nil {
				write(c.sensor, c.make...)
			}
			s := packSensor(t, c.sensor)
			s.File = filepath.Join(root, "sensors.yaml")
			rd := run.Run(t.Context(), []Request{{Sensor: s, Draft: true, Params: c.params, Root: root, Cwd: root}})[0]
			if reason, failed := Failed(rd); failed {
				t.Fatalf("%s: %s", reason, rd.Detail)
			}
			judgePack(t, s, rd, c.key, c.value, c.claim, c.not)
		})
	}
}

func judgePack(t *testing.T, s *spec.Sensor, rd Reading, key, value, claim, not string) {
	t.Helper()
	found := false
	for _, v := range rd.Evidence.Values {
		if v.Key == key {
			found = v.Problem == "" && strings.HasPrefix(v.Text, value)
			if !found {
				t.Errorf("%s = %q (%s), want %s…", key, v.Text, v.Problem, value)
			}
		}
	}
	if !found {
		t.Errorf("no %s in %+v", key, rd.Evidence.Values)
	}
	for text, want := range map[string]lemma.Verdict{claim: lemma.Confirmed, not: lemma.Contradicted} {
		if text == "" {
			continue
		}
		if res := verdict.Judge(verdict.Claim{Text: text}, s, rd.Evidence); res.Verdict != want {
			t.Errorf("%q is %s (%s), want %s", text, res.Verdict, res.Reason, want)
		}
	}
}

// What needs a server or a cloud is read from recorded output, whose sources
// stand in testdata/recorded/SOURCES.txt.
func TestPackRecordings(t *testing.T) {
	run := NewRunner(RunnerOptions{})
	for _, c := range []struct{ sensor, key, value, claim, not string }{
		{"redis.info", "version", "7.0", "the local redis is 7.0", "the local redis is 6"},
		{"redis.info", "policy", "noeviction", "the local redis maxmemory-policy is noeviction", "the local redis maxmemory-policy is allkeys-lru"},
		{"redis.info", "maxmemory", "unlimited", "", "in the local redis aof is enabled"},
		{"pg.server", "version", "15.18", "the local postgres is 15", "the local postgres is 16"},
		{"pg.server", "max_connections", "100", "max_connections is 100", "max_connections is 500"},
		{"pg.role", "is_superuser", "true", "the local database role is a superuser", ""},
		{"docker.container", "status", "running", "the container `db` is running", ""},
		{"kubernetes.deployment", "replicas", "3", "the deployment `web` has 3 replicas", "the deployment `web` has 5 replicas"},
		{"systemd.unit", "active", "active", "the service `ssh.service` is running", ""},
		{"cloud.aws", "account", "123456789012", "the aws account is 123456789012", "the aws account is 210987654321"},
		{"cloud.gcloud", "project", "shop-dev", "the gcloud project is shop-dev", "the gcloud project is shop-prod"},
	} {
		out, err := os.ReadFile("testdata/recorded/" + c.sensor + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		s := packSensor(t, c.sensor)
		judgePack(t, s, run.Recorded(s, out, 0), c.key, c.value, c.claim, c.not)
	}
}
