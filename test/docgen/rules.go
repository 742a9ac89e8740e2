package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/test/docgen/markdown"
)

const (
	// caseInputs are the manifests of the golden cases, relative to package gateway.
	caseInputs = "testdata/*.in.yaml"
	// gatewayDirectory is the directory of package gateway, relative to the page.
	gatewayDirectory = "../internal/gateway/"
)

//go:embed rules.head.md
var rulesHead string

// ruleSections are the sections of the page in their order. A golden case names
// its section by the key.
var ruleSections = []struct{ key, title string }{
	{"1", "Managed objects and allowed ListenerSets"},
	{"2", "Merging and precedence"},
	{"3", "Conflicts"},
	{"4", "Other conditions of a listener"},
	{"5", "Status of Gateways and ListenerSets"},
	{"6", "Routes"},
	{"7", "Ingress rules of routes"},
	{"envoy", "Routes with the data plane Envoy"},
	{"settings", "Settings of the GatewayClass and the Gateway"},
	{"seed", "Examples from the documentation of other projects, unchanged and completed"},
}

// caseHeader matches the first line of a golden case: the section and the rule.
var caseHeader = regexp.MustCompile(`^# rule: (\S+) (.+)$`)

// rulesPages returns the page that lists the golden case of each rule. It reads
// the files of package gateway in the current directory.
func rulesPages() ([]page, error) {
	files, err := filepath.Glob(caseInputs)
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("find the golden cases: no file matches %s", caseInputs)
	}
	tables := map[string]*markdown.Table{}
	for _, section := range ruleSections {
		tables[section.key] = markdown.NewTable("Rule", "Case")
	}
	for _, file := range files {
		line, err := firstLine(file)
		if err != nil {
			return nil, err
		}
		header := caseHeader.FindStringSubmatch(line)
		if header == nil {
			return nil, fmt.Errorf(`%s: the first line must be "# rule: <section> <rule>", got %q`, file, line)
		}
		t := tables[header[1]]
		if t == nil {
			return nil, fmt.Errorf("%s: section %q does not exist", file, header[1])
		}
		name := strings.TrimSuffix(path.Base(file), ".in.yaml")
		t.Add(markdown.Escape(header[2]), fmt.Sprintf("[%s](%s)", name, gatewayDirectory+file))
	}
	text := rulesHead
	for _, section := range ruleSections {
		text += "\n## " + section.title + "\n\n" + tables[section.key].String()
	}
	return []page{{"rules.md", text}}, nil
}

// firstLine returns the first line of a file without white space around it.
func firstLine(file string) (string, error) {
	opened, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = opened.Close() }() // the file is only read
	line, err := bufio.NewReader(opened).ReadString('\n')
	return strings.TrimSpace(line), err
}
