package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
)

// coreKind returns the loader for a kind that is built into the API server.
func coreKind(of kinds.Kind) func() (kind, error) {
	k := kind{stored: of.GVK(), served: []string{of.GVK().Version}, namespaced: !of.ClusterScoped}
	decode := decodeStrict
	if of.HasVersions() {
		k.served, decode = of.Versions, decodeKnown
	}
	k.decode = func(u *unstructured.Unstructured) (client.Object, []error) {
		object := of.New()
		if errs := decode(u, object); len(errs) > 0 {
			return nil, errs
		}
		errs := apivalidation.ValidateObjectMetaAccessor(object, k.namespaced, nameValidation(object), field.NewPath("metadata"))
		return object, toErrors(append(errs, applyDefaults(object)...))
	}
	return func() (kind, error) { return k, nil }
}

// nameValidation returns the function that validates the object's name.
func nameValidation(object client.Object) apivalidation.ValidateNameFunc {
	switch object.(type) {
	case *corev1.Namespace, *corev1.Service:
		return apivalidation.NameIsDNSLabel
	default:
		return apivalidation.NameIsDNSSubdomain
	}
}

// decodeStrict decodes u into an object. It rejects unknown and duplicate fields.
func decodeStrict(u *unstructured.Unstructured, object client.Object) []error {
	data, err := json.Marshal(u.Object)
	if err != nil {
		return []error{fmt.Errorf("encode the object: %w", err)}
	}
	unknown, err := kjson.UnmarshalStrict(data, object)
	if err != nil {
		return []error{err}
	}
	return fieldErrors(unknown, func(path string) string {
		return describeUnknown(newTypeFields(reflect.TypeOf(object)), u.Object, path)
	})
}

// decodeKnown decodes the fields of u that decisions read, and ignores the others: they
// depend on the version that the cluster has.
func decodeKnown(u *unstructured.Unstructured, object client.Object) []error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, object); err != nil {
		return []error{err}
	}
	return nil
}

// applyDefaults applies the API server's defaults and checks that routing depends on,
// and no others.
func applyDefaults(object client.Object) field.ErrorList {
	switch object := object.(type) {
	case *corev1.Namespace:
		setNamespaceDefaults(object)
	case *corev1.Service:
		setServiceDefaults(object)
		return validateService(object)
	case *corev1.Secret:
		setSecretDefaults(object)
	case *discoveryv1.EndpointSlice:
		setEndpointSliceDefaults(object)
	}
	return nil
}

// setNamespaceDefaults sets the label that selectors use to match a namespace by
// name.
func setNamespaceDefaults(n *corev1.Namespace) {
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[corev1.LabelMetadataName] = n.Name
}

func setServiceDefaults(s *corev1.Service) {
	if s.Spec.Type == "" {
		s.Spec.Type = corev1.ServiceTypeClusterIP
	}
	for i := range s.Spec.Ports {
		port := &s.Spec.Ports[i]
		if port.Protocol == "" {
			port.Protocol = corev1.ProtocolTCP
		}
		if port.TargetPort == intstr.FromInt32(0) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
}

// validateService validates the ports. Only a headless Service or an ExternalName
// Service may have no ports.
func validateService(s *corev1.Service) field.ErrorList {
	path := field.NewPath("spec", "ports")
	if len(s.Spec.Ports) == 0 && s.Spec.ClusterIP != corev1.ClusterIPNone && s.Spec.Type != corev1.ServiceTypeExternalName {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	for i, port := range s.Spec.Ports {
		errs = append(errs, validatePort(path.Index(i).Child("port"), port.Port)...)
		if port.TargetPort.Type == intstr.Int && port.TargetPort.IntVal != port.Port {
			errs = append(errs, validatePort(path.Index(i).Child("targetPort"), port.TargetPort.IntVal)...)
		}
	}
	return errs
}

func validatePort(path *field.Path, port int32) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range utilvalidation.IsValidPortNum(int(port)) {
		errs = append(errs, field.Invalid(path, port, problem))
	}
	return errs
}

// setSecretDefaults merges stringData, which the API server does not store, into
// data.
func setSecretDefaults(s *corev1.Secret) {
	if s.Type == "" {
		s.Type = corev1.SecretTypeOpaque
	}
	if len(s.StringData) > 0 && s.Data == nil {
		s.Data = make(map[string][]byte, len(s.StringData))
	}
	for key, value := range s.StringData {
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

func setEndpointSliceDefaults(s *discoveryv1.EndpointSlice) {
	for i := range s.Ports {
		port := &s.Ports[i]
		if port.Name == nil {
			port.Name = ptr.To("")
		}
		if port.Protocol == nil {
			port.Protocol = ptr.To(corev1.ProtocolTCP)
		}
	}
}
