// Command docgen writes the reference pages in docs that are generated from the
// code:
//
//	go run ../../test/docgen fields|flags|metrics|rules
//
// go generate runs it from the package that the page describes, because some generators
// read files from that package. A generator adds only a page's head and its tables; the
// table texts come from the code.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// root is the repository root, relative to the packages that run docgen.
	root = "../.."
	// docs is where the pages are.
	docs = root + "/docs"
)

// page is a generated page.
type page struct {
	// name is the file name in docs.
	name string
	text string
}

// generators maps each command argument to the function that generates the pages.
func generators() map[string]func() ([]page, error) {
	return map[string]func() ([]page, error){
		"fields":  fieldsPages,
		"flags":   flagsPages,
		"metrics": metricsPages,
		"rules":   rulesPages,
	}
}

func main() {
	if err := run(os.Args[1:], docs); err != nil {
		fmt.Fprintf(os.Stderr, "docgen: %v\n", err)
		os.Exit(1)
	}
}

// run writes the pages that the arguments name to the directory.
func run(arguments []string, directory string) error {
	all := generators()
	if len(arguments) != 1 || all[arguments[0]] == nil {
		names := strings.Join(slices.Sorted(maps.Keys(all)), "|")
		return fmt.Errorf("expected the name of one generator, got %q\nUsage: go run ../../test/docgen %s", arguments, names)
	}
	pages, err := all[arguments[0]]()
	if err != nil {
		return fmt.Errorf("generate %s: %w", arguments[0], err)
	}
	for _, p := range pages {
		if err := os.WriteFile(filepath.Join(directory, p.name), []byte(p.text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
