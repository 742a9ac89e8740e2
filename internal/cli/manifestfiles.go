package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

// manifestFiles reads manifests again only after the files have changed. Standard input is read
// once.
type manifestFiles struct {
	paths []string
	stdin []byte

	mu          sync.Mutex
	fingerprint string
	options     manifest.Options
	set         *manifest.Set
	err         error
}

// read returns what the files contain. The caller can modify the objects.
func (f *manifestFiles) read(o manifest.Options) (*manifest.Set, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o.Stdin = nil
	if now := fingerprint(f.paths, o.Recursive); now != f.fingerprint || o != f.options || f.set == nil && f.err == nil {
		f.fingerprint, f.options = now, o
		o.Stdin = strings.NewReader(string(f.stdin))
		f.set, f.err = manifest.Read(f.paths, o)
	}
	if f.err != nil {
		return nil, f.err
	}
	return copySet(f.set), nil
}

// changed reports whether the files differ from what was read last.
func (f *manifestFiles) changed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fingerprint(f.paths, f.options.Recursive) != f.fingerprint
}

// copySet returns a copy whose objects can be modified.
func copySet(set *manifest.Set) *manifest.Set {
	copied := *set
	copied.Objects = make([]client.Object, len(set.Objects))
	for i, object := range set.Objects {
		copied.Objects[i] = object.DeepCopyObject().(client.Object)
	}
	copied.Unsupported = make([]*unstructured.Unstructured, len(set.Unsupported))
	for i, object := range set.Unsupported {
		copied.Unsupported[i] = object.DeepCopy()
	}
	return &copied
}

// fingerprint identifies the versions of the files by their sizes and times.
func fingerprint(paths []string, recursive bool) string {
	var b strings.Builder
	for _, root := range paths {
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				fmt.Fprintf(&b, "%s %v\n", path, err)
				return nil
			case entry.IsDir() && path != root && !recursive:
				return filepath.SkipDir
			}
			info, err := os.Stat(path) // follows links, such as those of a mounted ConfigMap
			if err != nil {
				fmt.Fprintf(&b, "%s %v\n", path, err)
				return nil
			}
			fmt.Fprintf(&b, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
			return nil
		})
	}
	return b.String()
}
