// Command wordlist reports terms that the project no longer uses, in Go comments,
// identifiers and strings, and in every line of its other text files. The list is
// words.yaml. It also checks the project's other rules for texts, each in a file named
// after the rule. It exits with status 1 when it finds a fault.
//
// Usage:
//
//	go run ./test/wordlist [directory]
package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed words.yaml
var words []byte

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	findings, err := run(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "wordlist:", err)
		os.Exit(2)
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	if len(findings) > 0 {
		os.Exit(1)
	}
}

// file is a text of the repository.
type file struct {
	path    string
	content []byte
}

// checks are the rules for texts. Each reports the faults in all files.
var checks = []func([]file) []finding{
	checkCommandNames,
	checkTableCells,
	checkPageLengths,
	checkDensity,
	checkTestNames,
}

// run checks the files in root that git tracks or would add.
func run(root string) ([]finding, error) {
	list, err := parseList(words)
	if err != nil {
		return nil, err
	}
	files, err := readFiles(root)
	if err != nil {
		return nil, err
	}
	findings := list.checkAll(files)
	for _, check := range checks {
		findings = append(findings, check(files)...)
	}
	return findings, nil
}

func readFiles(root string) ([]file, error) {
	command := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list files in %s: %w", root, err)
	}
	var files []file
	for path := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, path)) // #nosec G304 G703 -- a file of the repository
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			return nil, err
		}
		files = append(files, file{path, content})
	}
	return files, nil
}
