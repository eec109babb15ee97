package config

import (
	"fmt"
	"strings"
)

// Sample is a configuration file with every key as a comment at its default,
// for gettier init. Read back, it is the default configuration.
func Sample() []byte {
	var b strings.Builder
	b.WriteString("# Settings of gettierd. Every key is here at its default; take the # away to change one.\n")
	b.WriteString("# What loosens the guard waits for your approval: gettier config approve\n\nversion: 1\n")
	d := values(Default())
	var open []string
	for _, k := range Keys {
		if k.Name == "version" {
			continue
		}
		path := strings.Split(strings.Replace(k.Name, "*", DefaultOpenAIName, 1), ".")
		same := 0
		for same < len(open) && same < len(path)-1 && open[same] == path[same] {
			same++
		}
		if same == 0 {
			b.WriteByte('\n')
		}
		for i := same; i < len(path)-1; i++ {
			fmt.Fprintf(&b, "# %s%s:\n", strings.Repeat("  ", i), path[i])
		}
		open = path[:len(path)-1]
		v := d[strings.Join(path, ".")]
		text := display(k, v)
		switch {
		case k.Type == String && text == "":
			text = `""`
		case k.Type == Headers:
			text = "{}"
		}
		line := fmt.Sprintf("# %s%s: %s", strings.Repeat("  ", len(path)-1), path[len(path)-1], text)
		fmt.Fprintf(&b, "%-58s # %s%s\n", line, k.Doc, choices(k))
	}
	return []byte(b.String())
}

func choices(k Key) string {
	out := ""
	if len(k.Values) > 1 {
		out = " One of " + strings.Join(k.Values, ", ") + "."
	}
	if !k.Live {
		out += " Needs a restart."
	}
	return out
}
