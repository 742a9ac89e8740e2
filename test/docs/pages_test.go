package docs

import (
	"bytes"
	"context"
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

// page returns the text of a page of docs.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shownFile finds a manifest with the link to its file on the line before it.
var shownFile = regexp.MustCompile("(?ms)(?:\\[([^]\n]+)\\]\\(\\.\\./([^)\n]+)\\):\n\n)?^```yaml\n(.*?)^```$")

// The quick start shows every file of its samples, each as it is.
func TestQuickStartShowsItsSamples(t *testing.T) {
	const folder = "config/samples/quickstart"
	files, err := filepath.Glob(filepath.Join(root, folder, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var shown []string
	for _, block := range shownFile.FindAllStringSubmatch(page(t, "quickstart.md"), -1) {
		name, link, manifest := block[1], block[2], block[3]
		if link == "" || name != link {
			t.Errorf("the path of its file does not stand above:\n%s", manifest)
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, link))
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(string(content), manifest); diff != "" {
			t.Errorf("%s is shown otherwise than it is (-file +page):\n%s", link, diff)
		}
		shown = append(shown, filepath.Join(root, link))
	}
	if diff := cmp.Diff(files, shown); diff != "" {
		t.Errorf("files of %s (-there +shown):\n%s", folder, diff)
	}
}

// The CRDs that the quick start installs are those that the controller was
// built with.
func TestQuickStartInstallsTheCRDsOfThisVersion(t *testing.T) {
	url := "https://github.com/kubernetes-sigs/gateway-api/releases/download/" + consts.BundleVersion + "/standard-install.yaml\n"
	if !strings.Contains(page(t, "quickstart.md"), url) {
		t.Errorf("the quick start does not install %s", url)
	}
}

// printed finds the commands of a shell block and what is shown as their
// output.
var printed = regexp.MustCompile("(?ms)^```sh\n([^`]*?)^```\n\n```text\n(.*?)^```$")

// session finds a call of plan with samples and what is shown as its output in
// one block.
var session = regexp.MustCompile("(?ms)^```console\n\\$ (tunnel-gateway plan -f config/samples[^\n]*)\n(.*?)^```$")

// What stands below a call of plan is what it prints.
func TestPlansPrintWhatIsShown(t *testing.T) {
	t.Chdir(root)
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var with []string
	for _, path := range append(pages, "README.md") {
		if comparePrinted(t, path) > 0 {
			with = append(with, filepath.Base(path))
		}
	}
	for _, name := range []string{"concepts.md", "plan.md", "quickstart.md", "troubleshooting.md"} {
		if !slices.Contains(with, name) {
			t.Errorf("%s shows no output", name)
		}
	}
}

// comparePrinted compares the outputs that the page shows, and returns how many
// there are.
func comparePrinted(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	compare := func(command, shown string) {
		if diff := cmp.Diff(run(t, command), shown); diff != "" {
			t.Errorf("%s: %s (-prints +shown):\n%s", path, command, diff)
		}
	}
	blocks, sessions := printed.FindAllStringSubmatch(string(text), -1), session.FindAllStringSubmatch(string(text), -1)
	for _, block := range blocks {
		lines := strings.Split(strings.TrimSpace(block[1]), "\n")
		compare(lines[len(lines)-1], block[2])
	}
	for _, block := range sessions {
		compare("bin/"+block[1], block[2])
	}
	return len(blocks) + len(sessions)
}

// run returns what bin/tunnel-gateway prints.
func run(t *testing.T, command string) string {
	t.Helper()
	arguments := strings.Fields(command)
	if arguments[0] != "bin/tunnel-gateway" {
		t.Fatalf("%q is no command of ours", command)
	}
	var out, problems bytes.Buffer
	streams := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &problems}
	if code := cli.Run(context.Background(), arguments, streams); code != 0 {
		t.Errorf("%s: status %d, %s", command, code, &problems)
	}
	return out.String()
}
