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

func TestConfigurationExampleIsValidAndItsReferencesResolve(t *testing.T) {
	set, err := manifest.Read([]string{"configuration.example.yaml"}, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	configurations := map[client.ObjectKey]bool{}
	var references []client.ObjectKey
	for _, object := range set.Objects {
		switch object := object.(type) {
		case *v1alpha1.TunnelConfiguration:
			configurations[client.ObjectKeyFromObject(object)] = true
		case *gatewayv1.GatewayClass:
			ref := object.Spec.ParametersRef
			references = append(references, client.ObjectKey{Namespace: string(*ref.Namespace), Name: ref.Name})
		case *gatewayv1.Gateway:
			references = append(references, client.ObjectKey{Namespace: object.Namespace, Name: object.Spec.Infrastructure.ParametersRef.Name})
		}
	}
	if len(references) != 2 || len(configurations) != 2 || len(set.Skipped) != 0 {
		t.Errorf("got %d references, %d TunnelConfigurations, skipped objects %v; want 2, 2, none", len(references), len(configurations), set.Skipped)
	}
	for _, reference := range references {
		if !configurations[reference] {
			t.Errorf("TunnelConfiguration %s does not exist", reference)
		}
	}
}

func TestConfigurationPageShowsTheExample(t *testing.T) {
	if strings.Count(configurationHead, examplePlaceholder) != 1 || !strings.Contains(configurationPage.head, configurationExample) {
		t.Errorf("want one line %q in the head, and the example in the page", examplePlaceholder)
	}
}

func TestEveryFieldsPageHasAHeadAndTables(t *testing.T) {
	for _, p := range []fieldsPage{configurationPage, tunnelPage} {
		if p.head == "" || len(p.fields) == 0 {
			t.Errorf("%s has no head or no tables", p.name)
		}
	}
}

// connectorSchema returns a schema whose fields include the Kubernetes types on the page
// about TunnelConfigurations.
func connectorSchema() schema {
	connector := schema{Type: "object", Properties: map[string]schema{
		"many": {Type: "integer", Minimum: ptr.To(0.0), Maximum: ptr.To(25.0)},
	}}
	for path := range configurationPage.kubernetesTypes {
		name := strings.TrimPrefix(path, "spec.connector.")
		field := schema{Type: "object"}
		if list, found := strings.CutSuffix(name, "[]"); found {
			name, field = list, schema{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{Type: "object"}}}
		}
		if block, inner, nested := strings.Cut(name, "."); nested {
			name, field = block, schema{Type: "object", Properties: map[string]schema{inner: field}}
		}
		connector.Properties[name] = field
	}
	return connector
}

func TestFieldTablesShowTypesMeaningsAndValidation(t *testing.T) {
	text := schema{Type: "string", MaxLength: ptr.To[int64](9), XValidations: apiextensionsv1.ValidationRules{{Message: "must be *"}}}
	inner := schema{
		Type: "object", Required: []string{"name"}, XValidations: apiextensionsv1.ValidationRules{{Message: "name | kind"}},
		Properties: map[string]schema{
			"kind": {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`""`)}, {Raw: []byte(`"socks"`)}}},
			"name": text,
		},
	}
	spec := schema{Type: "object", Properties: map[string]schema{
		"connector": connectorSchema(),
		"inner":     inner,
		"list": {
			Type: "array", Description: "Some\ntext.", MaxItems: ptr.To[int64](3), XListMapKeys: []string{"name", "kind"},
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &inner},
		},
		"names": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{Type: "string"}}},
		"map":   {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &text}},
	}}
	status := schema{Type: "object", Properties: map[string]schema{"inner": inner}}
	kind := &schema{Properties: map[string]schema{"spec": spec, "status": status}}
	got, err := fieldTables(kind, []string{"spec", "status"}, configurationPage.kubernetesTypes)
	if err != nil {
		t.Fatal(err)
	}
	want := "\n## `spec`\n\n" + `| Field | Type | Meaning | Validation |
|---|---|---|---|
| ` + "`connector` | [`spec.connector`](#specconnector)" + ` |  |  |
| ` + "`inner` | [`spec.inner`](#specinner)" + ` |  |  |
| ` + "`list` | list of [`spec.inner`](#specinner)" + ` | Some text. | at most 3 entries; unique name and kind |
| ` + "`map`" + ` | map of strings |  | must be \* |
| ` + "`names`" + ` | list of strings |  |  |

## ` + "`spec.connector`" + `

| Field | Type | Meaning | Validation |
|---|---|---|---|
| ` + "`affinity`" + ` | Affinity (Kubernetes) |  |  |
| ` + "`envoy` | [`spec.connector.envoy`](#specconnectorenvoy)" + ` |  |  |
| ` + "`many`" + ` | integer |  | at least 0; at most 25 |
| ` + "`resources`" + ` | ResourceRequirements (Kubernetes) |  |  |
| ` + "`tolerations`" + ` | list of Toleration (Kubernetes) |  |  |
| ` + "`topologySpreadConstraints`" + ` | list of TopologySpreadConstraint (Kubernetes) |  |  |

## ` + "`spec.inner`" + `

Validation error: name \| kind.

| Field | Type | Meaning | Validation |
|---|---|---|---|
| ` + "`kind` | string |  | one of `\"\"`, `socks`" + ` |
| ` + "`name`" + ` | string, required |  | length at most 9; must be \* |

## ` + "`spec.connector.envoy`" + `

| Field | Type | Meaning | Validation |
|---|---|---|---|
| ` + "`resources`" + ` | ResourceRequirements (Kubernetes) |  |  |

## ` + "`status`" + `

| Field | Type | Meaning | Validation |
|---|---|---|---|
| ` + "`inner` | [`spec.inner`](#specinner)" + ` |  |  |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEveryFieldWithAKubernetesTypeMustExist(t *testing.T) {
	kind := &schema{Properties: map[string]schema{"spec": {Type: "object"}}}
	_, err := fieldTables(kind, []string{"spec"}, map[string]string{"spec.gone": "Gone"})
	if err == nil || !strings.Contains(err.Error(), "the field spec.gone does not exist") {
		t.Errorf("got error %v, want an error that names the field", err)
	}
}
