package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/cli"
	"github.com/tunnel-gateway/tunnel-gateway/test/docgen/markdown"
)

const (
	// caseInputs are the golden cases' manifests, relative to package gateway.
	caseInputs = "testdata/*.in.yaml"
	// gatewayDirectory is where package gateway is, relative to the page.
	gatewayDirectory = "../internal/gateway/"
)

//go:embed rules.head.md
var rulesHead string

// ruleSections are the sections on the page, in order. A golden case names its section by
// the key. The page shows what plan prints for each of the examples, which are golden
// case names.
var ruleSections = []struct {
	key, title string
	examples   []string
}{
	{"1", "Managed objects and allowed ListenerSets", []string{"set-not-allowed-selector"}},
	{"2", "Merging and precedence", []string{"precedence-oldest-set"}},
	{"3", "Conflicts", []string{"one-hostname-one-owner", "certificate-unresolved-keeps-claim"}},
	{"4", "Other listener conditions", nil},
	{"5", "Status of Gateways and ListenerSets", nil},
	{"6", "Routes", []string{"route-hostname-intersection", "match-omitted-falls-through", "action-returns-500"}},
	{"7", "Ingress rules", []string{"order-path-types", "isolation-404-terminator"}},
	{"envoy", "Routes with the data plane Envoy", nil},
	{"settings", "Settings in the GatewayClass and the Gateway", nil},
	{"access", "Applications of Cloudflare Access", nil},
	{"seed", "Examples from other projects, as written and completed", nil},
}

// caseHeader matches the first line in a golden case: the section and the rule.
var caseHeader = regexp.MustCompile(`^# rule: (\S+) (.+)$`)

// rulesPages returns the page that lists each rule with its golden case. It reads package
// gateway's files in the current directory.
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
		examples, err := planExamples(section.examples, files)
		if err != nil {
			return nil, err
		}
		text += examples
	}
	return []page{{"rules.md", text}}, nil
}

// planExamples returns the plan commands for the golden cases that are among the files,
// and what they print.
func planExamples(cases, files []string) (string, error) {
	var text strings.Builder
	for _, name := range cases {
		file := "testdata/" + name + ".in.yaml"
		if !slices.Contains(files, file) {
			continue
		}
		example, err := planExample(file)
		if err != nil {
			return "", err
		}
		text.WriteString(example)
	}
	return text.String(), nil
}

// planExample returns a plan command for a golden case and what it prints.
func planExample(file string) (string, error) {
	var out, problems bytes.Buffer
	streams := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &problems}
	if code := cli.Run(context.Background(), []string{"tunnel-gateway", "plan", "-f", file}, streams); code != 0 {
		return "", fmt.Errorf("plan of %s: status %d: %s", file, code, &problems)
	}
	return fmt.Sprintf("\n```sh\nbin/tunnel-gateway plan -f internal/gateway/%s\n```\n\n```text\n%s```\n", file, &out), nil
}

// firstLine returns a file's first line without white space around it.
func firstLine(file string) (string, error) {
	opened, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = opened.Close() }() // the file is only read
	line, err := bufio.NewReader(opened).ReadString('\n')
	return strings.TrimSpace(line), err
}
