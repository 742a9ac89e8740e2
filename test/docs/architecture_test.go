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
		match := arrow.FindStringSubmatch(line)
		switch {
		case match == nil && !frame.MatchString(line):
			t.Errorf("%q is neither a box nor an arrow", line)
		case match == nil:
		case packages[match[1]] == "" || packages[match[2]] == "":
			t.Errorf("%q has an end without a box", line)
		default:
			arrows = append(arrows, packages[match[1]]+" -> "+packages[match[2]])
		}
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
		fields := strings.Fields(line)
		name := strings.TrimPrefix(fields[0], module)
		if strings.HasPrefix(name, "test/") {
			continue
		}
		imports[name] = nil
		for _, imported := range fields[1:] {
			if of, ok := strings.CutPrefix(imported, module); ok {
				imports[name] = append(imports[name], of)
			}
		}
	}
	return imports
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
