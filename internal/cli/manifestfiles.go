package cli

import (
	"bytes"
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

// manifestFiles reads manifests again only after the files have changed. Standard input and
// other pipes are read once.
type manifestFiles struct {
	paths     []string
	recursive bool
	stdin     []byte

	mu      sync.Mutex
	version string
	options manifest.Options
	set     *manifest.Set
	err     error
}

// read returns what the files contain. The caller can modify the objects.
func (f *manifestFiles) read(o manifest.Options) (*manifest.Set, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o.Stdin = nil
	if now := f.fingerprint(); now != f.version || o != f.options || f.set == nil && f.err == nil {
		f.version, f.options = now, o
		o.Stdin = bytes.NewReader(f.stdin)
		f.set, f.err = manifest.Read(f.paths, o)
	}
	if f.err != nil {
		return nil, f.err
	}
	return copySet(f.set), nil
}

// changed reports whether the files differ from those with the fingerprint.
func (f *manifestFiles) changed(since string) bool { return f.fingerprint() != since }

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

// fingerprint identifies the versions of the files by their modes, sizes and times. It is
// constant if one of them is a pipe, such as `<(helm template …)`, which cannot be read again.
func (f *manifestFiles) fingerprint() string {
	var b strings.Builder
	for _, root := range f.paths {
		if info, err := os.Stat(root); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
			return "pipe"
		}
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && path != root && !f.recursive {
				return filepath.SkipDir
			}
			writeVersion(&b, path)
			return nil
		})
	}
	return b.String()
}

// writeVersion writes what identifies a file's version. It follows links, such as those of a
// mounted ConfigMap.
func writeVersion(b *strings.Builder, path string) {
	info, err := os.Stat(path)
	if err != nil {
		fmt.Fprintf(b, "%s %v\n", path, err)
		return
	}
	fmt.Fprintf(b, "%s %s %d %d\n", path, info.Mode(), info.Size(), info.ModTime().UnixNano())
}
