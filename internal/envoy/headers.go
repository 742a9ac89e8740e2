package envoy

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// headers are header changes as Envoy applies them: it removes before it adds.
type headers struct {
	add    []*corev3.HeaderValueOption
	remove []string
}

// compose returns changes with the same effect as the given changes one after the other.
// Envoy itself would apply the changes for a backend before the changes for its route.
func compose(all ...*routing.HeaderChanges) headers {
	var c composition
	c.apply(all...)
	return c.headers()
}

func (c *composition) apply(all ...*routing.HeaderChanges) {
	for _, changes := range all {
		if changes == nil {
			continue
		}
		for _, name := range changes.Remove {
			c.of(name).replace()
		}
		for _, h := range changes.Set {
			c.of(h.Name).replace(literal(h))
		}
		for _, h := range changes.Add {
			c.of(h.Name).append(literal(h))
		}
	}
}

// literal returns a header whose value Envoy does not change.
func literal(h routing.Header) *corev3.HeaderValue {
	return &corev3.HeaderValue{Key: strings.ToLower(h.Name), Value: strings.ReplaceAll(h.Value, "%", "%%")} // Envoy expands "%"
}

// visitorHost adds the host that the visitor requested, before Envoy rewrites it.
func visitorHost() *corev3.HeaderValue {
	return &corev3.HeaderValue{Key: "x-forwarded-host", Value: "%REQ(:AUTHORITY)%"}
}

// composition records how changes affect each header, in the order of first mention.
type composition struct {
	names  []string
	byName map[string]*headerEffect
}

// headerEffect is the effect on one header: the values are added, after the original
// values are removed if they are replaced.
type headerEffect struct {
	replaced bool
	values   []*corev3.HeaderValue
}

func (e *headerEffect) replace(values ...*corev3.HeaderValue) { e.replaced, e.values = true, values }

func (e *headerEffect) append(value *corev3.HeaderValue) { e.values = append(e.values, value) }

func (c *composition) of(name string) *headerEffect {
	key := strings.ToLower(name)
	if c.byName == nil {
		c.byName = map[string]*headerEffect{}
	}
	if c.byName[key] == nil {
		c.byName[key] = &headerEffect{}
		c.names = append(c.names, key)
	}
	return c.byName[key]
}

func (c *composition) headers() headers {
	var h headers
	for _, name := range c.names {
		effect := c.byName[name]
		if effect.replaced && len(effect.values) == 0 {
			h.remove = append(h.remove, name)
		}
		for i, value := range effect.values {
			action := corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
			if effect.replaced && i == 0 {
				action = corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
			}
			h.add = append(h.add, &corev3.HeaderValueOption{Header: value, AppendAction: action, KeepEmptyValue: true})
		}
	}
	return h
}
