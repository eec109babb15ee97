package sensors

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gettier.dev/gettierd/sensors/packs"
	"gettier.dev/gettierd/sensors/spec"
)

// moved is a sensor of a pack that finds its program's files or server in
// another place than usual: pairs of what stands in the pack and what is put there.
func moved(t *testing.T, id string, pairs ...string) *spec.Sensor {
	t.Helper()
	all, err := packs.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		for _, f := range p.Files {
			if !bytes.Contains(f.Data, []byte("id: "+id+"\n")) {
				continue
			}
			text := string(f.Data)
			for i := 0; i < len(pairs); i += 2 {
				if !strings.Contains(text, pairs[i]) {
					t.Fatalf("the pack of %s has no %q", id, pairs[i])
				}
				text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
			}
			reg, problems := spec.Parse(f.Name, "pack", []byte(text))
			if len(problems) > 0 {
				t.Fatal(problems[0])
			}
			for _, s := range reg.Sensors {
				if s.ID == id {
					return s
				}
			}
		}
	}
	t.Fatalf("no pack has %s", id)
	return nil
}

// server is a program of Debian's that a test starts, in a directory of its own
// and as an ordinary user where it refuses to be root's.
type server struct {
	t    *testing.T
	dir  string
	uid  *syscall.Credential
	path string // of programs
}

func newServer(t *testing.T) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "gt-srv-") // short: a socket's path has 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &server{t: t, dir: dir, path: "/usr/bin:/usr/sbin:/bin:/sbin:" + os.Getenv("PATH")}
	if found, err := filepath.Glob("/usr/lib/postgresql/*/bin"); err == nil && len(found) > 0 {
		s.path = found[len(found)-1] + ":" + s.path
	}
	if os.Geteuid() != 0 {
		return s
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		t.Fatal(err)
	}
	s.uid = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	return s
}

