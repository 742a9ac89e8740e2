package externaldns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

// environment is zones in the simulator and two namespaces. The platform team's namespace
// contains the Gateway "shared". The other team's namespace contains ListenerSets and
// routes.
type environment struct {
	dns        *environmentZones
	zoneNames  []string
	token      string // external-dns's API token
	platform   string // the platform team's namespace
	team       string // the other team's namespace
	zone       string // the first zone's name
	kubeconfig string // for external-dns
}

// environmentManifest contains the objects that all environments need. The function
// expand replaces its placeholders.
const environmentManifest = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cloudflare-tunnel}
spec: {controllerName: tunnelgateway.dev/controller}
---
apiVersion: v1
kind: Namespace
metadata: {name: PLATFORM}
---
apiVersion: v1
kind: Namespace
metadata: {name: TEAM}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: PLATFORM}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: TEAM}
spec: {ports: [{name: http, port: 80}, {name: grpc, port: 443, appProtocol: https}]}
`

// newEnvironment creates an environment with unique namespaces and a unique zone.
func newEnvironment() *environment {
	id := "env" + rand.String(6)
	e := &environment{platform: id + "-platform", team: id + "-team", zone: id + ".example"}
	e.addZones(e.zone)
	e.apply(environmentManifest)
	return e
}

// addZones adds the environment's zones. external-dns gets the sample's permissions in the
// cluster.
func (e *environment) addZones(names ...string) {
	e.token = "token-" + names[0]
	e.dns, e.zoneNames, e.kubeconfig = addZones(e.token, names...), names, kubeconfig
}

// expand replaces the placeholders PLATFORM, TEAM and ZONE.
func (e *environment) expand(s string) string {
	return strings.NewReplacer("PLATFORM", e.platform, "TEAM", e.team, "ZONE", e.zone).Replace(s)
}

// apply applies manifests with placeholders.
func (e *environment) apply(manifests string) {
	GinkgoHelper()
	applyAll(context.Background(), strings.NewReader(e.expand(manifests)))
}

// applyFile applies the manifests in a file.
func applyFile(ctx context.Context, path string) {
	GinkgoHelper()
	file, err := os.Open(path)
	Expect(err).NotTo(HaveOccurred())
	defer file.Close() //nolint:errcheck // the file is only read
	applyAll(ctx, file)
}

// applyAll applies manifests with server-side apply.
func applyAll(ctx context.Context, manifests io.Reader) {
	GinkgoHelper()
	decoder := yaml.NewYAMLOrJSONDecoder(manifests, 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return
		}
		Expect(err).NotTo(HaveOccurred())
		if object.Object == nil {
			continue
		}
		apply := client.ApplyConfigurationFromUnstructured(object)
		Expect(kube.Apply(ctx, apply, client.FieldOwner("test"), client.ForceOwnership)).To(Succeed(), "%s", object.GetName())
	}
}

// object returns an empty Gateway API object. The name has the form "namespace/name", for
// example "TEAM/web".
func (e *environment) object(kind, name string) *unstructured.Unstructured {
	namespace, name, _ := strings.Cut(e.expand(name), "/")
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(gatewayv1.GroupVersion.String())
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func (e *environment) deleteObject(kind, name string) {
	GinkgoHelper()
	Expect(kube.Delete(context.Background(), e.object(kind, name))).To(Succeed())
}

func (e *environment) creationTime(kind, name string) time.Time {
	GinkgoHelper()
	o := e.object(kind, name)
	Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(o), o)).To(Succeed())
	return o.GetCreationTimestamp().Time
}

// annotate sets an annotation on a Gateway API object.
func (e *environment) annotate(kind, name, key, value string) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, e.expand(value))
	Expect(kube.Patch(context.Background(), e.object(kind, name), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// startExternalDNS starts external-dns, which runs until the spec ends. The changes are the
// same as for externalDNSArguments.
func (e *environment) startExternalDNS(changes ...string) {
	GinkgoHelper()
	p, err := controllerproc.Run(e.command(GinkgoWriter, changes...))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Stop)
}

// runOnce runs external-dns once and returns its log. The changes are the same as for
// externalDNSArguments.
func (e *environment) runOnce(changes ...string) (string, error) {
	GinkgoHelper()
	var log bytes.Buffer
	err := e.command(io.MultiWriter(&log, GinkgoWriter), append(changes, "--once")...).Run()
	return log.String(), err
}

// command returns the command that runs external-dns and writes its log to log.
func (e *environment) command(log io.Writer, changes ...string) *exec.Cmd {
	GinkgoHelper()
	command := exec.Command(binary, e.externalDNSArguments(changes...)...)
	command.Env = append(os.Environ(), "CF_API_TOKEN="+e.token, "CLOUDFLARE_BASE_URL="+apiURL)
	command.Stdout, command.Stderr = log, log
	return command
}

// externalDNSArguments returns the arguments in the sample's Deployment, with the
// environment's zones and the given changes. A change is an additional argument, or an
// argument to remove if it begins with "!".
func (e *environment) externalDNSArguments(changes ...string) []string {
	arguments := slices.DeleteFunc(slices.Clone(sampleArguments), func(a string) bool {
		return strings.HasPrefix(a, "--domain-filter=")
	})
	for _, zone := range e.zoneNames {
		arguments = append(arguments, "--domain-filter="+zone)
	}
	for _, change := range changes {
		if removed, ok := strings.CutPrefix(change, "!"); ok {
			Expect(arguments).To(ContainElement(removed))
			arguments = slices.DeleteFunc(arguments, func(a string) bool { return a == removed })
		} else {
			arguments = append(arguments, change)
		}
	}
	return append(arguments, "--kubeconfig="+e.kubeconfig, "--metrics-address=127.0.0.1:0")
}
