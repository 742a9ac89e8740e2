package externaldns

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// yamlBlocks finds what the guide shows of manifests.
var yamlBlocks = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestGuideQuotesSamples: what a user copies from the guide is what was tested.
func TestGuideQuotesSamples(t *testing.T) {
	guide, err := os.ReadFile(root + "/docs/guides/external-dns.md")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	err = filepath.WalkDir(samples+"/external-dns", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	blocks := yamlBlocks.FindAllStringSubmatch(string(guide), -1)
	if len(blocks) == 0 {
		t.Error("the guide shows no manifest")
	}
	for _, block := range blocks {
		if !strings.Contains(all.String(), block[1]) {
			t.Errorf("no sample holds this part of the guide:\n%s", block[1])
		}
	}
}