// command makes one that is skipped where its program is not installed.
func (s *server) command(name string, args ...string) *exec.Cmd {
	s.t.Helper()
	program, err := lookPath(name, s.path)
	if err != nil {
		s.t.Skipf("%s is not installed", name)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = s.dir, []string{"PATH=" + s.path, "HOME=" + s.dir, "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.uid}
	return cmd
}

func (s *server) run(name string, args ...string) {
	s.t.Helper()
	if out, err := s.command(name, args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// start runs it until the test ends, and returns once it answers there.
func (s *server) start(network, address, name string, args ...string) {
	s.t.Helper()
	cmd := s.command(name, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	waitFor(s.t, name+" answers", func() bool {
		select {
		case <-ended:
			s.t.Fatalf("%s ended: %s", name, said.String())
		default:
		}
		c, err := net.Dial(network, address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// measures runs a pack's sensor in the sandbox and judges a true and a false
// claim by what it read.
func (s *server) measures(d *spec.Sensor, root, key, value, claim, not string) {
	s.t.Helper()
	env := func(n string) (string, bool) {
		switch n {
		case "PATH":
			return s.path, true
		case "PGUSER":
			return "probe", true
		}
		return os.LookupEnv(n)
	}
	run := NewRunner(RunnerOptions{Confine: true, Env: env})
	defer run.Close()
	req := Request{Sensor: d, Draft: true, Root: root, Cwd: root, Env: env}
	rd := run.Run(s.t.Context(), []Request{req})[0]
	if reason, failed := Failed(rd); failed {
		s.t.Fatalf("%s: %s: %s (%s)", d.ID, reason, rd.Detail, rd.Invocation.Sandbox)
	}
	judgePack(s.t, d, rd, key, value, claim, not)
	// The first run pays for the sandbox's worker.
	began := time.Now()
	run.Run(s.t.Context(), []Request{req})
	s.t.Logf("%s %v (%s)", d.ID, time.Since(began).Round(time.Millisecond), rd.Invocation.Sandbox)
}

// TestPackServers: the packs that ask a server, with Debian's own on this machine,
// in the sandbox that they run in.
func TestPackServers(t *testing.T) {
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		l.Close()
		s.start("tcp", "127.0.0.1:"+port, "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru", "--dir", s.dir)
		d := moved(t, "redis.info", "6379", port)
		s.measures(d, "", "maxmemory", "67108864", "the local redis maxmemory-policy is allkeys-lru", "the local redis maxmemory-policy is noeviction")
		s.measures(d, "", "role", "master", "", "in the local redis aof is enabled")
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		data := filepath.Join(s.dir, "data")
		s.run("initdb", "-D", data, "-U", "probe", "-A", "trust", "-N", "--no-instructions")
		s.start("unix", filepath.Join(s.dir, ".s.PGSQL.5432"), "postgres", "-D", data, "-k", s.dir, "-c", "listen_addresses=", "-c", "max_connections=37", "-c", "fsync=off")
		at := []string{"psql, -X,", "psql, -X, -h, " + s.dir + ","}
		s.measures(moved(t, "pg.server", at...), "", "max_connections", "37", "max_connections is 37", "max_connections is 100")
		s.measures(moved(t, "pg.role", at...), "", "is_superuser", "true", "the local database role is a superuser", "")
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		data, socket := filepath.Join(s.dir, "data"), filepath.Join(s.dir, "s")
		s.command("mariadbd") // or skip
		if err := os.Mkdir(data, 0o777); err != nil {
			t.Fatal(err)
		}
		if s.uid != nil {
			if err := os.Chown(data, int(s.uid.Uid), int(s.uid.Gid)); err != nil {
				t.Fatal(err)
			}
		}
		s.start("unix", socket, "mariadbd", "--no-defaults", "--datadir="+data, "--socket="+socket, "--skip-networking", "--pid-file="+data+"/pid", "--max-allowed-packet=32M", "--skip-innodb", "--default-storage-engine=MyISAM", "--skip-grant-tables")
		d := moved(t, "mysql.server", "--protocol=socket", "--socket="+socket)
		s.measures(d, "", "version", "1", "the local mariadb max_allowed_packet is 32M", "the local mariadb max_allowed_packet is 16M")
	})
	t.Run("nginx", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		conf := "error_log stderr;\npid " + s.dir + "/pid;\nworker_processes 3;\nevents {}\nhttp {\n  access_log off;\n  client_max_body_size 1m; # include nothing;\n  proxy_read_timeout 45s;\n  include 'sites/*.conf';\n}\n"
		site := "server { listen unix:" + s.dir + "/s; client_max_body_size 20m; add_header X \"; include none.conf;\"; include " + s.dir + "/more/one; location / { return 204; } }\n"
		for name, text := range map[string]string{"nginx.conf": conf, "sites/a.conf": site, "more/one": "send_timeout 7s;\n", "sites/b.txt": "include {"} {
			file := filepath.Join(s.dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		d := moved(t, "nginx.config", "/etc/nginx/", s.dir+"/")
		// The program prints the very same files.
		out, err := s.command("nginx", "-T", "-q", "-c", filepath.Join(s.dir, "nginx.conf")).Output()
		if err != nil {
			t.Fatal(err)
		}
		run := NewRunner(RunnerOptions{})
		ours := run.Run(t.Context(), []Request{{Sensor: d, Draft: true}})[0]
		theirs := run.Recorded(d, out, 0)
		marks := func(b []byte) []string {
			return regexp.MustCompile(`(?m)^# configuration file .*:$`).FindAllString(string(b), -1)
		}
		if diff := cmp.Diff(theirs.Evidence.Values, ours.Evidence.Values); diff != "" || !slices.Equal(marks(ours.Output), marks(out)) || len(marks(out)) != 3 {
			t.Errorf("%s %v, by nginx %v\n%s", ours.Detail, marks(ours.Output), marks(out), diff)
		}
		s.measures(d, "", "workers", "3", "nginx accepts uploads of 10 MB", "nginx accepts uploads of 25 MB")
		s.measures(d, "", "read_timeout", "45", "nginx's proxy_read_timeout is 45s", "nginx's proxy_read_timeout is 60s")
	})
	t.Run("haproxy", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		conf := "global\n    maxconn 400\ndefaults\n    mode http\n    timeout connect 5s\n    timeout client 50s\n    timeout server 40s\nfrontend f\n    bind 127.0.0.1:8\n    default_backend b\nbackend b\n    server s 127.0.0.1:9\n"
		file := filepath.Join(s.dir, "haproxy.cfg")
		if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
			t.Fatal(err)
		}
		s.run("haproxy", "-c", "-q", "-f", file) // the program takes it, too
		d := moved(t, "haproxy.config", "/etc/haproxy/", s.dir+"/")
		s.measures(d, "", "client_timeout", "50", "haproxy's server timeout is 40s", "haproxy's server timeout is 50s")
	})
	t.Run("machine", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		s.command("dpkg")
		root := shop(t, nil)
		s.measures(packSensor(t, "host.disk"), root, "size", "", "the disk has at least 1 KB free", "the disk has at least 900 TB free")
		s.measures(packSensor(t, "host.locale"), root, "charmap", "", "", "the locale's charset is EBCDIC-US")
		d := moved(t, "host.package", "from_claim:", "default: dpkg, from_claim:")
		s.measures(d, root, "state", "installed", "the debian package dpkg is version 1", "the debian package dpkg is version 3")
	})
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		s.command("go")
		s.measures(packSensor(t, "go.version"), "", "version", fmt.Sprint(1), "", "the installed go is 1.4")
	})
}
