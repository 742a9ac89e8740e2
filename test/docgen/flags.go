package main

import (
	_ "embed"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/test/docgen/markdown"
)

//go:embed flags.head.md
var flagsHead string

// flagsPages returns the page that documents the controller's flags.
func flagsPages() ([]page, error) {
	var c config.Config
	return []page{{"flags.md", flagsHead + flagTables(c.Flags())}}, nil
}

// flagTables returns a table for each flag group.
func flagTables(groups []config.Group) string {
	var b strings.Builder
	for _, group := range groups {
		t := markdown.NewTable("Flag", "Variable", "Meaning", "Default")
		group.Flags.VisitAll(func(f *pflag.Flag) { t.Add(flagRow(f)...) })
		b.WriteString("\n## " + group.Title + "\n\n" + t.String())
	}
	return b.String()
}

// defaultInUsage matches a default that a flag's usage states.
var defaultInUsage = regexp.MustCompile(` \(default ([^)]+)\)$`)

func flagRow(f *pflag.Flag) []string {
	value, usage := pflag.UnquoteUsage(f)
	standard := ""
	if f.DefValue != "" {
		standard = markdown.Code(f.DefValue)
	}
	if found := defaultInUsage.FindStringSubmatch(usage); found != nil {
		standard, usage = markdown.Escape(found[1]), strings.TrimSuffix(usage, found[0])
	}
	flag := strings.TrimSpace("--" + f.Name + " " + value)
	return []string{markdown.Code(flag), markdown.Code(config.EnvName(f.Name)), markdown.Escape(usage), standard}
}
