package envoy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

// findEnvoy returns the path to Envoy. It downloads Envoy if necessary.
func findEnvoy(t *testing.T) string {
	t.Helper()
	path, err := binaries.Envoy(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// bed is an Envoy that serves the routes in testdata, with its backends.
type bed struct {
	table *routing.Table
	// open and protected are the addresses of the two listeners.
	open, protected string
	backends        *backends
	// configuration is what Envoy runs with.
	configuration string

	process *controllerproc.Process
	pid     int
	log     bytes.Buffer // read only after the process has ended
	dir     string
}

var running struct {
	sync.Once
	*bed
	err error
}

// TestMain stops the Envoys, and prints their logs if a test failed.
func TestMain(m *testing.M) {
	code := m.Run()
	beds := []*bed{running.bed}
	if counting.metricsBed != nil {
		beds = append(beds, counting.bed)
	}
	for _, b := range beds {
		if b == nil {
			continue
		}
		if err := b.close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		if code != 0 {
			fmt.Fprintf(os.Stderr, "The log of Envoy:\n%s", b.log.String())
		}
	}
	os.Exit(code)
}

// start returns the Envoy that all tests share.
func start(t *testing.T) *bed {
	t.Helper()
	path := findEnvoy(t)
	running.Do(func() {
		b := &bed{}
		if running.err = b.start(path); running.err == nil {
			running.bed = b
		}
	})
	if running.err != nil {
		t.Fatal(running.err)
	}
	return running.bed
}

func (b *bed) start(path string) error {
	source, table, err := buildTable("testdata")
	if err != nil {
		return err
	}
	b.table = withShards(table)
	if b.dir, err = os.MkdirTemp("", "tunnel-gateway-envoy-"); err != nil {
		return err
	}
	if b.backends, err = startBackends(source.Objects, b.dir); err != nil {
		return err
	}
	if b.configuration, err = b.render(source); err != nil {
		return err
	}
	return b.run(path, b.open, b.protected)
}

// run starts Envoy with the configuration, and waits until it has bound the addresses.
func (b *bed) run(path string, addresses ...string) error {
	file := filepath.Join(b.dir, "envoy.json")
	if err := os.WriteFile(file, []byte(b.configuration), 0o600); err != nil {
		return err
	}
	command := exec.Command(path, "-c", file, "--concurrency", "2", "--disable-hot-restart", "-l", "warn")
	command.Stdout, command.Stderr = &b.log, &b.log
	var err error
	if b.process, err = controllerproc.Run(command); err != nil {
		return err
	}
	b.pid = command.Process.Pid
	if err := b.awaitPorts(addresses); err != nil {
		return fmt.Errorf("%w\nThe log of Envoy:\n%s", errors.Join(err, b.close()), b.log.String())
	}
	return nil
}

func (b *bed) close() error {
	b.process.Kill()
	<-b.process.Exited()
	b.backends.close()
	return os.RemoveAll(b.dir)
}

// awaitPorts waits until Envoy has bound its listeners' ports.
func (b *bed) awaitPorts(addresses []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, address := range addresses {
		for {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err == nil {
				_ = conn.Close()
				break
			}
			select {
			case <-b.process.Exited():
				return errors.New("envoy ended")
			case <-ctx.Done():
				return fmt.Errorf("wait for Envoy's port: %w", err)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return nil
}

var options = gateway.Options{
	ControllerName: config.DefaultControllerName, ControllerNamespace: config.DefaultControllerNamespace, ClusterDomain: config.DefaultClusterDomain,
	DataPlanes: routing.DataPlanes{v1alpha1.DataPlaneEnvoy: envoy.Capabilities()},
}

// buildTable decides about the manifests in a folder.
func buildTable(folder string) (*state.Source, *routing.Table, error) {
	source, err := state.FromFiles([]string{folder}, manifest.Options{Namespace: "default"}, options.ControllerName, config.DefaultClassName)
	if err != nil {
		return nil, nil, err
	}
	if len(source.Warnings) > 0 {
		return nil, nil, source.Warnings
	}
	if err := addExperimental(source, filepath.Join(folder, "experimental")); err != nil {
		return nil, nil, err
	}
	loader := state.Loader{
		Reader: source, ControllerName: options.ControllerName, ControllerNamespace: options.ControllerNamespace,
		Certificates: state.DirectCertificates{Reader: source}, CABundles: state.DirectCABundles{Reader: source},
	}
	loaded, err := loader.Load(context.Background(), state.GatewayKey("default", "shared"))
	if err != nil {
		return nil, nil, err
	}
	loaded.Snapshot.Now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	result := gateway.Build(loaded.Snapshot, options)
	if result.Table == nil {
		return nil, nil, errors.New("the Gateway is not accepted")
	}
	return source, result.Table, unacceptedRoutes(source, result)
}

// addExperimental adds the manifests in a folder that need not exist, with fields of the Gateway
// API's experimental channel. That channel rejects some values in the other manifests.
func addExperimental(source *state.Source, folder string) error {
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	set, err := manifest.Read([]string{folder}, manifest.Options{Namespace: "default", Experimental: true})
	if err != nil {
		return err
	}
	source.Objects = append(source.Objects, set.Objects...)
	source.Reader, err = state.NewMemory(source.Objects, state.Indexes(options.ControllerName))
	return err
}

// unacceptedRoutes returns an error that names the routes without an entry, such as
// routes with an unknown parent.
func unacceptedRoutes(source *state.Source, result *gateway.Result) error {
	served := map[types.NamespacedName]bool{}
	for _, g := range result.Table.Groups {
		for i := range g.Entries {
			served[g.Entries[i].Source.Route.NamespacedName] = true
		}
	}
	var all []error
	for _, object := range source.Objects {
		switch object.(type) {
		case *gatewayv1.HTTPRoute, *gatewayv1.GRPCRoute:
			if name := (types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}); !served[name] {
				all = append(all, fmt.Errorf("route %s has no entry in the table", name))
			}
		}
	}
	return errors.Join(all...)
}

// render returns the Envoy configuration with addresses on this machine.
func (b *bed) render(source *state.Source) (string, error) {
	resources := envoy.Render(b.table)
	endpoints := resources.Assign(
		func(of envoy.EndpointSource) []*discoveryv1.EndpointSlice { return slicesOf(source, of) },
		func(string) bool { return false })
	configuration, err := static(resources, endpoints)
	if err != nil {
		return "", err
	}
	text, err := protojson.Marshal(configuration)
	if err != nil {
		return "", err
	}
	addresses := map[string]string{}
	for address, listener := range b.backends.addresses {
		addresses[address] = listener
	}
	for port, address := range map[int]*string{envoy.PortOpen: &b.open, envoy.PortProtected: &b.protected} {
		if *address, err = freeAddress(); err != nil {
			return "", err
		}
		addresses[net.JoinHostPort("127.0.0.1", strconv.Itoa(port))] = *address
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return "", err
	}
	if err := replaceAddresses(tree, addresses); err != nil {
		return "", err
	}
	text, err = json.MarshalIndent(tree, "", " ")
	return strings.ReplaceAll(string(text), envoy.CAPath, b.backends.caFile), err
}

// slicesOf returns the EndpointSlices of a Service or ServiceImport in the manifests. A
// Service without any has one pod.
func slicesOf(source *state.Source, of envoy.EndpointSource) []*discoveryv1.EndpointSlice {
	label := discoveryv1.LabelServiceName
	if of.Import {
		label = multicluster.LabelServiceName
	}
	var all []*discoveryv1.EndpointSlice
	var only *corev1.Service
	for _, object := range source.Objects {
		if object.GetNamespace() != of.Namespace {
			continue
		}
		switch o := object.(type) {
		case *discoveryv1.EndpointSlice:
			if o.Labels[label] == of.Name {
				all = append(all, o)
			}
		case *corev1.Service:
			if o.Name == of.Name && !of.Import && o.Spec.ClusterIP != corev1.ClusterIPNone {
				only = o
			}
		}
	}
	if len(all) == 0 && only != nil {
		return []*discoveryv1.EndpointSlice{onlyPod(only)}
	}
	return all
}

// onlyPod returns an EndpointSlice with one pod, whose address is the ClusterIP, where
// [startBackends] starts the backend.
func onlyPod(service *corev1.Service) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{service.Spec.ClusterIP}}},
		Ports: []discoveryv1.EndpointPort{{Name: new(service.Spec.Ports[0].Name), Port: &service.Spec.Ports[0].Port}},
	}
}

// replaceAddresses replaces each socketAddress in the tree.
func replaceAddresses(tree any, addresses map[string]string) error {
	switch node := tree.(type) {
	case []any:
		for _, child := range node {
			if err := replaceAddresses(child, addresses); err != nil {
				return err
			}
		}
	case map[string]any:
		if socket, ok := node["socketAddress"].(map[string]any); ok {
			return replaceAddress(socket, addresses)
		}
		for _, child := range node {
			if err := replaceAddresses(child, addresses); err != nil {
				return err
			}
		}
	}
	return nil
}

func replaceAddress(socket map[string]any, addresses map[string]string) error {
	address := fmt.Sprintf("%v:%v", socket["address"], socket["portValue"])
	host, port, err := net.SplitHostPort(addresses[address])
	if err != nil {
		return fmt.Errorf("no backend listens for %s", address)
	}
	number, err := strconv.Atoi(port)
	socket["address"], socket["portValue"] = host, number
	return err
}

// freeAddress returns an address on which nothing listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
