package manifest

import (
	"strings"
	"testing"
)

func TestValuesWithoutQuotesAreExplained(t *testing.T) {
	for name, test := range map[string]struct {
		text, want string
	}{
		"item of a list": {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: off}}\n",
			`in.yaml: document 1: items[0]: Namespace: metadata.name: Invalid value: must be a string, but YAML reads off without quotes as a boolean; write "off" on line 4`},
		"second document": {"---\n---\n" + strings.Replace(namespace("a"), "name: a", "name: Yes", 1),
			`in.yaml: document 2: Namespace: metadata.name: Invalid value: must be a string, but YAML reads Yes without quotes as a boolean; write "Yes" on line 3`},
		"kind":                   {"{apiVersion: v1, kind: n}", `in.yaml: document 1: kind: Invalid value: must be a string, but YAML reads n without quotes as a boolean; write "n" on line 1`},
		"boolean of a Namespace": {strings.Replace(namespace("a"), "name: a", "name: a, annotations: {x/y: true}", 1), `Namespace /a: metadata.annotations.x/y: Invalid value: must be a string, but YAML reads true without quotes as a boolean; write "true" on line 1`},
		"boolean in JSON":        {`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": true}}`, `in.yaml: document 1: Namespace: metadata.name: Invalid value: must be a string, but YAML reads true without quotes as a boolean; write "true" on line 1`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(parseErrors(t, test.text), "\n"); !strings.HasSuffix(got, strings.ReplaceAll(test.want, " /a:", " a:")) {
				t.Errorf("error:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

func TestErrorsDoNotContainSecretData(t *testing.T) {
	text := "{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {pin: 271828}}"
	if got := strings.Join(parseErrors(t, text), "\n"); strings.Contains(got, "271828") || !strings.Contains(got, "stringData.pin: Invalid value: must be a string, but YAML reads the value on line 1") {
		t.Errorf("error: %s", got)
	}
}

func TestABooleanFieldDoesNotRequireQuotes(t *testing.T) {
	// The valid boolean has nothing to do with the error about the name.
	text := "{apiVersion: tunnelgateway.dev/v1alpha1, kind: TunnelConfiguration, metadata: {name: _}, spec: {connector: {enabled: yes, replicas: no}}}"
	if got := strings.Join(parseErrors(t, text), "\n"); strings.Contains(got, "quotes") {
		t.Errorf("error: %s", got)
	}
}
