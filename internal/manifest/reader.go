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
)

// reader gathers what is read, and what is wrong with it.
type reader struct {
	options Options
	found   []*entry
	skipped map[schema.GroupKind]int
	places  map[identity]Place
	folders []string
}

// entry is an object that is still to be judged, or what is wrong with a place,
// in the order of reading.
type entry struct {
	at     Place
	name   string // of the object, if that is known
	errs   []error
	object client.Object
	judge  func() (client.Object, []error)
}

// identity is what makes an object unique. The version is no part of it.
type identity struct {
	schema.GroupKind
	types.NamespacedName
}

// String returns the kind, namespace and name as errors show them.
func (id identity) String() string {
	return id.Kind + " " + strings.TrimPrefix(id.NamespacedName.String(), "/")
}

func newReader(o Options) *reader {
	o.Namespace = cmp.Or(o.Namespace, "default")
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	return &reader{
		options: o,
		skipped: map[schema.GroupKind]int{},
		places:  map[identity]Place{},
	}
}

func (r *reader) fail(at Place, object string, errs ...error) {
	if len(errs) > 0 {
		r.found = append(r.found, &entry{at: at, name: object, errs: errs})
	}
}

// file reads the documents of one file.
func (r *reader) file(name string, data []byte) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		r.fail(Place{File: name}, "", errors.New("the file is not UTF-8 text"))
		return
	}
	at := Place{File: name}
	for _, document := range split(data) {
		values, errs := document.values()
		if len(errs) > 0 {
			at.Document++
			r.fail(at, "", document.explain(errs)...)
			continue
		}
		for _, value := range values {
			at.Document++
			content, errs := decodeObject(value)
			r.fail(at, "", errs...)
			if content != nil {
				r.object(at, content)
			}
		}
	}
}

// object reads one object, or every item of a list.
func (r *reader) object(at Place, content map[string]any) {
	gvk, errs := typeMeta(content)
	if len(errs) > 0 {
		r.fail(at, "", errs...)
		return
	}
	if isList(gvk) {
		r.list(at, gvk, content)
		return
	}
	load, known := kinds[gvk.GroupKind()]
	if !known {
		r.skipped[gvk.GroupKind()]++
		return
	}
	k, err := load()
	if err != nil {
		r.fail(at, gvk.Kind, err)
		return
	}
	u := &unstructured.Unstructured{Object: content}
	if err := r.place(u, k); err != nil {
		r.fail(at, gvk.Kind, err)
		return
	}
	id := identity{gvk.GroupKind(), client.ObjectKeyFromObject(u)}
	e := &entry{at: at, name: id.String(), judge: func() (client.Object, []error) { return k.read(u) }}
	if first, duplicate := r.places[id]; duplicate {
		e.errs = append(e.errs, fmt.Errorf("the same object is defined before, in %s", first))
	} else {
		r.places[id] = at
	}
	r.found = append(r.found, e)
}

// judgeAll judges the objects on all processors: the rules of the CRDs take
// most of the time, and no object's depend on another's.
func (r *reader) judgeAll() {
	next := make(chan *entry)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for e := range next {
				object, errs := e.judge()
				e.object, e.errs = object, append(errs, e.errs...)
			}
		})
	}
	for _, e := range r.found {
		if e.judge != nil {
			next <- e
		}
	}
	close(next)
	workers.Wait()
}

// place makes sure that the object has a name, and puts it into a namespace
// when its kind has namespaces. A namespace on an object of a cluster-scoped
// kind is dropped, as the API server does.
func (r *reader) place(u *unstructured.Unstructured, k kind) error {
	path := field.NewPath("metadata")
	metadata, isMap := u.Object["metadata"].(map[string]any)
	_, isNamed := metadata["name"].(string)
	switch {
	case u.Object["metadata"] == nil || isMap && isUnset(metadata["name"]):
		return field.Required(path.Child("name"), "an object in a file needs a name of its own")
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

// isUnset is true for what counts as no string, and false for what is no string:
// that is left for the decoder to refuse.
func isUnset(value any) bool { return value == nil || value == "" }

// list reads the items of a list.
func (r *reader) list(at Place, gvk schema.GroupVersionKind, content map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "items"}, name) {
			r.fail(at, gvk.Kind, field.Forbidden(field.NewPath(name), unknownField))
		}
	}
	items, isSlice := content["items"].([]any)
	if !isSlice && content["items"] != nil {
		r.fail(at, gvk.Kind, field.TypeInvalid(field.NewPath("items"), field.OmitValueType{}, "must be a list"))
	}
	for i, item := range items {
		itemAt := at
		itemAt.Item = strings.TrimPrefix(fmt.Sprintf("%s.items[%d]", at.Item, i), ".")
		object, isMap := item.(map[string]any)
		if !isMap {
			r.fail(itemAt, "", errors.New("an item must be a mapping with apiVersion, kind and metadata"))
			continue
		}
		inheritType(gvk, object)
		r.object(itemAt, object)
	}
}

// isList is true for the untyped list that kubectl prints and for the typed
// lists that the API server answers with, when their items are read.
func isList(gvk schema.GroupVersionKind) bool {
	if gvk == (schema.GroupVersionKind{Version: "v1", Kind: "List"}) {
		return true
	}
	item, isList := strings.CutSuffix(gvk.Kind, "List")
	_, known := kinds[schema.GroupKind{Group: gvk.Group, Kind: item}]
	return isList && known
}

// inheritType gives an item of a typed list the type that follows from the
// list, because the API server leaves it out of the items.
func inheritType(list schema.GroupVersionKind, item map[string]any) {
	kind := strings.TrimSuffix(list.Kind, "List")
	if kind != "" && isUnset(item["kind"]) && isUnset(item["apiVersion"]) {
		item["apiVersion"], item["kind"] = list.GroupVersion().String(), kind
	}
}

// typeMeta returns the type that a document says it is of.
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
