package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

// TestExample: the example is valid, and its references lead to its objects.
func TestExample(t *testing.T) {
	set, err := manifest.Read([]string{"example.yaml"}, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	objects := map[client.ObjectKey]bool{}
	var references []client.ObjectKey
	for _, object := range set.Objects {
		switch object := object.(type) {
		case *v1alpha1.TunnelConfiguration:
			objects[client.ObjectKeyFromObject(object)] = true
		case *gatewayv1.GatewayClass:
			ref := object.Spec.ParametersRef
			references = append(references, client.ObjectKey{Namespace: string(*ref.Namespace), Name: ref.Name})
		case *gatewayv1.Gateway:
			references = append(references, client.ObjectKey{Namespace: object.Namespace, Name: object.Spec.Infrastructure.ParametersRef.Name})
		}
	}
	if len(references) != 2 || len(objects) != 2 || len(set.Skipped) != 0 {
		t.Errorf("%d references, %d TunnelConfigurations, others %v; want two of each and no others", len(references), len(objects), set.Skipped)
	}
	for _, reference := range references {
		if !objects[reference] {
			t.Errorf("there is no TunnelConfiguration %s", reference)
		}
	}
}

func TestTables(t *testing.T) {
	text := schema{Type: "string", MaxLength: ptr.To[int64](9), XValidations: apiextensionsv1.ValidationRules{{Message: "must be *"}}}
	inner := schema{
		Type: "object", Required: []string{"name"}, XValidations: apiextensionsv1.ValidationRules{{Message: "name | kind"}},
		Properties: map[string]schema{
			"kind": {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`""`)}, {Raw: []byte(`"socks"`)}}},
			"name": text,
		},
	}
	connector := schema{Type: "object", Properties: map[string]schema{"many": {Type: "integer", Minimum: ptr.To(0.0), Maximum: ptr.To(25.0)}}}
	for path := range pages[0].kubernetes {
		name := strings.TrimPrefix(path, "spec.connector.")
		field := schema{Type: "object"}
		if list, found := strings.CutSuffix(name, "[]"); found {
			name, field = list, schema{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{Type: "object"}}}
		}
		connector.Properties[name] = field
	}
	spec := schema{Type: "object", Properties: map[string]schema{
		"connector": connector,
		"inner":     inner,
		"list": {
			Type: "array", Description: "Some\ntext.", MaxItems: ptr.To[int64](3), XListMapKeys: []string{"name", "kind"},
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &inner},
		},
		"map": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &text}},
	}}
	status := schema{Type: "object", Properties: map[string]schema{"inner": inner}}
	kind := &schema{Properties: map[string]schema{"spec": spec, "status": status}}
	got, err := newTables(kind, []string{"spec", "status"}, pages[0].kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	want := "\n## `spec`\n\n" + `| Field | Type | Meaning | Validation |
|---|---|---|---|
| ` + "`connector` | [`spec.connector`](#specconnector)" + ` |  |  |
| ` + "`inner` | [`spec.inner`](#specinner)" + ` |  |  |
| ` + "`list` | list of [`spec.inner`](#specinner)" + ` | Some text. | at most 3 entries; one entry for each name and kind |
| ` + "`map`" + ` | map of strings |  | must be \* |

## ` + "`spec.connector`" + `

| Field | Type | Meaning | Validation |
|---|---|---|---|
| ` + "`affinity`" + ` | Kubernetes' Affinity |  |  |
| ` + "`many`" + ` | integer |  | at least 0; at most 25 |
| ` + "`resources`" + ` | Kubernetes' ResourceRequirements |  |  |
| ` + "`tolerations`" + ` | list of Kubernetes' Toleration |  |  |
| ` + "`topologySpreadConstraints`" + ` | list of Kubernetes' TopologySpreadConstraint |  |  |

## ` + "`spec.inner`" + `

Refused with: name \| kind.

| Field | Type | Meaning | Validation |
|---|---|---|---|
| ` + "`kind` | string |  | one of `\"\"`, `socks`" + ` |
| ` + "`name`" + ` | string, required |  | length at most 9; must be \* |

## ` + "`status`" + `

| Field | Type | Meaning | Validation |
|---|---|---|---|
| ` + "`inner` | [`spec.inner`](#specinner)" + ` |  |  |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestHeads: the head of the first page has the example, and each page has a
// table.
func TestHeads(t *testing.T) {
	for _, p := range pages {
		if p.head == "" || len(p.objects) == 0 {
			t.Errorf("%s has no head or no tables", p.file)
		}
	}
	if strings.Count(configurationHead, place) != 1 || !strings.Contains(pages[0].head, example) {
		t.Error("the head has no place for the example")
	}
}

// TestTablesMissAField: a field that is left to Kubernetes has to exist.
func TestTablesMissAField(t *testing.T) {
	kind := &schema{Properties: map[string]schema{"spec": {Type: "object"}}}
	if _, err := newTables(kind, []string{"spec"}, map[string]string{"spec.gone": "Gone"}); err == nil || !strings.Contains(err.Error(), "there is no field spec.gone") {
		t.Errorf("got error %v, want one that names the field", err)
	}
}
