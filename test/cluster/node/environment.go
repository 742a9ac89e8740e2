package node

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// variables are environment variables. For each name, a later value replaces an earlier
// one.
type variables struct {
	names  []string // as first set
	values map[string]string
}

func (v *variables) set(name, value string) {
	if _, ok := v.values[name]; !ok {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

var variableReference = regexp.MustCompile(`\$\$|\$\([^()]*\)`)

// expand replaces $(NAME) by the variable's value, if it is set, and $$ by $.
func (v *variables) expand(text string) string {
	return variableReference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		if value, ok := v.values[found[2:len(found)-1]]; ok {
			return value
		}
		return found
	})
}

// environment returns the container's environment variables, without rewriting
// paths.
func (c *container) environment(ctx context.Context) (*variables, error) {
	v := &variables{values: map[string]string{}}
	v.set("HOSTNAME", c.pod.object.Name)
	for _, source := range c.spec.EnvFrom {
		data, err := c.envFrom(ctx, source)
		if err != nil {
			return nil, err
		}
		for name, value := range data {
			v.set(source.Prefix+name, string(value))
		}
	}
	for _, variable := range c.spec.Env {
		value, found := v.expand(variable.Value), true
		if variable.ValueFrom != nil {
			var err error
			if value, found, err = c.valueFrom(ctx, variable.ValueFrom); err != nil {
				return nil, err
			}
		}
		if found {
			v.set(variable.Name, value)
		}
	}
	return v, nil
}

// envFrom returns the data in the Secret or ConfigMap that the source refers to.
func (c *container) envFrom(ctx context.Context, source corev1.EnvFromSource) (map[string][]byte, error) {
	switch {
	case source.SecretRef != nil:
		return c.pod.secret(ctx, source.SecretRef.Name, source.SecretRef.Optional)
	case source.ConfigMapRef != nil:
		return c.pod.configMap(ctx, source.ConfigMapRef.Name, source.ConfigMapRef.Optional)
	default:
		return nil, configError("envFrom refers to neither a Secret nor a ConfigMap")
	}
}

// valueFrom returns the source's value, or false if it is optional and does not exist.
func (c *container) valueFrom(ctx context.Context, source *corev1.EnvVarSource) (string, bool, error) {
	switch {
	case source.FieldRef != nil:
		value, err := c.pod.field(source.FieldRef.FieldPath)
		return value, err == nil, err
	case source.ResourceFieldRef != nil:
		value, err := c.resourceField(source.ResourceFieldRef)
		return value, err == nil, err
	case source.SecretKeyRef != nil:
		ref := source.SecretKeyRef
		data, err := c.pod.secret(ctx, ref.Name, ref.Optional)
		return lookUpKey(data, "Secret "+ref.Name, ref.Key, ref.Optional, err)
	case source.ConfigMapKeyRef != nil:
		ref := source.ConfigMapKeyRef
		data, err := c.pod.configMap(ctx, ref.Name, ref.Optional)
		return lookUpKey(data, "ConfigMap "+ref.Name, ref.Key, ref.Optional, err)
	default:
		return "", false, configError("the node supports only fieldRef, resourceFieldRef, secretKeyRef and configMapKeyRef in valueFrom")
	}
}

// lookUpKey returns the key's value, or false if it is optional and does not exist. If
// err is not nil, lookUpKey returns it.
func lookUpKey(data map[string][]byte, object, key string, optional *bool, err error) (string, bool, error) {
	value, ok := data[key]
	if err == nil && !ok && !ptr.Deref(optional, false) {
		err = configError("couldn't find key %s in %s", key, object)
	}
	return string(value), ok, err
}

// field returns a Pod field. It supports the fields that Kubernetes documents under
// "Information available via fieldRef" on its page about the downward API.
func (p *pod) field(path string) (string, error) {
	if name, key, ok := strings.Cut(strings.TrimSuffix(path, "']"), "['"); ok {
		switch name {
		case "metadata.labels":
			return p.object.Labels[key], nil
		case "metadata.annotations":
			return p.object.Annotations[key], nil
		}
	}
	value, ok := map[string]string{
		"metadata.name":           p.object.Name,
		"metadata.namespace":      p.object.Namespace,
		"metadata.uid":            string(p.object.UID),
		"spec.nodeName":           p.node.name,
		"spec.serviceAccountName": p.object.Spec.ServiceAccountName,
		"status.hostIP":           hostIP,
		"status.hostIPs":          hostIP,
		"status.podIP":            p.ip.String(),
		"status.podIPs":           p.ip.String(),
	}[path]
	if !ok {
		return "", configError("the node does not support the field %s", path)
	}
	return value, nil
}

// resourceField returns a container resource in units of the divisor, rounded up. A
// kubelet would replace a missing limit with its node's capacity.
func (c *container) resourceField(ref *corev1.ResourceFieldSelector) (string, error) {
	kind, name, _ := strings.Cut(ref.Resource, ".")
	resources := map[string]corev1.ResourceList{"limits": c.spec.Resources.Limits, "requests": c.spec.Resources.Requests}[kind]
	quantity, ok := resources[corev1.ResourceName(name)]
	if !ok || ref.ContainerName != "" && ref.ContainerName != c.spec.Name {
		return "", configError("the container %s has no %s, or resourceFieldRef names another container", c.spec.Name, ref.Resource)
	}
	divisor := ref.Divisor.MilliValue()
	if divisor == 0 {
		divisor = 1000
	}
	return strconv.FormatInt((quantity.MilliValue()+divisor-1)/divisor, 10), nil
}

// secret returns the Secret's data, or nil if it is optional and does not exist.
func (p *pod) secret(ctx context.Context, name string, optional *bool) (map[string][]byte, error) {
	object := &corev1.Secret{}
	err := p.read(ctx, name, object, "secret", optional)
	return object.Data, err
}

// configMap returns the ConfigMap's data, or nil if it is optional and does not exist.
func (p *pod) configMap(ctx context.Context, name string, optional *bool) (map[string][]byte, error) {
	object := &corev1.ConfigMap{}
	err := p.read(ctx, name, object, "configmap", optional)
	data := object.BinaryData
	for key, value := range object.Data {
		if data == nil {
			data = map[string][]byte{}
		}
		data[key] = []byte(value)
	}
	return data, err
}

// read reads an object in the Pod's namespace. It returns no error if the object is
// optional and does not exist.
func (p *pod) read(ctx context.Context, name string, object client.Object, kind string, optional *bool) error {
	err := p.node.kube.Get(ctx, client.ObjectKey{Namespace: p.object.Namespace, Name: name}, object)
	switch {
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return configError("read %s %q: %s", kind, name, err)
	case ptr.Deref(optional, false):
		return nil
	default:
		return configError("%s %q not found", kind, name)
	}
}
