package probe

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// osTools: whose sed, date, stat are these? (row 13)
func (p *probe) osTools() error {
	p.put("os", runtime.GOOS)
	p.put("arch", runtime.GOARCH)
	if text, err := p.outside("/etc/os-release"); err == nil {
		for _, v := range dotenv(text) {
			switch v.name {
			case "ID":
				p.put("distribution", v.value)
			case "VERSION_ID":
				p.put("release", v.value)
			}
		}
	}
	if _, _, known := p.env("PATH"); !known {
		return nil
	}
	for _, name := range []string{"sed", "date", "stat", "xargs", "grep", "find"} {
		p.put(name, p.flavour(name))
	}
	for _, name := range []string{"timeout", "jq", "rg", "make", "docker", "curl", "wget", "python", "python3", "node", "go", "gsed", "greadlink"} {
		p.putBool("has_"+name, p.lookPath(name) != "")
	}
	return nil
}

// flavours are words that a tool's own binary holds.
var flavours = []struct{ word, name string }{
	{"BusyBox", "busybox"}, {"uutils", "uutils"}, {"toybox", "toybox"}, {"GNU sed", "gnu"}, {"GNU coreutils", "gnu"}, {"GNU findutils", "gnu"}, {"GNU grep", "gnu"},
	{"Free Software Foundation", "gnu"}, {"https://www.gnu.org/software", "gnu"},
}

// flavour looks into the program's file; on macOS what the system brings is BSD's.
func (p *probe) flavour(name string) string {
	file := resolved(p.lookPath(name))
	if file == "" {
		return "none"
	}
	if runtime.GOOS == "darwin" && (strings.HasPrefix(file, "/usr/bin/") || strings.HasPrefix(file, "/bin/")) {
		return "bsd"
	}
	if base := filepath.Base(file); base == "busybox" || base == "toybox" {
		return base
	}
	f, err := os.OpenFile(file, openFlags, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 2<<20))
	if err != nil {
		return ""
	}
	text := string(b)
	for _, fl := range flavours {
		if strings.Contains(text, fl.word) {
			return fl.name
		}
	}
	return ""
}

// timeZone: what day is it, and in which zone? (row 18)
func (p *probe) timeZone() error {
	name, from := "", ""
	if v, set, known := p.env("TZ"); set && v != "" {
		name, from = strings.TrimPrefix(v, ":"), "TZ"
	} else if !known {
		return nil
	}
	if name == "" {
		from = "/etc/localtime"
		if to, err := os.Readlink(from); err == nil {
			if _, z, ok := strings.Cut(to, "zoneinfo/"); ok {
				name = z
			}
		}
	}
	zone := time.Local
	if name != "" {
		z, err := time.LoadLocation(name)
		if err != nil {
			p.put("zone", name)
			p.put("from", from)
			return nil // a rule of POSIX form, or no zone at all
		}
		zone = z
	}
	now := p.Now.In(zone)
	_, offset := now.Zone()
	p.put("zone", or(name, now.Location().String()))
	p.put("from", from)
	p.put("offset", now.Format("-07:00"))
	_, winter := time.Date(now.Year(), 1, 1, 0, 0, 0, 0, zone).Zone()
	_, summer := time.Date(now.Year(), 7, 1, 0, 0, 0, 0, zone).Zone()
	p.putBool("utc", offset == 0 && winter == 0 && summer == 0)
	p.put("date", now.Format("2006-01-02"))
	p.put("year", now.Format("2006"))
	p.put("weekday", now.Weekday().String())
	p.put("utc_date", p.Now.UTC().Format("2006-01-02"))
	return nil
}
