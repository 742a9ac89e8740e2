package cluster

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
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
