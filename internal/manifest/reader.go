package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// reader collects the objects and errors in manifests.
type reader struct {
	options            Options
	entries            []*entry
	skipped            map[schema.GroupKind]int
	unsupported        []*unstructured.Unstructured
	firstPlaces        map[objectID]Place
	skippedDirectories []string
	warnings           Errors
	// documents are the documents at places without an item, and unquoted caches their
	// values without quotes.
	documents map[Place]document
	unquoted  map[Place][]unquoted
}

// entry is one object, or the errors at a place. validate validates and decodes the
// object.
type entry struct {
	place    Place
	name     string // the object's name, if known
	errs     []error
	object   client.Object
	validate func() (client.Object, []error)
}

// objectID identifies an object. It does not include the version.
type objectID struct {
	schema.GroupKind
	types.NamespacedName
}

// String returns the kind, namespace and name as errors print them.
func (id objectID) String() string {
	return id.Kind + " " + strings.TrimPrefix(id.NamespacedName.String(), "/")
}

func newReader(o Options) *reader {
	o.Namespace = cmp.Or(o.Namespace, "default")
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	return &reader{
		options:     o,
		skipped:     map[schema.GroupKind]int{},
		firstPlaces: map[objectID]Place{},
		documents:   map[Place]document{},
		unquoted:    map[Place][]unquoted{},
	}
}

// addErrors records the errors about an object or a place.
func (r *reader) addErrors(place Place, object string, errs ...error) {
	if len(errs) > 0 {
		r.entries = append(r.entries, &entry{place: place, name: object, errs: errs})
	}
}

// warn records a probable mistake.
func (r *reader) warn(place Place, err error) {
	r.warnings = append(r.warnings, &Error{Place: place, Err: err})
}

// readContent reads the documents in one file's content. It returns an error if the
// file contains no object. noun is the word for the file in this error.
func (r *reader) readContent(name, noun string, data []byte) (empty error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		r.addErrors(Place{File: name}, "", errors.New("the file is not UTF-8 text"))
		return nil
	}
	place, found := Place{File: name}, false
	for _, document := range split(data) {
		values, errs := document.values()
		if len(errs) > 0 {
			place.Document++
			found = true
			r.addErrors(place, "", document.addHint(errs)...)
			continue
		}
		for _, value := range values {
			place.Document++
			r.documents[place] = document
			content, errs := decodeObject(value)
			r.addErrors(place, "", errs...)
			if content != nil {
				r.readObject(place, content)
			}
			found = found || content != nil || len(errs) > 0
		}
	}
	switch {
	case found:
		return nil
	case len(bytes.TrimSpace(data)) == 0:
		return fmt.Errorf("the %s is empty", noun)
	}
	return fmt.Errorf("the %s contains no object", noun)
}

// loader returns the function that loads a kind, and whether the kind is supported.
func (r *reader) loader(k schema.GroupKind) (func() (kind, error), bool) {
	if load, differs := experimentalLoaders[k]; differs && r.options.Experimental {
		return load, true
	}
	load, known := loaders[k]
	return load, known
}

// readObject reads one object, or every item in a list.
func (r *reader) readObject(place Place, content map[string]any) {
	if err := cloudflaredError(place, content); err != nil {
		r.addErrors(place, "", err)
		return
	}
	gvk, errs := typeMeta(content)
	if len(errs) > 0 {
		r.addErrors(place, "", errs...)
		return
	}
	if isList(gvk) {
		r.readList(place, gvk, content)
		return
	}
	load, known := r.loader(gvk.GroupKind())
	if !known {
		r.skip(place, gvk, content)
		return
	}
	k, err := load()
	if err != nil {
		r.addErrors(place, gvk.Kind, err)
		return
	}
	u := &unstructured.Unstructured{Object: content}
	if err := r.completeMetadata(u, k); err != nil {
		r.addErrors(place, gvk.Kind, err)
		return
	}
	id := objectID{gvk.GroupKind(), client.ObjectKeyFromObject(u)}
	e := &entry{place: place, name: id.String(), validate: func() (client.Object, []error) { return k.convert(u) }}
	if first, duplicate := r.firstPlaces[id]; duplicate {
		e.errs = append(e.errs, fmt.Errorf("duplicate object, already defined in %s", first))
	} else {
		r.firstPlaces[id] = place
	}
	r.entries = append(r.entries, e)
}

