package connector

import (
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EnvoyRemoval returns the JSON patch that removes Envoy from a Deployment that should
// have none, or nil. Server-side apply does not remove Envoy if another client has
// changed it or has rolled back the Deployment: the container then belongs to that
// client, too. Its pods would never become ready, because the controller has no
// configuration for their Envoys. d must be the Deployment as read, including its
// managedFields.
func EnvoyRemoval(in Input, d *appsv1.Deployment, fieldManager string) []byte {
	index := slices.IndexFunc(d.Spec.Template.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == envoyName })
	if in.Envoy != nil || index < 0 || !slices.ContainsFunc(d.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager != fieldManager && ownsEnvoy(e)
	}) {
		return nil
	}
	path := fmt.Sprintf("/spec/template/spec/initContainers/%d", index)
	return fmt.Appendf(nil, `[{"op":"test","path":"%s/name","value":%q},{"op":"remove","path":%q}]`, path, envoyName, path)
}

// ownsEnvoy reports whether the entry names fields in Envoy's container.
func ownsEnvoy(entry metav1.ManagedFieldsEntry) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	var owned struct {
		Spec struct {
			Template struct {
				Spec struct {
					InitContainers map[string]any `json:"f:initContainers"`
				} `json:"f:spec"`
			} `json:"f:template"`
		} `json:"f:spec"`
	}
	err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned)
	return err == nil && owned.Spec.Template.Spec.InitContainers[`k:{"name":"`+envoyName+`"}`] != nil
}
