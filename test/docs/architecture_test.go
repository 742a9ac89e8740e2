package docs

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const modulePrefix = "github.com/tunnel-gateway/tunnel-gateway/"

var (
	diagram = regexp.MustCompile("(?ms)^## Packages$.*?^```mermaid\n(.*?)^```$")
	box     = regexp.MustCompile(`(\w+)\["([^"<]+)<br/>[^"]*"\]`)
	arrow   = regexp.MustCompile(`^(\w+) --> (\w+)$`)
	// layout matches the diagram lines that contain no arrow.
	layout = regexp.MustCompile(`^(flowchart TD|subgraph \w+ \[[^]]*\]|end|\w*)$`)
)

func TestArchitectureDiagramMatchesTheImports(t *testing.T) {
	// The diagram has a box for every package in the product, and an arrow for every
	// import, except if another imported package also imports the package.
	boxes, arrows := parseDiagram(t)
	imports := productImports(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(imports)), slices.Sorted(slices.Values(boxes))); diff != "" {
		t.Errorf("packages (-code +diagram):\n%s", diff)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(transitiveReduction(imports))), slices.Sorted(slices.Values(arrows))); diff != "" {
		t.Errorf("imports without transitive ones (-code +diagram):\n%s", diff)
	}
}

func TestArchitectureDescribesEveryFolder(t *testing.T) {
	text := page(t, "architecture.md")
	for _, pattern := range []string{"internal/*", "provider/cloudflare", "test/*"} {
		folders, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(folders) == 0 {
			t.Fatal(folders, err)
		}
		for _, folder := range folders {
			row := fmt.Sprintf("\n| [%[1]s](../%[1]s) |", strings.TrimPrefix(filepath.ToSlash(folder), "../../"))
			if !strings.Contains(text, row) {
				t.Errorf("architecture.md describes no folder %s", folder)
			}
		}
	}
}

// parseDiagram returns the packages and the imports in the diagram, each import as
// "from -> to".
func parseDiagram(t *testing.T) (boxes, arrows []string) {
	t.Helper()
	found := diagram.FindAllStringSubmatch(page(t, "architecture.md"), -1)
	if len(found) != 1 {
		t.Fatalf("architecture.md has %d diagrams, want 1", len(found))
	}
	packages := map[string]string{}
	for _, match := range box.FindAllStringSubmatch(found[0][1], -1) {
		boxes = append(boxes, match[2])
		packages[match[1]] = match[2]
	}
	for line := range strings.Lines(box.ReplaceAllString(found[0][1], "$1")) {
		line = strings.TrimSpace(line)
		if layout.MatchString(line) {
			continue
		}
		ends := arrow.FindStringSubmatch(line)
		if ends == nil || packages[ends[1]] == "" || packages[ends[2]] == "" {
			t.Errorf("%q is neither a box nor an arrow between two boxes", line)
			continue
		}
		arrows = append(arrows, packages[ends[1]]+" -> "+packages[ends[2]])
	}
	return boxes, arrows
}

// productImports returns, for each package in the product except tests, the product's
// packages that it imports.
func productImports(t *testing.T) map[string][]string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		packages := productDirectories(strings.Fields(line))
		if name := packages[0]; !strings.HasPrefix(name, "test/") {
			imports[name] = packages[1:]
		}
	}
	// The diagram has no packages under test, which only these two can import.
	for _, name := range []string{"provider/fake", "provider/providertest"} {
		imports[name] = slices.DeleteFunc(imports[name], func(imported string) bool { return strings.HasPrefix(imported, "test/") })
	}
	return imports
}

// productDirectories returns the directories of the packages that are in the main module.
func productDirectories(packages []string) []string {
	var directories []string
	for _, path := range packages {
		if directory, ok := strings.CutPrefix(path, modulePrefix); ok {
			directories = append(directories, directory)
		}
	}
	return directories
}

// transitiveReduction returns the imports, as "from -> to", without an import of a
// package that another imported package also reaches.
func transitiveReduction(imports map[string][]string) map[string]bool {
	reduction := map[string]bool{}
	for from, all := range imports {
		for _, to := range all {
			indirect := slices.ContainsFunc(all, func(via string) bool { return via != to && reaches(imports, via, to) })
			if !indirect {
				reduction[from+" -> "+to] = true
			}
		}
	}
	return reduction
}

// reaches reports whether from imports to, directly or indirectly.
func reaches(imports map[string][]string, from, to string) bool {
	return slices.ContainsFunc(imports[from], func(next string) bool { return next == to || reaches(imports, next, to) })
}
