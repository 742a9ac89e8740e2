package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The namespace and name that config/rbac gives the controller's ServiceAccount. The
// controller's Lease is in the same namespace.
const (
	ControllerNamespace = "tunnel-gateway"
	controllerName      = "tunnel-gateway"
)

// A ServiceAccount token is valid for identitySeconds, which is longer than any test
// takes.
const identitySeconds int64 = 6 * 60 * 60

// Identity writes a kubeconfig for the ServiceAccount to path. It contains a token, like
// a pod's kubeconfig, and no other credentials. It returns the ServiceAccount's user
// name. admin must be allowed to request the token.
func Identity(ctx context.Context, admin *rest.Config, namespace, name, path string) (user string, err error) {
	kube, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return "", err
	}
	seconds := identitySeconds
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	token, err := kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request a token for ServiceAccount %s/%s: %w", namespace, name, err)
	}
	const entry = "identity"
	config := clientcmdapi.NewConfig()
	config.Clusters[entry] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData}
	config.AuthInfos[entry] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts[entry] = &clientcmdapi.Context{Cluster: entry, AuthInfo: entry, Namespace: namespace}
	config.CurrentContext = entry
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("write the kubeconfig of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return fmt.Sprintf("system:serviceaccount:%s:%s", namespace, name), nil
}

// ControllerIdentity applies the manifests in dir, which is config/rbac, and
// writes a kubeconfig to path. The kubeconfig has exactly the permissions that the
// manifests grant to the controller. It returns the controller's user name.
func ControllerIdentity(ctx context.Context, admin *rest.Config, dir, path string) (user string, err error) {
	kube, err := client.New(admin, client.Options{})
	if err != nil {
		return "", err
	}
	if err := kube.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ControllerNamespace}}); err != nil {
		return "", fmt.Errorf("create the controller's namespace: %w", err)
	}
	if err := createAll(ctx, kube, dir, func(*unstructured.Unstructured) bool { return true }); err != nil {
		return "", err
	}
	return Identity(ctx, admin, ControllerNamespace, controllerName, path)
}

// ControllerRoles applies the Roles and RoleBindings from the manifests in dir, which is
// config/rbac, in another namespace. The identity from [ControllerIdentity] then has the
// same permissions there as in its own namespace.
func ControllerRoles(ctx context.Context, kube client.Client, dir, namespace string) error {
	return createAll(ctx, kube, dir, func(object *unstructured.Unstructured) bool {
		object.SetNamespace(namespace)
		return object.GetKind() == "Role" || object.GetKind() == "RoleBinding"
	})
}

// createAll creates the objects in dir's manifests for which selects returns true.
// selects may change the object.
func createAll(ctx context.Context, kube client.Client, dir string, selects func(*unstructured.Unstructured) bool) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no manifests found in %s", dir)
	}
	for _, file := range files {
		if err := createFile(ctx, kube, file, selects); err != nil {
			return fmt.Errorf("apply %s: %w", file, err)
		}
	}
	return nil
}

func createFile(ctx context.Context, kube client.Client, file string, selects func(*unstructured.Unstructured) bool) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(object)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(object.Object) == 0, object.GetKind() == "Kustomization", !selects(object):
			continue
		}
		if err := kube.Create(ctx, object); err != nil {
			return err
		}
	}
}
