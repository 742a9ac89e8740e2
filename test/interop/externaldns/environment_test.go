package externaldns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
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

// world is a zone at Cloudflare or several, and two namespaces that serve its
// names: that of the platform team, which owns the Gateway "shared", and that of
// a team.
type world struct {
	zones    *zones
	api      string
	platform string
	team     string
	name     string // of the first zone
	// kubeconfig is what external-dns connects with.
	kubeconfig string
}

const worldManifest = `
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

func newWorld() *world {
	id := "w" + rand.String(6)
	w := &world{platform: id + "-platform", team: id + "-team", name: id + ".example"}
	w.serve(w.name)
	w.apply(worldManifest)
	return w
}

// serve gives the world zones of those names, and the rights of the sample.
func (w *world) serve(names ...string) {
	w.zones, w.kubeconfig = newZones(names...), kubeconfig
	server := httptest.NewServer(w.zones)
	DeferCleanup(server.Close)
	w.api = server.URL + "/client/v4"
}

// text puts the world's names in the place of PLATFORM, TEAM and ZONE.
func (w *world) text(s string) string {
	return strings.NewReplacer("PLATFORM", w.platform, "TEAM", w.team, "ZONE", w.name).Replace(s)
}

func (w *world) apply(manifests string) {
	GinkgoHelper()
	applyAll(context.Background(), strings.NewReader(w.text(manifests)))
}

func applyFile(ctx context.Context, path string) {
	GinkgoHelper()
	file, err := os.Open(path)
	Expect(err).NotTo(HaveOccurred())
	defer file.Close() //nolint:errcheck // it was only read
	applyAll(ctx, file)
}

// applyAll applies documents as kubectl does on the server's side.
func applyAll(ctx context.Context, documents io.Reader) {
	GinkgoHelper()
	decoder := yaml.NewYAMLOrJSONDecoder(documents, 4096)
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

// object returns what "TEAM/web" names, of the Gateway API's kind.
func (w *world) object(kind, name string) *unstructured.Unstructured {
	namespace, name, _ := strings.Cut(w.text(name), "/")
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(gatewayv1.GroupVersion.String())
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func (w *world) delete(kind, name string) {
	GinkgoHelper()
	Expect(kube.Delete(context.Background(), w.object(kind, name))).To(Succeed())
}

func (w *world) created(kind, name string) time.Time {
	GinkgoHelper()
	o := w.object(kind, name)
	Expect(kube.Get(context.Background(), client.ObjectKeyFromObject(o), o)).To(Succeed())
	return o.GetCreationTimestamp().Time
}

// annotate sets an annotation.
func (w *world) annotate(kind, name, key, value string) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, w.text(value))
	Expect(kube.Patch(context.Background(), w.object(kind, name), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// run runs external-dns until the spec ends.
func (w *world) run() {
	GinkgoHelper()
	p, err := controllerproc.Run(w.command(GinkgoWriter))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Stop)
}

// sync lets external-dns make the zone right, once. What it logs is returned.
func (w *world) sync(changes ...string) (string, error) {
	GinkgoHelper()
	var log bytes.Buffer
	err := w.command(io.MultiWriter(&log, GinkgoWriter), append(changes, "--once")...).Run()
	return log.String(), err
}

// command is external-dns with the arguments of the sample's Deployment, but for
// the zones; an argument that begins with "!" is taken away.
func (w *world) command(log io.Writer, changes ...string) *exec.Cmd {
	GinkgoHelper()
	command := exec.Command(binary, w.arguments(changes...)...)
	command.Env = append(os.Environ(), "CF_API_TOKEN="+dnsToken, "CLOUDFLARE_BASE_URL="+w.api)
	command.Stdout, command.Stderr = log, log
	return command
}

func (w *world) arguments(changes ...string) []string {
	arguments := slices.DeleteFunc(slices.Clone(sampleArguments), func(a string) bool {
		return strings.HasPrefix(a, "--domain-filter=")
	})
	for _, name := range w.zones.names {
		arguments = append(arguments, "--domain-filter="+name)
	}
	for _, c := range changes {
		if less, ok := strings.CutPrefix(c, "!"); ok {
			Expect(arguments).To(ContainElement(less))
			arguments = slices.DeleteFunc(arguments, func(a string) bool { return a == less })
		} else {
			arguments = append(arguments, c)
		}
	}
	return append(arguments, "--kubeconfig="+w.kubeconfig, "--metrics-address=127.0.0.1:0")
}
