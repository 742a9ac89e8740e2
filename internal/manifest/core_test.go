package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func service(spec string) string {
	return "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: " + spec + "}\n"
}

func TestNamespaceHasALabelWithItsName(t *testing.T) {
	got := parseOne[*corev1.Namespace](t, "{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {team: a}}}")
	if diff := cmp.Diff(map[string]string{"team": "a", "kubernetes.io/metadata.name": "a"}, got.Labels); diff != "" {
		t.Error(diff)
	}
}

func TestServicePortsHaveTheAPIServersDefaults(t *testing.T) {
	got := parseOne[*corev1.Service](t, service("{ports: [{port: 80}, {port: 81, targetPort: web, protocol: UDP}]}"))
	want := corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP,
		Ports: []corev1.ServicePort{
			{Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(80)},
			{Port: 81, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromString("web")},
		},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Error(diff)
	}
}

func TestServiceMayHaveNoPorts(t *testing.T) {
	for _, spec := range []string{"{clusterIP: None}", "{type: ExternalName, externalName: a.example}"} {
		parseOne[*corev1.Service](t, service(spec))
	}
}

func TestSecretMergesStringDataIntoData(t *testing.T) {
	got := parseOne[*corev1.Secret](t, `
apiVersion: v1
kind: Secret
metadata: {name: s}
data: {a: b2xk, b: a2VwdA==}
stringData: {a: new}
`)
	if diff := cmp.Diff(map[string][]byte{"a": []byte("new"), "b": []byte("kept")}, got.Data); diff != "" {
		t.Error(diff)
	}
	if got.StringData != nil || got.Type != corev1.SecretTypeOpaque {
		t.Errorf("stringData = %v, type = %q; want none, %q", got.StringData, got.Type, corev1.SecretTypeOpaque)
	}
}

func TestEndpointSlicePortsHaveTheAPIServersDefaults(t *testing.T) {
	got := parseOne[*discoveryv1.EndpointSlice](t, `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1}
addressType: IPv4
endpoints: [{addresses: [10.0.0.1]}]
ports: [{port: 8080}]
`)
	want := []discoveryv1.EndpointPort{{Name: ptr.To(""), Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(int32(8080))}}
	if diff := cmp.Diff(want, got.Ports); diff != "" {
		t.Error(diff)
	}
}

func TestInvalidCoreObjectsAreRejected(t *testing.T) {
	const web = "in.yaml: document 1: Service default/web: "
	tests := map[string]struct {
		text string
		want []string
	}{
		"unknown fields": {
			"{apiVersion: v1, kind: Service, metadata: {name: web, label: {}}, spec: {ports: [{port: 80, target: 81}]}}",
			[]string{web + "metadata.label: Forbidden: unknown field; did you mean labels?", web + "spec.ports[0].target: Forbidden: unknown field; did you mean targetPort?"},
		},
		"wrong case": {
			"{apiVersion: v1, kind: Service, metadata: {name: web}, Spec: {}}",
			[]string{web + "Spec: Forbidden: unknown field; did you mean spec?"},
		},
		"no ports": {
			service("{selector: {app: web}}"),
			[]string{web + "spec.ports: Required value"},
		},
		"ports out of range": {
			service("{ports: [{port: 0}, {port: 80, targetPort: 65536}]}"),
			[]string{
				web + "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
				web + "spec.ports[1].targetPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
			},
		},
		"wrong type": {
			service("{ports: [{port: http}]}"),
			[]string{web + "json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port of type int32"},
		},
		"name is not a string": {
			"{apiVersion: v1, kind: Secret, metadata: {name: 1}}",
			[]string{"in.yaml: document 1: Secret: metadata.name: Invalid value: must be a string, but YAML reads the value on line 1 as a number; if the value is correct, write it in quotes"},
		},
		"invalid namespace": {
			"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: A}}",
			[]string{
				`in.yaml: document 1: Secret A/a: metadata.namespace: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc')`,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, parseErrors(t, test.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestErrorsDoNotContainSecrets(t *testing.T) {
	const secret = "hunter2"
	for name, body := range map[string]string{
		"not base64":     "data: {password: " + secret + "!}",
		"a list":         "stringData: {password: [" + secret + "]}",
		"duplicate":      "stringData: {password: " + secret + ", password: " + secret + "}",
		"unknown field":  "strData: {password: " + secret + "}",
		"not a mapping":  "stringData: " + secret,
		"null key":       "stringData: {~: " + secret + "}",
		"unclosed quote": "stringData: {password: \"" + secret + "}",
	} {
		t.Run(name, func(t *testing.T) {
			for _, line := range parseErrors(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"+body) {
				if strings.Contains(line, secret) {
					t.Errorf("the error contains the secret: %s", line)
				}
			}
		})
	}
}
