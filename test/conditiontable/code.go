package main

import (
	"errors"
	"fmt"
	"go/constant"
	"go/types"
	"strings"
)

// The packages that say something about objects, and the one whose errors the
// status of a Gateway repeats.
const controllerPackage = module + "internal/controller"

var packages = []string{
	module + "internal/gateway", module + "internal/connector", module + "internal/status", controllerPackage,
}

// code is what the product can say, as the code has it. Every entry has the
// place that says so.
type code struct {
	// types and reasons are those of conditions.
	types, reasons found
	// events have the type and the reason. Where the type depends on what
	// happened, it is "".
	events map[[2]string]string
	// errors are the controller's types of errors, by name.
	errors found
	// texts are all constant strings of our packages.
	texts []string
}

func readCode(folder string) (*code, error) {
	s, err := readSource(folder, packages...)
	if err != nil {
		return nil, err
	}
	f := newFlow(s)
	condition, err := f.field("k8s.io/apimachinery/pkg/apis/meta/v1", "Condition")
	if err != nil {
		return nil, err
	}
	c := &code{errors: f.errorTypes(controllerPackage), texts: f.constants()}
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
	c.events, err = f.pairs(eventf, kind, reason, condition["Reason"])
	return c, err
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

// errorTypes returns the types of a package that are errors.
func (f *flow) errorTypes(path string) found {
	failure := types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
	all, scope := found{}, f.packages[path].Scope()
	for _, name := range scope.Names() {
		object, ok := scope.Lookup(name).(*types.TypeName)
		if ok && !types.IsInterface(object.Type()) && types.Implements(types.NewPointer(object.Type()), failure) {
			all[name] = f.fset.Position(object.Pos()).String()
		}
	}
	return all
}

// constants returns every constant string of our packages, joined ones as one.
func (f *flow) constants() []string {
	var all []string
	for _, typed := range f.info.Types {
		if typed.Value != nil && typed.Value.Kind() == constant.String {
			all = append(all, constant.StringVal(typed.Value))
		}
	}
	return all
}

// says reports whether the code has a message with the text.
func (c *code) says(text string) bool {
	for _, constant := range c.texts {
		if strings.Contains(strings.ToLower(constant), strings.ToLower(text)) {
			return true
		}
	}
	return false
}
