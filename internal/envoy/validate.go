package envoy

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// Validate checks a message by the rules of its type, and each packed message by its own
// rules. Envoy rejects a whole table for one violation.
func Validate(m proto.Message) error {
	var errs []error
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		errs = append(errs, v.ValidateAll())
	}
	errs = append(errs, validatePacked(m.ProtoReflect()))
	return errors.Join(errs...)
}

func validatePacked(m protoreflect.Message) error {
	if packed, ok := m.Interface().(*anypb.Any); ok {
		unpacked, err := packed.UnmarshalNew()
		if err != nil {
			return fmt.Errorf("decode %s: %w", packed.TypeUrl, err)
		}
		return Validate(unpacked)
	}
	var errs []error
	check := func(v protoreflect.Value) {
		if err := validatePacked(v.Message()); err != nil {
			errs = append(errs, err)
		}
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.IsMap():
			if field.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { check(v); return true })
			}
		case field.Message() == nil:
		case field.IsList():
			for i := range v.List().Len() {
				check(v.List().Get(i))
			}
		default:
			check(v)
		}
		return true
	})
	return errors.Join(errs...)
}
