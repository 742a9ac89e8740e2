package docs

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func pages(t *testing.T) []*Page {
	t.Helper()
	all, err := Pages()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("found only %d pages", len(all))
	}
	return all
}

func TestLinksHaveExistingTargets(t *testing.T) {
	// A link to a file in the repository must have an existing target, including the
	// heading. Every other link must be an HTTPS URL.
	byPath := map[string]*Page{}
	for _, page := range pages(t) {
		byPath[page.Path] = page
	}
	for _, page := range byPath {
		for _, link := range page.Links() {
			if problem := linkProblem(page, link, byPath); problem != "" {
				t.Errorf("%s: link %s: %s", page.Path, link, problem)
			}
		}
	}
}

// linkProblem returns what is wrong with a link, or an empty string.
func linkProblem(page *Page, link string, pages map[string]*Page) string {
	u, err := url.Parse(link)
	switch {
	case err != nil:
		return err.Error()
	case u.Scheme == "https" && u.Host != "":
		return ""
	case u.Scheme != "" || u.Host != "" || strings.HasPrefix(u.Path, "/"):
		return "neither an HTTPS URL nor a relative path"
	}
	target := page.Path
	if u.Path != "" {
		target = filepath.Join(filepath.Dir(page.Path), u.Path)
	}
	if _, err := os.Stat(filepath.Join(root, target)); err != nil {
		return target + " does not exist"
	}
	if u.Fragment == "" {
		return ""
	}
	if to := pages[target]; to == nil || !to.Anchors()[u.Fragment] {
		return "the page has no such heading"
	}
	return ""
}
