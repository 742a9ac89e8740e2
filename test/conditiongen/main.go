// Command conditiongen writes the variables of package conditions, and the page that
// describes every condition and event, from the package's catalogue.yaml. go generate
// runs it from the package directory.
//
// It imports no product package, so that it runs even while the code uses a reason that
// is in the catalogue but has no variable yet.
package main

import (
	"errors"
	"fmt"
	"os"
)

// Paths are relative to package conditions.
const (
	catalogueFile = "catalogue.yaml"
	variablesFile = "zz_generated.catalogue.go"
	pageFile      = root + "/docs/conditions.md"
	// goldenStatuses are the expected statuses in all golden cases.
	goldenStatuses = "../gateway/testdata/*.status.golden.yaml"
	// root is the repository root.
	root = "../.."
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "conditiongen: %v\n", err)
		os.Exit(1)
	}
}

// run writes the variables and the page. It returns an error if the catalogue lacks a reason
// that a golden case reports, or says that a golden case has a reason that no case has.
func run() error {
	data, err := os.ReadFile(catalogueFile)
	if err != nil {
		return err
	}
	c, err := readCatalogue(data)
	if err != nil {
		return fmt.Errorf("%s: %w", catalogueFile, err)
	}
	variables, err := c.variables()
	if err != nil {
		return fmt.Errorf("%s: %w", catalogueFile, err)
	}
	if err := os.WriteFile(variablesFile, variables, 0o644); err != nil {
		return err
	}
	golden, err := readGoldenStatuses(goldenStatuses)
	if err != nil {
		return fmt.Errorf("read the golden cases: %w", err)
	}
	if err := errors.Join(c.compareGolden(golden), c.checkTests(root)); err != nil {
		return fmt.Errorf("%s does not match the tests:\n%w", catalogueFile, err)
	}
	return os.WriteFile(pageFile, []byte(conditionsHead+c.page()), 0o644)
}
