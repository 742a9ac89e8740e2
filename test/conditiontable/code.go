package main

import (
	"errors"
	"fmt"
	"go/types"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// packages are the packages that write conditions and emit events, and tunnels is
// the one whose catalogues describe everything about tunnels.
const tunnels = module + "internal/tunnel"

var packages = []string{
	module + "internal/gateway", module + "internal/connector", module + "internal/status", module + "internal/controller", tunnels,
}

// catalogued are the types of which the catalogues of package tunnel have all
// values.
var catalogued = []string{tunnels + ".Reason", tunnels + ".EventReason"}

// code is what the product can report, as the code has it. Every entry has the
// place that reports it.
type code struct {
	// types and reasons are those of conditions.
	types, reasons found
	// events have the type and the reason. Where the type depends on what
	// happened, it is "".
	events map[[2]string]string
}

func readCode(folder string) (*code, error) {
	s, err := readSource(folder, packages...)
	if err != nil {
		return nil, err
	}
	f := newFlow(s, catalogued...)
	condition, err := f.field("k8s.io/apimachinery/pkg/apis/meta/v1", "Condition")
	if err != nil {
		return nil, err
	}
	c := &code{}
	if c.types, err = f.strings(condition["Type"]); err != nil {
		return nil, err
	}
	if c.reasons, err = f.strings(condition["Reason"]); err != nil {
		return nil, err
	}
	eventf := f.function("events.EventRecorder).Eventf")
	if eventf == nil {
		return nil, errors.New("nothing calls EventRecorder.Eventf, so the events are not known")
	}
	const kind, reason = 2, 3 // of Eventf's parameters
	if c.events, err = f.pairs(eventf, kind, reason, condition["Reason"]); err != nil {
		return nil, err
	}
	c.addCatalogues()
	return c, nil
}

// addCatalogues adds what the catalogues of package tunnel describe. Its tests
// compare them with its code.
func (c *code) addCatalogues() {
	for _, entry := range slices.Concat(tunnel.Catalogue, tunnel.States) {
		c.reasons[string(entry.Reason)] = tunnels
	}
	for _, entry := range tunnel.Events {
		c.events[[2]string{eventType(entry.Warning), string(entry.Reason)}] = tunnels
	}
}

// eventType returns the type of an event.
func eventType(warning bool) string {
	if warning {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// field returns the fields of a struct of another module by their names.
func (f *flow) field(path, name string) (map[string]types.Object, error) {
	for _, p := range f.packages {
		for _, imported := range p.Imports() {
			if imported.Path() != path {
				continue
			}
			if object, ok := imported.Scope().Lookup(name).(*types.TypeName); ok {
				fields := map[string]types.Object{}
				for field := range object.Type().Underlying().(*types.Struct).Fields() {
					fields[field.Name()] = field
				}
				return fields, nil
			}
		}
	}
	return nil, fmt.Errorf("no package imports %s.%s", path, name)
}

// function returns a function that is called, by the end of its full name, or
// nil when nobody calls it.
func (f *flow) function(end string) *types.Func {
	for called := range f.calls {
		if strings.HasSuffix(called.FullName(), end) {
			return called
		}
	}
	return nil
}