// skip records an object whose kind is not supported.
func (r *reader) skip(place Place, gvk schema.GroupVersionKind, content map[string]any) {
	if warning := unknownKind(gvk); warning != nil {
		r.warn(place, warning)
		return
	}
	r.skipped[gvk.GroupKind()]++
	if gvk.Group != gatewayv1.GroupName && gvk.Group != ExperimentalGroup {
		return
	}
	object := &unstructured.Unstructured{Object: content}
	if err := r.completeMetadata(object, kind{namespaced: true}); err == nil {
		r.unsupported = append(r.unsupported, object)
	}
}

// validateAll validates the objects in parallel, because the CRDs' CEL rules take most
// of the time. An object's rules do not depend on other objects.
func (r *reader) validateAll() {
	next := make(chan *entry)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for e := range next {
				object, errs := e.validate()
				e.object, e.errs = object, append(errs, e.errs...)
			}
		})
	}
	for _, e := range r.entries {
		if e.validate != nil {
			next <- e
		}
	}
	close(next)
	workers.Wait()
}

// completeMetadata checks that the object has a name, and sets a namespaced object's
// namespace. Like the API server, it removes a cluster-scoped object's namespace.
func (r *reader) completeMetadata(u *unstructured.Unstructured, k kind) error {
	path := field.NewPath("metadata")
	metadata, isMap := u.Object["metadata"].(map[string]any)
	_, isNamed := metadata["name"].(string)
	switch {
	case u.Object["metadata"] == nil || isMap && isUnset(metadata["name"]):
		return field.Required(path.Child("name"), "a manifest must name its object, and generateName is not supported")
	case !isMap:
		return field.TypeInvalid(path, field.OmitValueType{}, "must be a mapping")
	case !isNamed:
		return field.TypeInvalid(path.Child("name"), metadata["name"], "must be a string")
	case !k.namespaced:
		delete(metadata, "namespace")
	case isUnset(metadata["namespace"]):
		metadata["namespace"] = r.options.Namespace
	}
	return nil
}

// isUnset reports whether value is missing or an empty string. The decoder rejects
// other types.
func isUnset(value any) bool { return value == nil || value == "" }

func (r *reader) readList(place Place, gvk schema.GroupVersionKind, content map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "items"}, name) {
			r.addErrors(place, gvk.Kind, field.Forbidden(field.NewPath(name), unknownField))
		}
	}
	items, isSlice := content["items"].([]any)
	if !isSlice && content["items"] != nil {
		r.addErrors(place, gvk.Kind, field.TypeInvalid(field.NewPath("items"), field.OmitValueType{}, "must be a list"))
	}
	for i, item := range items {
		itemPlace := place
		itemPlace.Item = strings.TrimPrefix(fmt.Sprintf("%s.items[%d]", place.Item, i), ".")
		object, isMap := item.(map[string]any)
		if !isMap {
			r.addErrors(itemPlace, "", errors.New("an item must be a mapping with apiVersion, kind and metadata"))
			continue
		}
		inheritType(gvk, object)
		r.readObject(itemPlace, object)
	}
}

// isList reports whether gvk is the untyped List that kubectl prints, or a supported
// kind's typed list, such as GatewayList.
func isList(gvk schema.GroupVersionKind) bool {
	if gvk == (schema.GroupVersionKind{Version: "v1", Kind: "List"}) {
		return true
	}
	item, isList := strings.CutSuffix(gvk.Kind, "List")
	_, known := loaders[schema.GroupKind{Group: gvk.Group, Kind: item}]
	return isList && known
}

// inheritType sets apiVersion and kind on an item in a typed list, because the API
// server omits them.
func inheritType(list schema.GroupVersionKind, item map[string]any) {
	kind := strings.TrimSuffix(list.Kind, "List")
	if kind != "" && isUnset(item["kind"]) && isUnset(item["apiVersion"]) {
		item["apiVersion"], item["kind"] = list.GroupVersion().String(), kind
	}
}

// typeMeta returns a manifest's apiVersion and kind.
func typeMeta(content map[string]any) (schema.GroupVersionKind, []error) {
	var errs []error
	text := func(name string) string {
		value, isString := content[name].(string)
		switch {
		case isUnset(content[name]):
			errs = append(errs, field.Required(field.NewPath(name), ""))
		case !isString:
			errs = append(errs, field.TypeInvalid(field.NewPath(name), content[name], "must be a string"))
		}
		return value
	}
	apiVersion, kind := text("apiVersion"), text("kind")
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), apiVersion, "must be a version, or a group and a version"))
	}
	return version.WithKind(kind), errs
}
