// Command conditiontable writes docs/conditions.md: every condition, reason and
// event of the controller, what it means and what to do. It runs from the folder
// of package gateway, through go generate, and fails when the code has something
// that texts.yaml has not, or the other way round.
//
// Only the page belongs here. What is said, and when, is decided in package
// gateway and in the packages around it.
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"log"
	"os"
)

// The folders and files, as seen from package gateway.
const (
	root  = "../.."
	cases = "testdata/*.status.golden.yaml"
	page  = "../../docs/conditions.md"
)

//go:embed head.md
var head string

//go:embed texts.yaml
var written []byte

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatalf("conditiontable: %v", err)
	}
}

func run() error {
	t, err := readTexts(written)
	if err != nil {
		return fmt.Errorf("read the texts: %w", err)
	}
	c, err := readCode(root)
	if err != nil {
		return fmt.Errorf("read the code: %w", err)
	}
	said, err := readCases(cases)
	if err != nil {
		return fmt.Errorf("read the golden cases: %w", err)
	}
	if err := errors.Join(t.compare(c), t.compareCases(said), t.checkTests(root)); err != nil {
		return fmt.Errorf("test/conditiontable/texts.yaml is not complete:\n%w", err)
	}
	return os.WriteFile(page, []byte(head+t.page()), 0o644)
}
