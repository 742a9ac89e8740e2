package docs

import (
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/tunnel-gateway/tunnel-gateway/"

var (
	diagram = regexp.MustCompile("(?ms)^```mermaid\n(.*?)^```$")
	box     = regexp.MustCompile(`(\w+)\["([^"<]+)<br/>[^"]*"\]`)
	arrow   = regexp.MustCompile(`^(\w+) --> (\w+)$`)
	// frame is what a diagram has beside boxes and arrows.
	frame = regexp.MustCompile(`^(flowchart TD|subgraph \w+ \[[^]]*\]|end|\w*)$`)
)

// The diagram has a box for every package of the product, and an arrow for
// every import that does not follow from others.
func TestArchitectureIsWhatThereIs(t *testing.T) {
	boxes, arrows := drawn(t)
	imports := importsOfProduct(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(imports)), slices.Sorted(slices.Values(boxes))); diff != "" {
		t.Errorf("packages (-there +drawn):\n%s", diff)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(reduced(imports))), slices.Sorted(slices.Values(arrows))); diff != "" {
		t.Errorf("imports that do not follow from others (-there +drawn):\n%s", diff)
	}
}

// drawn returns the packages and the imports of the diagram, each import as
// "from -> to".
func drawn(t *testing.T) (boxes, arrows []string) {
	t.Helper()
	found := diagram.FindAllStringSubmatch(page(t, "architecture.md"), -1)
	if len(found) != 1 {
		t.Fatalf("%d diagrams, want one", len(found))
	}
	packages := map[string]string{}
	for _, match := range box.FindAllStringSubmatch(found[0][1], -1) {
		boxes = append(boxes, match[2])
		packages[match[1]] = match[2]
	}
	for line := range strings.Lines(box.ReplaceAllString(found[0][1], "$1")) {
		line = strings.TrimSpace(line)
		if frame.MatchString(line) {
			continue
		}
		ends := arrow.FindStringSubmatch(line)
		if ends == nil || packages[ends[1]] == "" || packages[ends[2]] == "" {
			t.Errorf("%q is neither a box nor an arrow between two", line)
			continue
		}
		arrows = append(arrows, packages[ends[1]]+" -> "+packages[ends[2]])
	}
	return boxes, arrows
}

// importsOfProduct returns which packages of the product each one imports,
// tests aside.
func importsOfProduct(t *testing.T) map[string][]string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		packages := ofProduct(strings.Fields(line))
		if name := packages[0]; !strings.HasPrefix(name, "test/") {
			imports[name] = packages[1:]
		}
	}
	return imports
}

// ofProduct returns those of the packages that are in this module, by their
// folders.
func ofProduct(packages []string) []string {
	var folders []string
	for _, path := range packages {
		if folder, ok := strings.CutPrefix(path, module); ok {
			folders = append(folders, folder)
		}
	}
	return folders
}

// reduced returns the imports that are not there by way of another package.
func reduced(imports map[string][]string) map[string]bool {
	direct := map[string]bool{}
	for from, all := range imports {
		for _, to := range all {
			byAnother := slices.ContainsFunc(all, func(over string) bool { return over != to && reaches(imports, over, to) })
			if !byAnother {
				direct[from+" -> "+to] = true
			}
		}
	}
	return direct
}

func reaches(imports map[string][]string, from, to string) bool {
	return slices.ContainsFunc(imports[from], func(next string) bool { return next == to || reaches(imports, next, to) })
}
