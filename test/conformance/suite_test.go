package conformance

import (
	"cmp"
	"context"
	"flag"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	official "sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/flags"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// The environment variables that configure the suite's process.
const (
	reportVariable        = "CONFORMANCE_REPORT"   // path of the suite's report
	featuresVariable      = "CONFORMANCE_FEATURES" // file for the GatewayClass features
	controllerLogVariable = "CONFORMANCE_CONTROLLER_LOG"
)

// Additional flags for a run against an existing cluster.
var (
	existing = flag.Bool("existing-cluster", false,
		"run against the cluster of --kubeconfig, which has the controller and a GatewayClass, instead of a test bed")
	edgeAddress = flag.String("edge", "",
		"with --existing-cluster, the `host` that receives the requests for all tunnels (default the address of the tunnel)")
)

// TestSuite runs the suite with each data plane. The runs share the control plane and the
// Pods in the base manifests.
func TestSuite(t *testing.T) {
	if os.Getenv(reportVariable) == "" {
		t.Skip("TestConformance runs this test in a separate process")
	}
	list := readExceptions(t)
	edge, kube := newEdge(t)
	selected := selectedPlanes(t)
	for i, p := range selected {
		s := planeSuite{expectations: list.with(p), edge: edge}
		t.Run(string(p.name), func(t *testing.T) {
			last := i+1 == len(selected)
			s.run(t)
			t.Run(controlRun, func(t *testing.T) { s.control(t, last) })
			if !last {
				deleteGateways(t, kube)
			}
		})
	}
}

// planeSuite runs the suite with one data plane.
type planeSuite struct {
	expectations
	edge edge
}

// run runs the suite several times. The first run tests the features that the
// GatewayClass claims, and writes the report. The next two runs check that the list of
// exceptions is current: they run the tests that pass without a claimed feature by name,
// and the tests that are expected to fail with short timeouts.
func (s planeSuite) run(t *testing.T) {
	start := func(run string, f func(*testing.T)) {
		names := s.testsIn(run)
		if only := onlyTest(); len(names) > 0 && (only == "" || slices.Contains(names, only)) && isEnabled(run) {
			t.Run(run, f)
		}
	}
	start(supportedRun, func(t *testing.T) {
		o := s.options(t)
		o.SkipTests = append(o.SkipTests, s.testsOutside(supportedRun)...)
		o.ReportOutputPath = s.file(os.Getenv(reportVariable))
		o.CleanupBaseResources = false // the next runs use them
		official.RunConformanceWithOptions(t, o)
	})
	start(byNameRun, func(t *testing.T) {
		official.RunConformanceWithOptions(t, s.only(t, byNameRun))
	})
	start(unsupportedRun, func(t *testing.T) {
		o := s.only(t, unsupportedRun)
		o.TimeoutConfig = shortTimeouts()
		o.DisableParallelTests = true // a Gateway that is not served delays the other tests
		o.UsableNetworkAddresses = addresses("192.0.2.1")
		o.UnusableNetworkAddresses = addresses("192.0.2.2")
		official.RunConformanceWithOptions(t, o)
	})
}

// only returns options for the run's tests. The features that the GatewayClass claims do
// not matter.
func (s planeSuite) only(t *testing.T, run string) suite.ConformanceOptions {
	o := s.options(t)
	o.SupportedFeatures = featuresOf(s.testsIn(run))
	o.SkipTests = append(o.SkipTests, s.testsOutside(run)...)
	o.CleanupBaseResources = false // the next runs use them
	return o
}

// isEnabled reports whether a run takes place. An existing cluster does not run
// the tests that are expected to fail, because their result has no meaning there.
func isEnabled(run string) bool { return run != "" && (!*existing || run != unsupportedRun) }

// controlTest is a test that fails if the controller, the API server, the node or
// the edge no longer works.
const controlTest = "HTTPRouteSimpleSameNamespace"

// control runs the control test. If it is the last run, it deletes the objects that all
// runs share, unless the suite's flag disables that.
func (s planeSuite) control(t *testing.T, last bool) {
	o := s.options(t)
	o.RunTest = controlTest
	o.CleanupBaseResources = last && o.CleanupBaseResources
	official.RunConformanceWithOptions(t, o)
}

func addresses(value string) []gatewayv1.GatewaySpecAddress {
	return []gatewayv1.GatewaySpecAddress{{Type: new(gatewayv1.IPAddressType), Value: value}}
}

// onlyTest returns the test in the suite's flag -run-test, or "".
func onlyTest() string { return flag.Lookup("run-test").Value.String() }

// newEdge returns the edge of the existing cluster, or of a new test bed.
func newEdge(t *testing.T) (edge, client.Client) {
	if !*existing {
		b := startTestBed(t, os.Getenv(controllerLogVariable))
		must(t, flag.Set(config.KubeconfigFlagName, b.kubeconfig))
		return b.edge, b.kube
	}
	return func(address string) (string, error) {
		_, port, err := net.SplitHostPort(address)
		if *edgeAddress == "" || err != nil {
			return address, err
		}
		return net.JoinHostPort(*edgeAddress, port), nil
	}, nil
}

// deleteGateways deletes all Gateways and waits until their tunnels are deleted, so that
// the runs with the next data plane begin with new tunnels.
func deleteGateways(t *testing.T, kube client.Client) {
	var namespaces corev1.NamespaceList
	must(t, kube.List(t.Context(), &namespaces))
	for _, namespace := range namespaces.Items {
		must(t, kube.DeleteAllOf(t.Context(), &gatewayv1.Gateway{}, client.InNamespace(namespace.Name)))
	}
	must(t, wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		var tunnels v1alpha1.TunnelList
		err := kube.List(ctx, &tunnels)
		return len(tunnels.Items) == 0, err
	}))
}

// options returns the options from the suite's flags, with defaults for this project.
func (s planeSuite) options(t *testing.T) suite.ConformanceOptions {
	o := official.DefaultOptions(t)
	if o.GatewayClassName == flags.DefaultGatewayClassName {
		o.GatewayClassName = s.class
	}
	if len(o.ConformanceProfiles) == 0 {
		o.ConformanceProfiles = s.profileNames()
	}
	i := &o.Implementation
	i.Organization, i.Project = cmp.Or(i.Organization, "tunnel-gateway"), cmp.Or(i.Project, "tunnel-gateway")
	i.URL, i.Version = cmp.Or(i.URL, "https://"+root), cmp.Or(i.Version, version(t))
	if len(i.Contact) == 0 {
		i.Contact = []string{"https://" + root + "/issues"}
	}
	s.edge.configureClients(&o)
	return o
}

// featuresOf returns all features that the tests require.
func featuresOf(names []string) []features.FeatureName {
	all := sets.New[features.FeatureName]()
	for _, test := range tests.ConformanceTests {
		if slices.Contains(names, test.ShortName) {
			all.Insert(test.Features...)
		}
	}
	return sets.List(all)
}
