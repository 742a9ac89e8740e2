package integration

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

const samplesDir = "../../config/samples"

// readSample returns the objects in a sample file. It replaces the GatewayClass and the
// controller's namespace with those of the environment.
func (env *environment) readSample(file string) []*unstructured.Unstructured {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(samplesDir, file))
	Expect(err).NotTo(HaveOccurred())
	objects, err := decodeManifests(bytes.NewReader(text))
	Expect(err).NotTo(HaveOccurred(), file)
	for _, object := range objects {
		if object.GetNamespace() == cluster.ControllerNamespace {
			object.SetNamespace(env.controllerNamespace)
		}
		switch object.GetKind() {
		case "GatewayClass":
			object.SetName(env.className)
			if namespace, _, _ := unstructured.NestedString(object.Object, "spec", "parametersRef", "namespace"); namespace == cluster.ControllerNamespace {
				Expect(unstructured.SetNestedField(object.Object, env.controllerNamespace, "spec", "parametersRef", "namespace")).To(Succeed())
			}
			Expect(unstructured.SetNestedField(object.Object, env.controllerName, "spec", "controllerName")).To(Succeed())
		case "Gateway":
			Expect(unstructured.SetNestedField(object.Object, env.className, "spec", "gatewayClassName")).To(Succeed())
		}
	}
	return objects
}

// decodeManifests returns the manifests' objects without changes.
func decodeManifests(manifests io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(manifests, 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// applySamples applies the objects in the sample files as the client's user. It fails if
// an object contains an unknown field.
func (env *environment) applySamples(c client.Client, files ...string) {
	GinkgoHelper()
	c = client.WithFieldValidation(c, metav1.FieldValidationStrict)
	for _, file := range files {
		for _, object := range env.readSample(file) {
			err := c.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"))
			Expect(err).NotTo(HaveOccurred(), "%s: %s %s", file, object.GetKind(), object.GetName())
		}
	}
}

// clientAs returns a client that impersonates a user in a group, like kubectl with
// --as and --as-group.
func clientAs(user, group string) client.Client {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	config.QPS, config.Burst = 1000, 1000
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{group}}
	c, err := client.New(config, client.Options{Scheme: kube.Scheme(), Mapper: kube.RESTMapper()})
	Expect(err).NotTo(HaveOccurred())
	return c
}
