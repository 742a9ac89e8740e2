// Package manifest reads Kubernetes manifests as an API server does, but without an API
// server.
//
// It contains all steps between a file and a typed object: splitting a file into
// documents, parsing, expanding lists, setting the namespace, converting to the stored
// version, pruning, defaulting, and validation by schema and CEL rules. It does not
// interpret the objects or follow references between them.
//
// The definitions in the directory crds validate Gateway API objects (with
// [Options.Experimental], those in crds/experimental validate routes), and the
// definitions in config/crd validate TunnelConfigurations and Tunnels. The validation
// uses the API server's libraries. The core kinds have no such definitions: their
// manifests are decoded strictly, and only the defaults and checks are applied that
// readers depend on.
//
// The package differs from an API server in two respects. It keeps the status, the uid,
// the generation and the creationTimestamp in a manifest, because the manifest may come
// from a cluster. And it requires a name, because a generated name would be different
// in every run.
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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options configure how manifests are read.
type Options struct {
	// Namespace is for namespaced objects without one; "default" when empty.
	Namespace string
	// Stdin is the input for the path "-"; [os.Stdin] when nil.
	Stdin io.Reader
	// Recursive reads subdirectories too.
	Recursive bool
	// Experimental accepts the route fields that only the Gateway API's experimental channel
	// has.
	Experimental bool
}

// Set is what the manifests contain.
type Set struct {
	// Objects are in the order of the manifests. A list's items are where the list is.
	// Each object has a type from [Scheme], and its apiVersion and kind are set.
	Objects []client.Object
	// Unsupported are the objects of existing Gateway API kinds that are not supported. They are
	// not validated.
	Unsupported []*unstructured.Unstructured
	// Skipped counts the objects whose kind is not supported, sorted by group and kind.
	Skipped []Skipped
	// SkippedDirectories are subdirectories that were not read.
	SkippedDirectories []string
	// Warnings are probable mistakes, in the order of the documents.
	Warnings Errors
}

// Skipped counts the objects of one unsupported kind.
type Skipped struct {
	schema.GroupKind
	Count int
}

// Read reads each path: a file, a directory or "-" for [Options.Stdin]. From a
// directory it reads the *.yaml, *.yml and *.json files in name order, and with
// [Options.Recursive] its subdirectories, except those whose names begin with a dot.
//
// A file contains YAML documents or a sequence of JSON values. Documents are counted
// from 1: every "---" begins a document, comments before the first marker belong to the
// first document, and an empty document between two markers counts.
//
// If a manifest is not valid, the Set is nil and the error is an [Errors] with all
// errors. CEL rules are not evaluated for an object with fields that have the wrong
// type, are missing or are too long, so fixing these may reveal more errors.
func Read(paths []string, o Options) (*Set, error) {
	r := newReader(o)
	for _, path := range paths {
		r.readPath(path)
	}
	return r.result()
}

// Parse parses one file's content as [Read] does. The name appears only in errors.
func Parse(name string, data []byte, o Options) (*Set, error) {
	r := newReader(o)
	_ = r.readContent(name, "file", data) // a file without objects is valid
	return r.result()
}

// readPath reads a file, a directory or standard input.
func (r *reader) readPath(path string) {
	if strings.Contains(path, "://") {
		r.addErrors(Place{File: path}, "", errors.New("URLs are not supported; download the manifest, or pipe it to -f -"))
		return
	}
	if path == "-" {
		data, err := io.ReadAll(r.options.Stdin)
		r.reportEmpty("stdin", r.addContent("stdin", "input", data, err))
		return
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		r.reportEmpty(path, r.readFile(path))
		return
	}
	if !r.readDirectory(path) {
		r.addErrors(Place{File: path}, "", errors.New("the directory contains no *.yaml, *.yml or *.json file"))
	}
}

// reportEmpty reports a path that the user specified and that contains no object.
func (r *reader) reportEmpty(path string, empty error) {
	if empty != nil {
		r.addErrors(Place{File: path}, "", empty)
	}
}

// readDirectory reads the manifests in a directory. It reports whether it found any.
func (r *reader) readDirectory(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		_ = r.addContent(dir, "directory", nil, err)
		return true
	}
	found := false
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch {
		case entry.IsDir() && strings.HasPrefix(entry.Name(), "."):
		case entry.IsDir() && r.options.Recursive:
			found = r.readDirectory(path) || found
		case entry.IsDir():
			r.skippedDirectories = append(r.skippedDirectories, path)
		case slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())):
			found = true
			if empty := r.readFile(path); empty != nil {
				r.warn(Place{File: path}, empty)
			}
		}
	}
	return found
}

// readFile reads one file. It returns an error if the file contains no object.
func (r *reader) readFile(path string) (empty error) {
	data, err := os.ReadFile(path) //nolint:gosec // the user names the files to read
	return r.addContent(path, "file", data, err)
}

// addContent processes what a file contains, or the error from reading it. It returns
// an error if the file contains no object. noun is the word for the file in this error.
func (r *reader) addContent(name, noun string, data []byte, err error) (empty error) {
	if err == nil {
		return r.readContent(name, noun, data)
	}
	// The place already contains the path.
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	r.addErrors(Place{File: name}, "", err)
	return nil
}

// result validates the objects and returns the set or the errors.
func (r *reader) result() (*Set, error) {
	r.validateAll()
	var errs Errors
	set := &Set{SkippedDirectories: r.skippedDirectories, Warnings: r.warnings, Unsupported: r.unsupported}
	for _, e := range r.entries {
		for _, err := range e.errs {
			errs = append(errs, &Error{Place: e.place, Object: e.name, Err: r.explainQuotes(e.place, err)})
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
