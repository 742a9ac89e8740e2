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

// The controller's ServiceAccount, as config/rbac has it. Its Lease is in the
// same namespace.
const (
	ControllerNamespace = "tunnel-gateway"
	controllerName      = "tunnel-gateway"
)

// identitySeconds is how long the token of an identity is valid: longer than
// any test runs.
const identitySeconds int64 = 6 * 60 * 60

// Identity writes a kubeconfig to path with which one is the ServiceAccount,
// and nobody else: by a token of its own, as a pod of it has. It returns the
// name by which the API server knows it. admin has to be allowed to ask for
// the token.
func Identity(ctx context.Context, admin *rest.Config, namespace, name, path string) (user string, err error) {
	kube, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return "", err
	}
	seconds := identitySeconds
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	token, err := kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	const only = "identity"
	config := clientcmdapi.NewConfig()
	config.Clusters[only] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData}
	config.AuthInfos[only] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts[only] = &clientcmdapi.Context{Cluster: only, AuthInfo: only, Namespace: namespace}
	config.CurrentContext = only
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return fmt.Sprintf("system:serviceaccount:%s:%s", namespace, name), nil
}

// ControllerIdentity applies the manifests in dir, which is config/rbac, and
// writes a kubeconfig to path that has exactly the permissions that they grant
// to the controller. It returns the name by which the API server knows it.
func ControllerIdentity(ctx context.Context, admin *rest.Config, dir, path string) (user string, err error) {
	kube, err := client.New(admin, client.Options{})
	if err != nil {
		return "", err
	}
	if err := kube.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ControllerNamespace}}); err != nil {
		return "", fmt.Errorf("making the controller's namespace: %w", err)
	}
	if err := createAll(ctx, kube, dir, func(*unstructured.Unstructured) bool { return true }); err != nil {
		return "", err
	}
	return Identity(ctx, admin, ControllerNamespace, controllerName, path)
}

// ControllerRoles applies the Roles and RoleBindings of the manifests in dir,
// which is config/rbac, in another namespace. So the identity of
// [ControllerIdentity] has the same permissions there as in its own.
func ControllerRoles(ctx context.Context, kube client.Client, dir, namespace string) error {
	return createAll(ctx, kube, dir, func(object *unstructured.Unstructured) bool {
		object.SetNamespace(namespace)
		return object.GetKind() == "Role" || object.GetKind() == "RoleBinding"
	})
}

// createAll creates the objects of the manifests in dir that choose returns true
// for. choose may change the object.
func createAll(ctx context.Context, kube client.Client, dir string, choose func(*unstructured.Unstructured) bool) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("there are no manifests in %s", dir)
	}
	for _, file := range files {
		if err := createFile(ctx, kube, file, choose); err != nil {
			return fmt.Errorf("applying %s: %w", file, err)
		}
	}
	return nil
}

func createFile(ctx context.Context, kube client.Client, file string, choose func(*unstructured.Unstructured) bool) error {
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
		case len(object.Object) == 0, object.GetKind() == "Kustomization", !choose(object):
			continue
		}
		if err := kube.Create(ctx, object); err != nil {
			return err
		}
	}
}
