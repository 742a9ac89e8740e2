package main

import (
	_ "embed"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
)

//go:embed flags.head.md
var flagsHead string

// flagsPages returns the page with the flags of the controller.
func flagsPages() ([]page, error) {
	var c config.Config
	return []page{{"flags.md", flagsHead + flagTables(c.Flags())}}, nil
}

// flagTables returns a table for each group of flags.
func flagTables(groups []config.Group) string {
	var b strings.Builder
	for _, group := range groups {
		t := newTable("Flag", "Variable", "Meaning", "Default")
		group.Flags.VisitAll(func(f *pflag.Flag) { t.add(flagRow(f)...) })
		b.WriteString("\n## " + group.Title + "\n\n" + t.String())
	}
	return b.String()
}

// defaultInUsage matches a default that the usage of a flag states.
var defaultInUsage = regexp.MustCompile(` \(default ([^)]+)\)$`)

func flagRow(f *pflag.Flag) []string {
	value, usage := pflag.UnquoteUsage(f)
	standard := ""
	if f.DefValue != "" {
		standard = code(f.DefValue)
	}
	if found := defaultInUsage.FindStringSubmatch(usage); found != nil {
		standard, usage = escape(found[1]), strings.TrimSuffix(usage, found[0])
	}
	flag := strings.TrimSpace("--" + f.Name + " " + value)
	return []string{code(flag), code(config.EnvName(f.Name)), escape(usage), standard}
}
