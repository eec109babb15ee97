package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"gettier.dev/gettierd/tui/words"
)

// build facts of this binary.
type buildFacts struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func facts() buildFacts {
	v := buildFacts{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if bi.Main.Version != "" {
		v.Version = bi.Main.Version
	}
	for _, s := range bi.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "which gettier this is",
		Example: "  gettier version\n  gettier version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := facts()
			p := newPrinter(a.out)
			if a.json {
				p.value(v)
				return nil
			}
			rev := words.Hash(v.Revision)
			if v.Modified {
				rev += " modified"
			}
			p.line("gettier %s  %s  %s %s/%s", v.Version, rev, v.Go, v.OS, v.Arch)
			return nil
		},
	}
}
