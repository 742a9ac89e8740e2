// Command flagtable writes docs/flags.md: every flag of the controller, from its
// definition. It runs from the folder of package config, through go generate.
//
// Only the page belongs here: its head is written by hand and stands beside this
// file; what a flag means is said where it is defined.
package main

import (
	_ "embed"
	"fmt"
	"log"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
)

const page = "../../docs/flags.md"

//go:embed head.md
var head string

func main() {
	log.SetFlags(0)
	var c config.Config
	if err := os.WriteFile(page, []byte(head+tables(c.Flags())), 0o644); err != nil {
		log.Fatalf("flagtable: %v", err)
	}
}

// tables are the groups of flags, one table each.
func tables(groups []config.Group) string {
	var b strings.Builder
	for _, group := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n| Flag | Variable | Meaning | Default |\n|---|---|---|---|\n", group.Title)
		group.Flags.VisitAll(func(f *pflag.Flag) { b.WriteString(row(f)) })
	}
	return b.String()
}

// told is a default that the usage tells, because the flag itself has none.
var told = regexp.MustCompile(` \(default ([^)]+)\)$`)

var escape = strings.NewReplacer(`|`, `\|`, `*`, `\*`, `<`, `\<`)

func row(f *pflag.Flag) string {
	value, usage := pflag.UnquoteUsage(f)
	standard := ""
	if f.DefValue != "" {
		standard = "`" + f.DefValue + "`"
	}
	if found := told.FindStringSubmatch(usage); found != nil {
		standard, usage = escape.Replace(found[1]), strings.TrimSuffix(usage, found[0])
	}
	flag := strings.TrimSpace("--" + f.Name + " " + value)
	return fmt.Sprintf("| `%s` | `%s` | %s | %s |\n", flag, config.EnvName(f.Name), escape.Replace(usage), standard)
}
