package externaldns

import (
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
	for _, pattern := range []string{"/external-dns/*.yaml", "/external-dns/helm/*.yaml"} {
		files, err := filepath.Glob(samples + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
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
