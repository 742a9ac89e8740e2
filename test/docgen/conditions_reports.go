package main

import (
	"errors"
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// module is the import path of the module, with a slash.
const module = "github.com/tunnel-gateway/tunnel-gateway/"

// tunnelPackage is the package whose catalogue describes all reasons and events
// of tunnels.
const tunnelPackage = module + "internal/tunnel"

// reportingPackages are the packages that set conditions and emit events.
var reportingPackages = []string{
	module + "internal/gateway", module + "internal/connector", module + "internal/status", module + "internal/controller", tunnelPackage,
}

// cataloguedTypes are the types whose values are all in the catalogue of package
// tunnel.
var cataloguedTypes = []string{tunnelPackage + ".Reason", tunnelPackage + ".EventReason"}

// reports are the conditions, reasons and events that the code can report, each
// with a position in the code.
type reports struct {
	// types and reasons are the types and reasons of conditions.
	types, reasons positions
	events         map[eventKey]string
}

// eventKey identifies an event.
type eventKey struct {
	// eventType is Normal or Warning, or "" if the code does not pass a constant.
	eventType string
	reason    string
}

// readReports reads the code of the module whose root is the directory.
func readReports(directory string) (*reports, error) {
	s, err := readSource(directory, reportingPackages...)
	if err != nil {
		return nil, err
	}
	f := newDataFlow(s, cataloguedTypes...)
	condition, err := s.structFields("k8s.io/apimachinery/pkg/apis/meta/v1", "Condition")
	if err != nil {
		return nil, err
	}
	r := &reports{}
	if r.types, err = f.strings(condition["Type"]); err != nil {
		return nil, err
	}
	if r.reasons, err = f.strings(condition["Reason"]); err != nil {
		return nil, err
	}
	eventf := f.calledFunction("events.EventRecorder).Eventf")
	if eventf == nil {
		return nil, errors.New("no code calls EventRecorder.Eventf, so the events are unknown")
	}
	const eventType, reason = 2, 3 // the parameters of Eventf
	if r.events, err = f.events(eventf, eventType, reason, condition["Reason"]); err != nil {
		return nil, err
	}
	r.addCatalogue()
	return r, nil
}

// addCatalogue adds the reasons and events of package tunnel. The tests of that
// package compare its catalogue with its code.
func (r *reports) addCatalogue() {
	for _, entry := range slices.Concat(tunnel.Catalogue, tunnel.States) {
		r.reasons[string(entry.Reason)] = tunnelPackage
	}
	for _, entry := range tunnel.Events {
		r.events[eventKey{eventType(entry.Warning), string(entry.Reason)}] = tunnelPackage
	}
}

// structFields returns the fields of a struct of another module by name.
func (s *source) structFields(path, name string) (map[string]types.Object, error) {
	for _, p := range s.packages {
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

// calledFunction returns the function whose full name has the suffix, or nil if
// no code calls it.
func (f *dataFlow) calledFunction(suffix string) *types.Func {
	for function := range f.calls {
		if strings.HasSuffix(function.FullName(), suffix) {
			return function
		}
	}
	return nil
}
