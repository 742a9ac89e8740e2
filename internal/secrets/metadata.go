// Package secrets describes the metadata of Secrets, and reads the API tokens in Secrets.
// The controller watches only their metadata and reads their content one by one from the
// API server.
//
// The manager's client never uses its cache for Secrets, not even for their metadata. To
// read the metadata without a request to the API server, use the cache itself.
package secrets

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Metadata returns an object with the name, into which a client reads only the Secret's
// metadata.
func Metadata(name types.NamespacedName) *metav1.PartialObjectMetadata {
	secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return secret
}
