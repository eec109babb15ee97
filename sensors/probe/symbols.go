package probe

import (
	"fmt"
	"strings"

	"gettier.dev/gettierd/sensors/symbols"
)

// symbols: does this API exist in what is installed? (row 10)
func (p *probe) symbols() error {
	symbol, pkg := p.param("symbol"), p.param("package")
	switch {
	case symbol == "":
		return fmt.Errorf("%w: no symbol was named", ErrNone)
	case pkg != "" && !strings.HasPrefix(symbol, pkg+"."):
		symbol = pkg + "." + symbol
	case pkg == "" && !strings.Contains(symbol, "."):
		return fmt.Errorf("%w: no package was named", ErrNone)
	}
	a := symbols.Resolve(p.ctx, symbols.Where{Top: p.Dir, Cwd: p.Cwd, Home: p.Home, Env: p.Env}, symbol, p.param("language"))
	if err := p.ctx.Err(); err != nil {
		return err
	}
	p.put("symbol", symbol)
	p.put("presence", a.Presence.String())
	switch a.Presence {
	case symbols.Exists:
		p.put("exists", "yes")
	case symbols.Absent:
		p.put("exists", "no")
	case symbols.Unknown: // said in why
	}
	p.put("language", a.Language)
	p.put("package", a.Package)
	p.put("version", a.Version)
	p.put("place", a.Place)
	p.put("nearest", a.Nearest)
	p.put("why", a.Why)
	return nil
}
