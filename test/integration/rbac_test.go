package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// The controller's ServiceAccount, as config/rbac has it.
const (
	identityNamespace = "tunnel-gateway"
	identityName      = "tunnel-gateway"
	rbacFiles         = "../../config/rbac/*.yaml"
)

// installIdentity applies config/rbac and writes a kubeconfig to path that has
// exactly its permissions. It returns who one is with it.
func installIdentity(ctx context.Context, admin *rest.Config, path string) (user string, err error) {
	kube, err := client.New(admin, client.Options{})
	if err != nil {
		return "", err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: identityNamespace}}
	if err := kube.Create(ctx, namespace); err != nil {
		return "", err
	}
	files, err := filepath.Glob(rbacFiles)
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("%d files of %s: %w", len(files), rbacFiles, err)
	}
	for _, file := range files {
		if err := createAll(ctx, kube, file); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
	}
	return cluster.Identity(ctx, admin, identityNamespace, identityName, path)
}

// createAll creates every object of the file.
func createAll(ctx context.Context, kube client.Client, file string) error {
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
		case len(object.Object) == 0, object.GetKind() == "Kustomization":
			continue
		}
		if err := kube.Create(ctx, object); err != nil {
			return err
		}
	}
}

// checkNoneRefused fails when the API server refused a controller anything.
func checkNoneRefused(t *testing.T, part, log, user string) {
	t.Helper()
	requests, err := cluster.ReadAudit(log, user)
	if err != nil || len(requests) == 0 {
		t.Errorf("part %q: the audit log has %d requests of %s: %v", part, len(requests), user, err)
	}
	refused := map[string]bool{} // each once
	for _, r := range requests {
		if r.Code == http.StatusForbidden || r.Code == http.StatusUnauthorized {
			r.Namespace, r.Name = "", ""
			refused[r.String()] = true
		}
	}
	for what := range refused {
		t.Errorf("part %q: the controller is not allowed to %s; charts/tunnel-gateway/templates/_rules.tpl says what it is", part, what)
	}
}
