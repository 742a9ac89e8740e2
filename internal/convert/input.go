package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Configuration is a cloudflared configuration.
type Configuration struct {
	// Name names the input in messages.
	Name string
	// Rules are the ingress rules; the first one that matches a request answers it.
	Rules []Rule
	// Origin are the settings for all rules.
	Origin Settings
	// Connector are the top-level keys with an equivalent, by name.
	Connector map[string]Value

	remote bool
	notes  []Note
	errs   []error
	// mappings have the keys of the mappings that were read; nil while one is being read.
	mappings map[*yaml.Node][]entry
}

// Rule is an ingress rule.
type Rule struct {
	// Index counts from 0. Line is 0 for a remote configuration.
	Index, Line             int
	Hostname, Path, Service string
	// Own are the settings in the rule's own originRequest.
	Own Settings
	// Access is the rule's access block, or nil.
	Access *Access

	lines map[string]int
}

// Value is a scalar with its line.
type Value struct {
	Text string
	Line int
}

// Access is a rule's access block. cloudflared enforces it only there.
type Access struct {
	Required    bool     `yaml:"required"`
	TeamName    string   `yaml:"teamName"`
	AUDTag      []string `yaml:"audTag"`
	Environment string   `yaml:"environment"`
}

// Parse parses a configuration file. It returns an error with a line for everything that
// cloudflared rejects, because it would reject the whole file.
func Parse(name string, text []byte) (*Configuration, error) { return parse(name, text, false) }

// ParseRemote parses a configuration as the Cloudflare API returns it, with durations in
// seconds.
func ParseRemote(name string, text []byte) (*Configuration, error) { return parse(name, text, true) }

func parse(name string, text []byte, remote bool) (*Configuration, error) {
	c := &Configuration{Name: name, Origin: Settings{}, Connector: map[string]Value{}, remote: remote, mappings: map[*yaml.Node][]entry{}}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var root yaml.Node
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: the configuration is empty", name)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := manifestError(root.Content[0]); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, root.Content[0].Line, err)
	}
	c.readTop(root.Content[0])
	var next yaml.Node
	if err := decoder.Decode(&next); err == nil {
		c.add(NoteDifferent, next.Line, "---", "cloudflared reads only the first YAML document, and so does convert", "")
	}
	c.check()
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	return c, nil
}

// manifestError returns the error about an object of Kubernetes, or nil.
func manifestError(n *yaml.Node) error {
	var object struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
	}
	if err := n.Decode(&object); err != nil || object.APIVersion == "" || object.Kind == "" {
		return nil // other checks find what is wrong
	}
	switch problem := "this is a Kubernetes object of kind " + object.Kind + ", not a configuration of cloudflared"; object.Kind {
	case "ConfigMap":
		return errors.New(problem + "; save the configuration in its data to a file, and convert the file")
	case "Ingress":
		return errors.New(problem + "; convert it with ingress2gateway, see the guide about Ingresses")
	default:
		return errors.New(problem)
	}
}

// line returns the line for a note, or 0 if the input has no lines that a user knows.
func (c *Configuration) line(line int) int {
	if c.remote {
		return 0
	}
	return line
}

func (c *Configuration) add(kind NoteKind, line int, key, text, advice string) {
	c.notes = append(c.notes, Note{kind, c.line(line), key, text, advice})
}

// fail adds an error about something that cloudflared rejects.
func (c *Configuration) fail(line int, key, format string, args ...any) {
	place := Note{Line: c.line(line)}.Place(c.Name)
	c.errs = append(c.errs, fmt.Errorf("%s: %s: %s", place, key, fmt.Sprintf(format, args...)))
}

// entry is a mapping's key with its value.
type entry struct {
	key   string
	line  int
	value *yaml.Node
}

// resolve returns the node that an alias stands for.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// isNull reports whether a value is null or missing.
func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// entries returns a mapping's keys, and the keys that it merges from other mappings. It reads
// each mapping once: mappings that merge others several times would take exponential time.
func (c *Configuration) entries(n *yaml.Node, path string) []entry {
	n = resolve(n)
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		c.fail(n.Line, path, "must be a mapping")
		return nil
	}
	all, isRead := c.mappings[n]
	switch {
	case isRead && all == nil:
		c.fail(n.Line, path, "the mapping merges itself, which cloudflared rejects")
	case !isRead:
		c.mappings[n] = nil
		all = c.readEntries(n, path)
		c.mappings[n] = all
	}
	return all
}

// remoteKeys are the keys that cloudflared knows in a remote configuration.
var remoteKeys = slices.Concat(slices.Sorted(maps.Keys(originKeys)), proxyKeys, []string{
	"ingress", "originRequest", "warp-routing", "hostname", "path", "service", "bastionMode", "access", "required", "teamName", "audTag", "environment",
})

// keyName returns a key as cloudflared spells it. In a remote configuration, which is JSON,
// cloudflared accepts every letter case.
func (c *Configuration) keyName(key string) string {
	i := slices.IndexFunc(remoteKeys, func(known string) bool { return strings.EqualFold(known, key) })
	if !c.remote || i < 0 {
		return key
	}
	return remoteKeys[i]
}

// readEntries returns the result of entries for a mapping; it is not nil.
func (c *Configuration) readEntries(n *yaml.Node, path string) []entry {
	own, merged := []entry{}, []entry{}
	names := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), resolve(n.Content[i+1])
		if key.Tag == "!!merge" {
			merged = append(merged, c.merged(value, path)...)
			continue
		}
		name := c.keyName(key.Value)
		if names[name] {
			c.fail(key.Line, path, "the key %q is repeated", name)
		}
		names[name] = true
		own = append(own, entry{name, key.Line, value})
	}
	for _, e := range merged {
		if !names[e.key] {
			names[e.key] = true
			own = append(own, e)
		}
	}
	return own
}

// merged returns the keys in the mapping, or the list, after "<<".
func (c *Configuration) merged(n *yaml.Node, path string) []entry {
	if n.Kind != yaml.SequenceNode {
		return c.entries(n, path)
	}
	var all []entry
	seen := map[*yaml.Node]bool{}
	for _, item := range n.Content {
		if item = resolve(item); !seen[item] {
			seen[item] = true
			all = append(all, c.entries(item, path)...)
		}
	}
	return all
}

// text returns a scalar, as cloudflared decodes it into a string.
func (c *Configuration) text(e entry, path string) string {
	switch {
	case isNull(e.value):
		return ""
	case e.value.Kind != yaml.ScalarNode:
		c.fail(e.line, path, "must be a string")
	}
	return e.value.Value
}
