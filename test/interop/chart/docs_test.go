package chart

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	installPage = root + "/docs/install.md"
	upgradePage = root + "/docs/upgrade.md"
)

// readPage returns a page's text.
func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// codeBlocks returns the code blocks in the language, without indentation.
func codeBlocks(text, language string) []string {
	var all []string
	fenced := regexp.MustCompile("(?ms)^( *)```" + language + "\n(.*?)^ *```$")
	for _, found := range fenced.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll("\n"+found[2], "\n"+found[1], "\n"))
	}
	return all
}

// placeholders replaces the placeholders on the pages with values.
var placeholders = strings.NewReplacer("<your registry>", "registry.example.com", "<account>", account, "<cluster ID>", "west",
	"…/tunnel-gateway", "registry.example.com/tunnel-gateway", "accountID=…", "accountID="+account, "clusterID=…", "clusterID=west", " … ", " ")

// TestDocumentedHelmCommandsRender renders the chart with the arguments on the pages.
func TestDocumentedHelmCommandsRender(t *testing.T) {
	command := regexp.MustCompile(`(?m)^helm (install|upgrade) tunnel-gateway charts/tunnel-gateway (.*)$`)
	for path, want := range map[string]int{installPage: 3, upgradePage: 1, root + "/README.md": 1, chartDir + "/README.md": 1} {
		commands := command.FindAllStringSubmatch(strings.ReplaceAll(strings.Join(codeBlocks(readPage(t, path), "sh"), "\n"), "\\\n", ""), -1)
		if len(commands) != want {
			t.Errorf("%s contains %d commands, want %d", path, len(commands), want)
		}
		for _, found := range commands {
			words, _, _ := strings.Cut(placeholders.Replace(found[2]), " #")
			arguments := strings.Fields(strings.ReplaceAll(words, "'", ""))
			if found[1] == "upgrade" && !slices.Contains(arguments, "--reset-then-reuse-values") {
				t.Errorf("%s: an upgrade without --reset-then-reuse-values loses values or keeps old defaults: %s", path, found[0])
			}
			arguments = slices.DeleteFunc(arguments, func(a string) bool { return a == "--reset-then-reuse-values" })
			if out, err := helm(t, append([]string{"template", release, chartDir}, arguments...)...); err != nil {
				t.Errorf("%s: %s: %v\n%s", path, found[0], err, out)
			}
		}
	}
}

// TestDocumentedInstallCommandsNameAnImage checks the first command on each page:
// no image is published, so the default cannot be installed.
func TestDocumentedInstallCommandsNameAnImage(t *testing.T) {
	for _, path := range []string{installPage, root + "/README.md", chartDir + "/README.md"} {
		text := strings.ReplaceAll(readPage(t, path), "\\\n", "")
		first := regexp.MustCompile(`(?m)^helm install tunnel-gateway .*$`).FindString(text)
		if !strings.Contains(first, "--set image.repository=") {
			t.Errorf("%s installs an image that does not exist: %s", path, first)
		}
	}
}

// TestDocumentedValuesRender renders the chart with each set of values on the page.
func TestDocumentedValuesRender(t *testing.T) {
	sets := 0
	for _, block := range codeBlocks(readPage(t, installPage), "yaml") {
		if strings.Contains(block, "kind: Kustomization") {
			continue
		}
		sets++
		file := t.TempDir() + "/values.yaml"
		if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := helm(t, "template", release, chartDir, "--values", file); err != nil {
			t.Errorf("%v\n%s\n%s", err, block, out)
		}
	}
	if sets != 2 {
		t.Errorf("the page contains %d sets of values, want 2", sets)
	}
}

// TestDocumentedOverlayBuilds builds the overlay on the page from the local files.
func TestDocumentedOverlayBuilds(t *testing.T) {
	var overlay string
	for _, block := range codeBlocks(readPage(t, installPage), "yaml") {
		if strings.Contains(block, "kind: Kustomization") {
			overlay = block
		}
	}
	const base = "https://github.com/tunnel-gateway/tunnel-gateway//config/default?ref=main"
	if !strings.Contains(overlay, base) {
		t.Fatalf("the overlay does not use %s:\n%s", base, overlay)
	}
	dir, err := os.MkdirTemp(configDir, ".overlay-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	text := placeholders.Replace(strings.Replace(overlay, base, "../default", 1))
	if err := os.WriteFile(dir+"/kustomization.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	result, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	out, err := result.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, string(out))
	for flag, want := range map[string]string{
		"cloudflare-account-id": account, "cloudflare-api-token-secret": "tunnel-gateway/cloudflare", "cluster-id": "west",
	} {
		if got := controllerFlag(t, all, flag); got != want {
			t.Errorf("--%s is %q, want %q", flag, got, want)
		}
	}
	if _, container := controllerPod(t, all); container["image"] != "registry.example.com/tunnel-gateway:v0.1.0" {
		t.Errorf("the image is %v, want registry.example.com/tunnel-gateway:v0.1.0", container["image"])
	}
}

// TestDocumentedDeletionKeepsTheCRDs checks that the commands on the page delete the
// controller before its roles, and never the CRDs.
func TestDocumentedDeletionKeepsTheCRDs(t *testing.T) {
	directories := regexp.MustCompile(`kubectl delete .*-k 'https://github.com/tunnel-gateway/tunnel-gateway//config/(\w+)\?ref=main'`)
	var order []string
	for _, found := range directories.FindAllStringSubmatch(readPage(t, installPage), -1) {
		order = append(order, found[1])
	}
	if !slices.Equal(order, []string{"controller", "rbac"}) {
		t.Errorf("the page deletes %q, want controller and rbac", order)
	}
	for _, o := range defaultObjects(t) {
		if directory := configSubdirectory(o); (o["kind"] == "CustomResourceDefinition") == slices.Contains(order, directory) {
			t.Errorf("config/%s contains %s", directory, o.id())
		}
	}
}
