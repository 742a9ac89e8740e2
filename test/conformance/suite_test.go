package conformance

import (
	"cmp"
	"flag"
	"net"
	"os"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	official "sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/flags"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// The environment variables that configure the process of the suite.
const (
	reportVariable        = "CONFORMANCE_REPORT"         // path of the suite's report
	featuresVariable      = "CONFORMANCE_FEATURES"       // path of the file for the features of the GatewayClass
	controllerLogVariable = "CONFORMANCE_CONTROLLER_LOG" // path of the controller's log
)

// Additional flags for a run against an existing cluster.
var (
	existing = flag.Bool("existing-cluster", false,
		"run against the cluster of --kubeconfig, which has the controller and a GatewayClass, instead of a test bed")
	edgeAddress = flag.String("edge", "",
		"with --existing-cluster, the `host` that receives the requests for all tunnels (default the address of the tunnel)")
)

// TestSuite runs the suite several times. The first run tests the features that
// the GatewayClass claims, and writes the report. The next two runs check that the
// list of exceptions is current: they run the tests that pass without a claimed
// feature by name, and the tests that are expected to fail with short timeouts.
// The last run checks that the test bed still works.
func TestSuite(t *testing.T) {
	if os.Getenv(reportVariable) == "" {
		t.Skip("TestConformance runs this test in a separate process")
	}
	list := readExceptions(t)
	edge := newEdge(t)
	start := func(run string, f func(*testing.T)) {
		if only := onlyTest(); (only == "" || list.runFor(only) == run) && isEnabled(run) {
			t.Run(run, f)
		}
	}

	start(supportedRun, func(t *testing.T) {
		o := options(t, edge)
		o.SkipTests = append(o.SkipTests, list.testsWith(passes, fails, notRun)...)
		o.ReportOutputPath = os.Getenv(reportVariable)
		o.CleanupBaseResources = false // the next runs use them
		official.RunConformanceWithOptions(t, o)
	})
	start(byNameRun, func(t *testing.T) {
		for _, name := range list.testsWith(passes) {
			t.Run(name, func(t *testing.T) { runByName(t, edge, name, false) })
		}
	})
	start(unsupportedRun, func(t *testing.T) {
		o := options(t, edge)
		o.TimeoutConfig = shortTimeouts()
		o.DisableParallelTests = true // a Gateway that is not served delays the other tests
		o.UsableNetworkAddresses = addresses("192.0.2.1")
		o.UnusableNetworkAddresses = addresses("192.0.2.2")
		o.SupportedFeatures = featuresOf(list.testsWith(fails))
		o.SkipTests = append(o.SkipTests, list.testsWithout(fails)...)
		o.CleanupBaseResources = false
		official.RunConformanceWithOptions(t, o)
	})
	t.Run(controlRun, func(t *testing.T) { runByName(t, edge, controlTest, true) })
}

// isEnabled reports whether a run takes place. An existing cluster does not run
// the tests that are expected to fail, because their result has no meaning there.
func isEnabled(run string) bool { return run != "" && (!*existing || run != unsupportedRun) }

// controlTest is a test that fails if the controller, the API server, the node or
// the edge no longer works.
const controlTest = "HTTPRouteSimpleSameNamespace"

// runByName runs one test. If it is the last one, it deletes the objects that all
// tests share, unless the suite's flag disables that.
func runByName(t *testing.T, edge edge, name string, last bool) {
	o := options(t, edge)
	o.RunTest = name
	o.CleanupBaseResources = last && o.CleanupBaseResources
	official.RunConformanceWithOptions(t, o)
}

func addresses(value string) []gatewayv1.GatewaySpecAddress {
	return []gatewayv1.GatewaySpecAddress{{Type: new(gatewayv1.IPAddressType), Value: value}}
}

// onlyTest returns the test in the suite's flag -run-test, or "".
func onlyTest() string { return flag.Lookup("run-test").Value.String() }

// newEdge returns the edge of the existing cluster, or of a new test bed.
func newEdge(t *testing.T) edge {
	if !*existing {
		b := startTestBed(t, os.Getenv(controllerLogVariable))
		must(t, flag.Set(config.KubeconfigFlagName, b.kubeconfig))
		return b.edge
	}
	return func(address string) (string, error) {
		_, port, err := net.SplitHostPort(address)
		if *edgeAddress == "" || err != nil {
			return address, err
		}
		return net.JoinHostPort(*edgeAddress, port), nil
	}
}

// options returns the options of the suite's flags, with defaults for this project.
func options(t *testing.T, edge edge) suite.ConformanceOptions {
	o := official.DefaultOptions(t)
	if o.GatewayClassName == flags.DefaultGatewayClassName {
		o.GatewayClassName = className
	}
	if len(o.ConformanceProfiles) == 0 {
		o.ConformanceProfiles = []suite.ConformanceProfileName{suite.GatewayHTTPConformanceProfileName}
	}
	i := &o.Implementation
	i.Organization, i.Project = cmp.Or(i.Organization, "tunnel-gateway"), cmp.Or(i.Project, "tunnel-gateway")
	i.URL, i.Version = cmp.Or(i.URL, "https://"+root), cmp.Or(i.Version, version(t))
	if len(i.Contact) == 0 {
		i.Contact = []string{"https://" + root + "/issues"}
	}
	edge.configureClients(&o)
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
