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
		t.Fatalf("only %d pages were found", len(all))
	}
	return all
}

// TestLinks: every link to a file of the repository finds it, and the heading in
// it; every other one is a URL with https.
func TestLinks(t *testing.T) {
	byPath := map[string]*Page{}
	for _, page := range pages(t) {
		byPath[page.Path] = page
	}
	for _, page := range byPath {
		for _, link := range page.Links() {
			if problem := broken(page, link, byPath); problem != "" {
				t.Errorf("%s: link %s: %s", page.Path, link, problem)
			}
		}
	}
}

// broken says what is wrong with a link, or nothing.
func broken(page *Page, link string, pages map[string]*Page) string {
	u, err := url.Parse(link)
	switch {
	case err != nil:
		return err.Error()
	case u.Scheme == "https" && u.Host != "":
		return ""
	case u.Scheme != "" || u.Host != "" || strings.HasPrefix(u.Path, "/"):
		return "neither a URL with https nor a path from here"
	}
	target := page.Path
	if u.Path != "" {
		target = filepath.Join(filepath.Dir(page.Path), u.Path)
	}
	if _, err := os.Stat(filepath.Join(root, target)); err != nil {
		return "there is no " + target
	}
	if u.Fragment == "" {
		return ""
	}
	if to := pages[target]; to == nil || !to.Anchors()[u.Fragment] {
		return "there is no such heading"
	}
	return ""
}
