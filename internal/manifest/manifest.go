// Package manifest reads Kubernetes manifests the way an API server would,
// without one.
//
// It belongs here what happens to a document between a file and a typed object:
// splitting, parsing, expanding lists, choosing the namespace, converting to
// the stored version, pruning, defaulting, and validation by schema and rules.
// What the objects mean does not: nothing here follows a reference from one
// object to another.
//
// Gateway API objects are held against the definitions in the folder crds, and
// TunnelConfigurations against ours in config/crd, by the libraries that the
// API server itself uses. The definitions of the core kinds are not to be had
// as data; their documents are decoded strictly, and of the API server's
// defaults and checks only those are made that a reader of the objects depends
// on.
//
// Two things differ from an API server on purpose: what a file says of status,
// uid, generation and creationTimestamp is kept, because the file may come from
// a cluster, and the generation is not counted; and every object needs a name,
// because a generated one would differ from run to run.
package manifest

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options says how manifests are read.
type Options struct {
	// Namespace is given to namespaced objects that name none; "default" when
	// empty.
	Namespace string
	// Stdin is what the path "-" reads; the process's own input when nil.
	Stdin io.Reader
}

// Set is what was read.
type Set struct {
	// Objects stand in the order in which they were read, the items of a list
	// in its place. Each is of a type that [Scheme] knows and says its
	// apiVersion and kind.
	Objects []client.Object
	// Skipped counts the documents of other kinds, sorted by group and kind.
	Skipped []Skipped
	// Folders are the subdirectories that were not read, as paths.
	Folders []string
}

// Skipped counts the documents of one kind that is not read.
type Skipped struct {
	schema.GroupKind
	Count int
}

// Read reads every path: a file, a directory (its *.yaml, *.yml and *.json
// files in the order of their names, without its subdirectories) or "-".
//
// A file holds YAML documents, or JSON values one after the other. Documents
// are counted from 1 as YAML counts them: every "---" begins one, comments
// before the first belong to the first, and an empty document between two
// markers counts, but is no mistake.
//
// When anything is wrong, the error is [Errors] and holds all that was found,
// in the order of the documents, and the Set is nil. The validation rules of an
// object whose fields have wrong types, lack required values or are too long
// are not checked; they may find more once that is mended.
func Read(paths []string, o Options) (*Set, error) {
	r := newReader(o)
	for _, path := range paths {
		r.path(path)
	}
	return r.result()
}

// Parse reads the content of one file, as [Read] does. The name stands in
// errors only.
func Parse(name string, data []byte, o Options) (*Set, error) {
	r := newReader(o)
	r.file(name, data)
	return r.result()
}

// path reads what one argument names.
func (r *reader) path(path string) {
	if path == "-" {
		data, err := io.ReadAll(r.options.Stdin)
		r.content("stdin", data, err)
		return
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		r.readFile(path)
		return
	}
	r.directory(path)
}

func (r *reader) directory(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		r.content(dir, nil, err)
		return
	}
	found := false
	for _, entry := range entries {
		if entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") {
			r.folders = append(r.folders, filepath.Join(dir, entry.Name()))
		}
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			continue
		}
		found = true
		r.readFile(filepath.Join(dir, entry.Name()))
	}
	if !found {
		r.fail(Place{File: dir}, "", errors.New("the directory holds no *.yaml, *.yml or *.json file"))
	}
}

func (r *reader) readFile(path string) {
	data, err := os.ReadFile(path) //nolint:gosec // the user names the files to read
	r.content(path, data, err)
}

// content takes what a read returned.
func (r *reader) content(name string, data []byte, err error) {
	if err == nil {
		r.file(name, data)
		return
	}
	// The place names the path already.
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	r.fail(Place{File: name}, "", err)
}

// result closes the reading.
func (r *reader) result() (*Set, error) {
	r.judgeAll()
	var errs Errors
	set := &Set{Folders: r.folders}
	for _, e := range r.found {
		for _, err := range e.errs {
			errs = append(errs, &Error{Place: e.at, Object: e.name, Err: err})
		}
		if e.object != nil {
			set.Objects = append(set.Objects, e.object)
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	for kind, count := range r.skipped {
		set.Skipped = append(set.Skipped, Skipped{GroupKind: kind, Count: count})
	}
	slices.SortFunc(set.Skipped, func(a, b Skipped) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return set, nil
}
