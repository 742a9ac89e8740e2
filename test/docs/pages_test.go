package docs

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/gateway-api/pkg/consts"

	"github.com/tunnel-gateway/tunnel-gateway/internal/cli"
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// manifestBlock matches a manifest and the link to its file above it.
var manifestBlock = regexp.MustCompile("(?ms)(?:\\[([^]\n]+)\\]\\(\\.\\./([^)\n]+)\\):\n\n)?^```yaml\n(.*?)^```$")

func TestQuickStartShowsEverySampleFileUnchanged(t *testing.T) {
	const directory = "config/samples/quickstart"
	files, err := filepath.Glob(filepath.Join(root, directory, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var shown []string
	for _, block := range manifestBlock.FindAllStringSubmatch(page(t, "quickstart.md"), -1) {
		name, link, manifest := block[1], block[2], block[3]
		if link == "" || name != link {
			t.Errorf("the link to the file is missing above this manifest:\n%s", manifest)
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, link))
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(string(content), manifest); diff != "" {
			t.Errorf("the page differs from %s (-file +page):\n%s", link, diff)
		}
		shown = append(shown, filepath.Join(root, link))
	}
	if diff := cmp.Diff(files, shown); diff != "" {
		t.Errorf("files of %s (-directory +page):\n%s", directory, diff)
	}
}

func TestQuickStartInstallsTheBuiltInCRDs(t *testing.T) {
	// The controller is built with the version [consts.BundleVersion].
	url := "https://github.com/kubernetes-sigs/gateway-api/releases/download/" + consts.BundleVersion + "/standard-install.yaml\n"
	if !strings.Contains(page(t, "quickstart.md"), url) {
		t.Errorf("the quick start does not install %s", url)
	}
}

// shellBlock matches a shell block and the output below it.
var shellBlock = regexp.MustCompile("(?ms)^```sh\n([^`]*?)^```\n\n```text\n(.*?)^```$")

// liveProgram matches a command that needs a cluster or a tunnel, so that a test cannot
// repeat its output.
var liveProgram = regexp.MustCompile(`^(curl|for|kubectl (get|logs)) `)

func TestCommandsPrintTheOutputOnThePages(t *testing.T) {
	t.Chdir(root)
	pages, err := filepath.Glob("docs/*.md")
	guides, guidesErr := filepath.Glob("docs/guides/*.md")
	if err := errors.Join(err, guidesErr); err != nil {
		t.Fatal(err)
	}
	var withOutput []string
	for _, path := range slices.Concat(pages, guides, []string{"README.md"}) {
		if compareOutputs(t, path) > 0 {
			withOutput = append(withOutput, filepath.Base(path))
		}
	}
	for _, name := range []string{"access.md", "canary-and-blue-green.md", "concepts.md", "plan.md", "quickstart.md"} {
		if !slices.Contains(withOutput, name) {
			t.Errorf("%s shows no output of a command", name)
		}
	}
}

// compareOutputs runs the last command of each shell block with an output, compares the
// output with the page, and returns the number of commands.
func compareOutputs(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		lines := strings.Split(strings.TrimSpace(block[1]), "\n")
		command, shown := lines[len(lines)-1], block[2]
		if liveProgram.MatchString(lines[0]) {
			continue
		}
		if diff := cmp.Diff(run(t, command), shown); diff != "" {
			t.Errorf("%s: %s (-output +page):\n%s", path, command, diff)
		}
		compared++
	}
	return compared
}

// run runs the command, which must be bin/tunnel-gateway or the kubectl plugin, and
// returns its output.
func run(t *testing.T, command string) string {
	t.Helper()
	arguments := strings.Fields(strings.Replace(command, "kubectl tunnel-gateway ", "kubectl-tunnel_gateway ", 1))
	if !slices.Contains([]string{"bin/tunnel-gateway", "kubectl-tunnel_gateway"}, arguments[0]) {
		t.Fatalf("%q is not a tunnel-gateway command", command)
	}
	var out, problems bytes.Buffer
	streams := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &problems}
	if code := cli.Run(context.Background(), arguments, streams); code != 0 {
		t.Errorf("%s: status %d, %s", command, code, &problems)
	}
	return out.String()
}
