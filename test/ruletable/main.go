// Command ruletable writes docs/rules.md: which golden case of internal/gateway
// pins down which rule. It runs from the folder of package gateway, through go
// generate.
//
// Only the listing belongs here; what the cases say is compared by the tests of
// package gateway.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	cases  = "testdata/*.in.yaml"
	folder = "../internal/gateway/" // as seen from the table
	table  = "../../docs/rules.md"
	intro  = `# Rules and their cases

Which case pins down which rule. Each case is a manifest; beside it stand the document and the statuses that it gives, or
the error with which it is refused. This page is made from the first lines of the cases by ` + "`make generate`" + `.
`
)

// sections are the parts of the table, in order, by the word with which a
// case's rule begins.
var sections = []struct{ word, title string }{
	{"1", "Which objects are ours, which listeners take part"},
	{"2", "Merging and precedence"},
	{"3", "Conflicts"},
	{"4", "A listener's other conditions"},
	{"5", "Summaries"},
	{"6", "Routes"},
	{"7", "From routes to ingress rules"},
	{"settings", "Settings of the class and of the Gateway"},
	{"seed", "Examples of other documents, as written and completed"},
}

// header is a case's first line: the section and the rule.
var header = regexp.MustCompile(`^# rule: (\S+) (.+)$`)

var escape = strings.NewReplacer(`\`, `\\`, `|`, `\|`, `*`, `\*`, `_`, `\_`, `<`, `\<`)

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatalf("ruletable: %v", err)
	}
}

func run() error {
	files, err := filepath.Glob(cases)
	if err != nil || len(files) == 0 {
		return fmt.Errorf("find the cases: no file %s", cases)
	}
	rows := map[string]string{}
	for _, file := range files {
		section, row, err := read(file)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		rows[section] += row
	}
	text := intro
	for _, s := range sections {
		text += fmt.Sprintf("\n## %s\n\n| Rule | Case |\n|---|---|\n%s", s.title, rows[s.word])
		delete(rows, s.word)
	}
	for section := range rows {
		return fmt.Errorf("there is no section %q", section)
	}
	return os.WriteFile(table, []byte(text), 0o644)
}

// read returns the section of a case and its row of the table.
func read(file string) (section, row string, err error) {
	opened, err := os.Open(file)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = opened.Close() }() // it was only read
	line, err := bufio.NewReader(opened).ReadString('\n')
	if err != nil {
		return "", "", err
	}
	fields := header.FindStringSubmatch(strings.TrimSpace(line))
	if fields == nil {
		return "", "", fmt.Errorf(`the first line is not "# rule: <section> <rule>" but %q`, line)
	}
	name := strings.TrimSuffix(path.Base(file), ".in.yaml")
	return fields[1], fmt.Sprintf("| %s | [%s](%s) |\n", escape.Replace(fields[2]), name, folder+file), nil
}
