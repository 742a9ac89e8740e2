package convert

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// The order of the documents.
const (
	rankNamespace = iota
	rankClass
	rankConfiguration
	rankGateway
	rankListenerSet
	rankGrant
	rankRoute
)

// Document is an object with its comments.
type Document struct {
	Object client.Object
	// Comment is above the object, and Rules above the rules of a route, by index.
	Comment []string
	Rules   map[int][]string

	rank int
}

// WriteYAML writes the objects as YAML that kubectl and plan accept, with comments. The
// first comment has the notes.
func (r *Result) WriteYAML(w io.Writer, input string) error {
	var out bytes.Buffer
	fmt.Fprintln(&out, comment([]string{"Converted from " + input + "."}))
	for _, n := range r.Notes {
		if n.Kind != NoteInfo {
			fmt.Fprintln(&out, comment([]string{n.Place(input) + ": " + n.String() + "."}))
		}
	}
	for i, d := range r.Documents {
		text, err := d.encode()
		if err != nil {
			return fmt.Errorf("encode %s: %w", d.Object.GetName(), err)
		}
		if i > 0 { // the first document has the comments above, so that none is empty
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// comment returns the lines as comments. The configuration's texts must not end them.
func comment(lines []string) string {
	var all []string
	for _, line := range lines {
		all = append(all, "# "+terminal.Escape(line))
	}
	return strings.Join(all, "\n")
}

// encode returns the object without the fields that the API server sets.
func (d *Document) encode() ([]byte, error) {
	gvk, err := apiutil.GVKForObject(d.Object, manifest.Scheme())
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d.Object)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	if spec, ok := content["spec"].(map[string]any); ok && len(spec) == 0 {
		delete(content, "spec")
	}
	content["apiVersion"], content["kind"] = gvk.GroupVersion().String(), gvk.Kind
	root, err := node(content)
	if err != nil {
		return nil, err
	}
	d.addComments(root)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(root); err != nil {
		return nil, err
	}
	return terminal.EscapeYAML(out.Bytes()), nil
}

// node returns the value as YAML with apiVersion, kind and metadata first.
func node(content map[string]any) (*yaml.Node, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	block(&document)
	return document.Content[0], nil
}

// firstKeys come before the other keys of a mapping, which are in alphabetical order.
var firstKeys = []string{"apiVersion", "kind", "metadata", "name", "protocolPort", "hostname", "parentRef", "parentRefs", "gatewayClassName", "matches"}

// block removes the style of JSON, and orders the keys as people write them.
func block(n *yaml.Node) {
	n.Style = 0
	if strings.ContainsFunc(n.Value, func(r rune) bool { return !strconv.IsPrint(r) }) {
		n.Style = yaml.DoubleQuotedStyle // only such scalars can escape characters
	}
	if n.Kind == yaml.MappingNode {
		pairs := slices.Collect(slices.Chunk(n.Content, 2))
		slices.SortStableFunc(pairs, func(a, b []*yaml.Node) int { return cmp.Compare(keyRank(a[0].Value), keyRank(b[0].Value)) })
		n.Content = slices.Concat(pairs...)
	}
	for _, child := range n.Content {
		block(child)
	}
}

func keyRank(key string) int {
	if rank := slices.Index(firstKeys, key); rank >= 0 {
		return rank
	}
	return len(firstKeys)
}

// addComments adds the comments to the nodes.
func (d *Document) addComments(root *yaml.Node) {
	if len(d.Comment) > 0 {
		root.HeadComment = comment(d.Comment)
	}
	rules := child(child(root, "spec"), "rules")
	if rules == nil {
		return
	}
	for i, rule := range rules.Content {
		if lines := d.Rules[i]; len(lines) > 0 {
			rule.HeadComment = comment(lines)
		}
	}
}

// child returns the value of a key, or nil.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
