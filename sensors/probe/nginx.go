package probe

import (
	"fmt"
	"path/filepath"
	"strings"
)

// maxConfigs bounds how many files one configuration may be made of.
const maxConfigs = 2000

// nginxFiles prints the files of an nginx configuration as `nginx -T` does, each
// behind its mark, without nginx: to check a configuration that one opens its
// pid file and its logs for writing, which a person's own user may not. A file
// that cannot be read fails the whole, since it might be the one that counts.
func (p *probe) nginxFiles() error {
	main := p.param("conf")
	if !filepath.IsAbs(main) {
		return fmt.Errorf("%w: no configuration is named", ErrNone)
	}
	queue, seen := []string{main}, map[string]bool{main: true}
	for len(queue) > 0 {
		if len(seen) > maxConfigs {
			return fmt.Errorf("%w: more than %d files", ErrCap, maxConfigs)
		}
		name := queue[0]
		queue = queue[1:]
		text, err := p.outside(name)
		if err != nil {
			return err
		}
		p.out.WriteString("# configuration file " + name + ":\n" + text + "\n")
		patterns, err := nginxIncludes(text)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		for _, pattern := range patterns {
			if !filepath.IsAbs(pattern) {
				pattern = filepath.Join(filepath.Dir(main), pattern)
			}
			found := []string{pattern}
			if strings.ContainsAny(pattern, "*?[") {
				if found, err = filepath.Glob(pattern); err != nil {
					return fmt.Errorf("include %s: %w", pattern, err)
				}
			}
			for _, f := range found {
				if !seen[f] {
					seen[f] = true
					queue = append(queue, f)
				}
			}
		}
	}
	return nil
}

// nginxIncludes lists what a configuration file includes.
func nginxIncludes(text string) (patterns []string, err error) {
	var words []string
	var word strings.Builder
	in, quote := false, byte(0) // inside of a word, and of quotes
	end := func() {
		if in {
			words = append(words, word.String())
			word.Reset()
			in = false
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			word.WriteByte(text[i])
			in = true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case (c == '"' || c == '\'') && !in:
			quote, in = c, true
		case c == '#' && !in:
			n := strings.IndexByte(text[i:], '\n')
			if n < 0 {
				n = len(text) - i
			}
			i += n - 1
		case c == ';', c == '{', c == '}':
			if c == '{' && strings.HasSuffix(word.String(), "$") { // ${name}
				word.WriteByte(c)
				continue
			}
			if c == '}' && strings.Contains(word.String(), "${") && !strings.Contains(word.String(), "}") {
				word.WriteByte(c)
				continue
			}
			end()
			if c == ';' && len(words) == 2 && words[0] == "include" {
				patterns = append(patterns, words[1])
			}
			words = nil
		case c == ' ', c == '\t', c == '\n', c == '\r':
			end()
		default:
			word.WriteByte(c)
			in = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quoted word has no end")
	}
	return patterns, nil
}
