package docs

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

func TestIndexLinksToEveryPage(t *testing.T) {
	index := page(t, "README.md")
	directory := filepath.Join(root, "docs")
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		name, err := filepath.Rel(directory, path)
		if err != nil || name == "README.md" {
			return err
		}
		if !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not link to %s", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
