package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestErrorsNumberTheDocuments appends an invalid document. The number in its error
// shows how the preceding documents were counted.
func TestErrorsNumberTheDocuments(t *testing.T) {
	a, b := namespace("a"), namespace("b")
	tests := map[string]struct {
		text string
		want string
	}{
		"single document":                  {"x", "document 1"},
		"marker at the start":              {"---\nx", "document 1"},
		"comments before the first marker": {"# license\n\n---\nx", "document 1"},
		"directive before the marker":      {"%YAML 1.1\n---\nx", "document 1"},
		"after a document":                 {a + "---\nx", "document 2"},
		"after an empty document":          {a + "---\n---\nx", "document 3"},
		"after a comment":                  {a + "---\n# nothing here\n---\n" + b + "---\nx", "document 4"},
		"empty first document":             {"---\n---\nx", "document 2"},
		"marker with a comment":            {a + "--- # second\nx", "document 2"},
		"content after the marker":         {a + "--- x", "document 2"},
		"end markers":                      {a + "...\n# between\n---\n" + b + "...\nx", "document 3"},
		"quoted marker":                    {a + "---\n\"---x\"", "document 2"},
		"Windows line endings":             {strings.ReplaceAll(a+"---\n---\n"+b+"---\nx", "\n", "\r\n"), "document 4"},
		"byte order mark":                  {"\ufeff---\nx", "document 1"},
		"sequence of JSON values":          {`{"apiVersion":"v1","kind":"A"}{"apiVersion":"v1","kind":"B"} "x"`, "document 3"},
		"JSON values and markers":          {"{\"apiVersion\":\"v1\",\"kind\":\"A\"}\n{\"apiVersion\":\"v1\",\"kind\":\"B\"}\n---\nx", "document 3"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := []string{"in.yaml: " + test.want + ": a document must be a mapping with apiVersion, kind and metadata"}
			if diff := cmp.Diff(want, parseErrors(t, test.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFilesWithoutObjectsAreValid(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "blank": "\n \n", "comments": "# only\n---\n# comments\n", "markers": "---\n---\n", "null": "null\n", "byte order mark": "\ufeff",
		"empty list": "{apiVersion: v1, kind: List, items: []}", "list of null": "{apiVersion: v1, kind: List, items: null}",
	} {
		t.Run(name, func(t *testing.T) {
			if set := parse(t, text); len(set.Objects)+len(set.Skipped) != 0 {
				t.Errorf("Parse = %v, want an empty Set", set)
			}
		})
	}
}

func TestIndentedMarkerDoesNotEndTheDocument(t *testing.T) {
	secret := parseOne[*corev1.Secret](t, `
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData:
  text: |
    first
    ---
    ...
    second
  pem: |
    -----BEGIN CERTIFICATE-----
    -----END CERTIFICATE-----
`)
	want := map[string][]byte{
		"text": []byte("first\n---\n...\nsecond\n"),
		"pem":  []byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"),
	}
	if diff := cmp.Diff(want, secret.Data); diff != "" {
		t.Error(diff)
	}
}

func TestLongLinesAreRead(t *testing.T) {
	long := strings.Repeat("x", 6<<20)
	secret := parseOne[*corev1.Secret](t, "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {long: "+long+"}}")
	if got := len(secret.Data["long"]); got != len(long) {
		t.Errorf("got %d bytes, want %d", got, len(long))
	}
}

func TestSyntaxErrorsNameTheLine(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"unclosed bracket": {
			namespace("a") + "---\nkind: A\nmetadata:\n  name: [\n",
			[]string{"in.yaml: document 2: yaml: line 5: did not find expected node content"},
		},
		"tab": {
			namespace("a") + "---\nkind: A\nmetadata:\n\tname: a\n",
			[]string{"in.yaml: document 2: yaml: line 5: found character that cannot start any token"},
		},
		"duplicate keys": {
			namespace("a") + "---\nkind: A\nkind: B\nmetadata: {name: a, name: b}\n",
			[]string{
				`in.yaml: document 2: yaml: line 4: key "kind" already set in map`,
				`in.yaml: document 2: yaml: line 5: key "name" already set in map`,
			},
		},
		"null key": {
			"stringData: {~: hunter2}",
			[]string{"in.yaml: document 1: yaml: the document has a key that is not a string, number or boolean, or a number that is not finite"},
		},
		"NaN": {
			"a: .nan",
			[]string{"in.yaml: document 1: yaml: the document has a key that is not a string, number or boolean, or a number that is not finite"},
		},
		"invalid JSON": {
			"---\n{\n  \"kind\": \"A\"\n  \"apiVersion\": \"v1\"\n}\n",
			[]string{"in.yaml: document 1: json: line 4: invalid character '\"' after object key:value pair"},
		},
		"truncated JSON": {
			`{"kind": "A"`,
			[]string{"in.yaml: document 1: json: unexpected EOF"},
		},
		"duplicate keys in JSON": {
			`{"kind": "A", "metadata": {"name": "a", "name": "b"}}`,
			[]string{"in.yaml: document 1: metadata.name: Forbidden: duplicate field"},
		},
		"not UTF-8": {
			"\xff\xfea\x00",
			[]string{"in.yaml: the file is not UTF-8 text"},
		},
		"errors in several documents": {
			"a: [\n---\n" + namespace("a") + "---\nb: {\n",
			[]string{
				"in.yaml: document 1: yaml: line 1: did not find expected node content",
				"in.yaml: document 3: yaml: line 5: did not find expected node content",
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

func TestTypeAndNameAreRequired(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"no type": {"metadata: {name: a}", []string{
			"in.yaml: document 1: apiVersion: Required value",
			"in.yaml: document 1: kind: Required value",
		}},
		"type is not a string": {"{apiVersion: 1, kind: [A]}", []string{
			"in.yaml: document 1: apiVersion: Invalid value: must be a string, but YAML reads the value on line 1 as a number; if the value is correct, write it in quotes",
			`in.yaml: document 1: kind: Invalid value: ["A"]: must be a string`,
		}},
		"malformed version": {"{apiVersion: a/b/c, kind: A}", []string{
			`in.yaml: document 1: apiVersion: Invalid value: "a/b/c": must be a version, or a group and a version`,
		}},
		"no metadata": {"{apiVersion: v1, kind: Secret}", []string{
			"in.yaml: document 1: Secret: metadata.name: Required value: a manifest must name its object, and generateName is not supported",
		}},
		"metadata is not a mapping": {"{apiVersion: v1, kind: Secret, metadata: []}", []string{
			"in.yaml: document 1: Secret: metadata: Invalid value: must be a mapping",
		}},
		"no name": {"{apiVersion: v1, kind: Secret, metadata: {generateName: a-}}", []string{
			"in.yaml: document 1: Secret: metadata.name: Required value: a manifest must name its object, and generateName is not supported",
		}},
		"version that is not served": {"{apiVersion: gateway.networking.k8s.io/v1alpha2, kind: Gateway, metadata: {name: a}}", []string{
			`in.yaml: document 1: Gateway default/a: apiVersion: Unsupported value: "gateway.networking.k8s.io/v1alpha2": ` +
				`supported values: "gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1beta1"`,
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, parseErrors(t, test.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestItemsOfNestedListsAreRead(t *testing.T) {
	set := parse(t, `
apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: a}}
- apiVersion: v1
  kind: List
  items:
  - {apiVersion: v1, kind: Namespace, metadata: {name: b}}
  - {apiVersion: v1, kind: Pod, metadata: {name: c}}
---
apiVersion: v1
kind: NamespaceList
items:
- metadata: {name: d}
---
apiVersion: v1
kind: PodList
items:
- metadata: {name: e}
`)
	if diff := cmp.Diff([]string{"Namespace a", "Namespace b", "Namespace d"}, names(set)); diff != "" {
		t.Error(diff)
	}
	if len(set.Skipped) != 2 || set.Skipped[0].Kind != "Pod" || set.Skipped[1].Kind != "PodList" {
		t.Errorf("skipped %v, want a Pod and a PodList", set.Skipped)
	}
}

func TestErrorsInListsNameTheItem(t *testing.T) {
	want := []string{
		"in.yaml: document 1: List: item: Forbidden: unknown field",
		"in.yaml: document 1: items[0]: an item must be a mapping with apiVersion, kind and metadata",
		"in.yaml: document 1: items[1]: apiVersion: Required value",
		"in.yaml: document 1: items[1]: kind: Required value",
		"in.yaml: document 1: items[2].items[0]: Namespace A: metadata.name: Invalid value",
		"in.yaml: document 2: List: items: Invalid value: must be a list",
	}
	got := parseErrors(t, `
apiVersion: v1
kind: List
item: []
items:
- text
- metadata: {name: a}
- {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Namespace, metadata: {name: A}}]}
---
{apiVersion: v1, kind: List, items: {}}
`)
	got[4] = got[4][:min(len(want[4]), len(got[4]))] // the library appends the rules for names
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
