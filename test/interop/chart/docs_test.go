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
	installing = root + "/docs/install.md"
	upgrading  = root + "/docs/upgrade.md"
)

// page reads a page.
func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the blocks of code in a language, without their indentation.
func blocks(text, language string) []string {
	var all []string
	fenced := regexp.MustCompile("(?ms)^( *)```" + language + "\n(.*?)^ *```$")
	for _, found := range fenced.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll("\n"+found[2], "\n"+found[1], "\n"))
	}
	return all
}

// said is what a reader puts in place of what the pages leave open.
var said = strings.NewReplacer("<your registry>", "registry.example.com", "<account>", "account", "<cluster ID>", "west",
	"…/tunnel-gateway", "registry.example.com/tunnel-gateway", "accountID=…", "accountID=account", "clusterID=…", "clusterID=west", " … ", " ")

// TestDocumentedReleases renders what the pages say to install and to upgrade.
func TestDocumentedReleases(t *testing.T) {
	command := regexp.MustCompile(`(?m)^helm (install|upgrade) tunnel-gateway charts/tunnel-gateway (.*)$`)
	for path, want := range map[string]int{installing: 3, upgrading: 1, root + "/README.md": 1, chartDir + "/README.md": 1} {
		commands := command.FindAllStringSubmatch(strings.ReplaceAll(strings.Join(blocks(page(t, path), "sh"), "\n"), "\\\n", ""), -1)
		if len(commands) != want {
			t.Errorf("%s has %d commands, want %d", path, len(commands), want)
		}
		for _, found := range commands {
			words, _, _ := strings.Cut(said.Replace(found[2]), " #")
			arguments := strings.Fields(strings.ReplaceAll(words, "'", ""))
			if found[1] == "upgrade" && !slices.Contains(arguments, "--reset-then-reuse-values") {
				t.Errorf("%s: an upgrade loses values, or takes the old chart's: %s", path, found[0])
			}
			arguments = slices.DeleteFunc(arguments, func(a string) bool { return a == "--reset-then-reuse-values" })
			if out, err := helm(t, append([]string{"template", release, chartDir}, arguments...)...); err != nil {
				t.Errorf("%s: %s: %v\n%s", path, found[0], err, out)
			}
		}
	}
}

// Whoever installs has an image of their own: none is published.
func TestDocumentedInstallsNameAnImage(t *testing.T) {
	for _, path := range []string{installing, root + "/README.md", chartDir + "/README.md"} {
		text := strings.ReplaceAll(page(t, path), "\\\n", "")
		first := regexp.MustCompile(`(?m)^helm install tunnel-gateway .*$`).FindString(text)
		if !strings.Contains(first, "--set image.repository=") {
			t.Errorf("%s installs an image that there is not: %s", path, first)
		}
	}
}

// TestDocumentedValues renders every set of values in the page.
func TestDocumentedValues(t *testing.T) {
	sets := 0
	for _, block := range blocks(page(t, installing), "yaml") {
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
		t.Errorf("there are %d sets of values", sets)
	}
}

// TestDocumentedOverlay builds the overlay of the page, from the files here.
func TestDocumentedOverlay(t *testing.T) {
	var overlay string
	for _, block := range blocks(page(t, installing), "yaml") {
		if strings.Contains(block, "kind: Kustomization") {
			overlay = block
		}
	}
	const base = "https://github.com/tunnel-gateway/tunnel-gateway//config/default?ref=main"
	if !strings.Contains(overlay, base) {
		t.Fatalf("the overlay has another base:\n%s", overlay)
	}
	dir, err := os.MkdirTemp(configDir, ".overlay-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	text := said.Replace(strings.Replace(overlay, base, "../default", 1))
	if err := os.WriteFile(dir+"/kustomization.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	out, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, string(out))
	for flag, want := range map[string]string{
		"cloudflare-account-id": "account", "cloudflare-api-token-secret": "tunnel-gateway/cloudflare", "cluster-id": "west",
	} {
		if got := argument(t, all, flag); got != want {
			t.Errorf("--%s is %q", flag, got)
		}
	}
	if _, container := podOf(t, all); container["image"] != "registry.example.com/tunnel-gateway:v0.1.0" {
		t.Errorf("the image is %v", container["image"])
	}
}

// What kustomize deletes with the controller has no CRD, and no roles before it.
func TestDocumentedDeletion(t *testing.T) {
	folders := regexp.MustCompile(`kubectl delete .*-k 'https://github.com/tunnel-gateway/tunnel-gateway//config/(\w+)\?ref=main'`)
	var order []string
	for _, found := range folders.FindAllStringSubmatch(page(t, installing), -1) {
		order = append(order, found[1])
	}
	if !slices.Equal(order, []string{"controller", "rbac"}) {
		t.Errorf("it deletes %q", order)
	}
	for _, o := range defaults(t) {
		if folder := folderOf(o); (o["kind"] == "CustomResourceDefinition") == slices.Contains(order, folder) {
			t.Errorf("%s is in config/%s", o.id(), folder)
		}
	}
}
