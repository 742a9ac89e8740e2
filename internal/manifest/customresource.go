package manifest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// customResource decodes and validates the objects for one CustomResourceDefinition.
type customResource struct {
	gvk        schema.GroupVersionKind
	namespaced bool
	definition *apiextensionsv1.JSONSchemaProps
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// customKind returns a loader that creates a kind from an embedded definition on
// its first call.
func customKind(directory crdDirectory, plural string) func() (kind, error) {
	return sync.OnceValues(func() (kind, error) {
		k, err := loadCustomKind(directory, plural)
		if err != nil {
			return kind{}, fmt.Errorf("load the definition of %s: %w", plural, err)
		}
		return k, nil
	})
}

// loadCustomKind creates a kind from an embedded definition.
func loadCustomKind(directory crdDirectory, plural string) (kind, error) {
	crd, err := directory.read(directory.group + "_" + plural + ".yaml")
	if err != nil {
		return kind{}, err
	}
	spec := crd.Spec
	k := kind{namespaced: spec.Scope == apiextensionsv1.NamespaceScoped}
	for _, version := range spec.Versions {
		if version.Served {
			k.served = append(k.served, version.Name)
		}
		if !version.Storage {
			continue
		}
		k.stored = schema.GroupVersionKind{Group: spec.Group, Version: version.Name, Kind: spec.Names.Kind}
		resource, err := newCustomResource(k, version.Schema.OpenAPIV3Schema)
		if err != nil {
			return kind{}, err
		}
		k.decode = resource.decode
	}
	return k, nil
}

// newCustomResource compiles the schema and its CEL rules.
func newCustomResource(k kind, props *apiextensionsv1.JSONSchemaProps) (*customResource, error) {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil); err != nil {
		return nil, fmt.Errorf("convert the schema: %w", err)
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil, fmt.Errorf("make the schema structural: %w", err)
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, fmt.Errorf("prune the defaults: %w", err)
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return nil, fmt.Errorf("compile the schema: %w", err)
	}
	return &customResource{
		gvk:        k.stored,
		namespaced: k.namespaced,
		definition: props,
		structural: structural,
		schema:     validator,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}

// decode applies defaults, rejects unknown fields, validates and converts an
// object, in the order in which the API server processes a custom resource.
func (r *customResource) decode(u *unstructured.Unstructured) (client.Object, []error) {
	defaulting.Default(u.Object, r.structural)
	meta, _, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, []error{field.Invalid(field.NewPath("metadata"), field.OmitValueType{}, err.Error())}
	}
	unknown = append(unknown, pruning.PruneWithOptions(u.Object, r.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, r.structural)
	if err := objectmeta.SetObjectMeta(u.Object, meta); err != nil {
		return nil, []error{err}
	}
	var errs field.ErrorList
	for _, path := range unknown {
		errs = append(errs, field.Forbidden(field.NewPath(path), unknownDetail(r.gvk.Kind, r.definition, u.Object, path)))
	}
	if errs = append(errs, r.validate(u, meta)...); len(errs) > 0 {
		return nil, toErrors(errs)
	}
	return r.typed(u)
}

// validate checks the metadata, the schema and, if possible, the CEL rules.
func (r *customResource) validate(u *unstructured.Unstructured, meta *metav1.ObjectMeta) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(meta, r.namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, validation.ValidateCustomResource(nil, u.Object, r.schema)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, r.structural, u.Object)...)
	if r.rules == nil || slices.ContainsFunc(errs, preventsRules) {
		return errs
	}
	violations, _ := r.rules.Validate(context.Background(), nil, r.structural, u.Object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, violations...)
}

// preventsRules reports whether the API server skips the CEL rules after err. The rules
// rely on the types and bounds in the schema.
func preventsRules(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong,
		field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	default:
		return false
	}
}

// typed converts a validated object to its Go type.
func (r *customResource) typed(u *unstructured.Unstructured) (client.Object, []error) {
	object, err := newObject(r.gvk)
	if err != nil {
		return nil, []error{err}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
		return nil, []error{fmt.Errorf("decode the validated object: %w", err)}
	}
	return object, nil
}
