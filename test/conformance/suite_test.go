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

// What the process of the suite is told by its environment.
const (
	reportVariable        = "CONFORMANCE_REPORT"         // where the suite's own report goes
	featuresVariable      = "CONFORMANCE_FEATURES"       // where the features of the GatewayClass go
	controllerLogVariable = "CONFORMANCE_CONTROLLER_LOG" // where the controller's log goes
)

// Flags of ours beside the suite's own, for a run against a cluster that is
// there already.
var (
	existing = flag.Bool("existing-cluster", false,
		"run against the cluster of --kubeconfig, in which the controller and a GatewayClass are, instead of a test bed")
	edgeAddress = flag.String("edge", "",
		"with --existing-cluster, the `host` to send requests for every tunnel to (default the tunnel's own address)")
)

// TestSuite is the suite itself, in several runs. The first is the one that a
// report is about: the features that the GatewayClass claims. Then comes what
// is not claimed, to know whether that is still right: what passes by its name,
// and what is not expected to pass and so not worth waiting long for. The last
// shows that all that was run against is still there.
func TestSuite(t *testing.T) {
	if os.Getenv(reportVariable) == "" {
		t.Skip("TestConformance runs this in a process of its own, and judges it")
	}
	list := readExceptions(t)
	edge := reach(t)
	run := func(run string, f func(*testing.T)) {
		if only := onlyTest(); (only == "" || list.runsIn(only) == run) && happens(run) {
			t.Run(run, f)
		}
	}

	run(claimedRun, func(t *testing.T) {
		o := options(t, edge)
		o.SkipTests = append(o.SkipTests, list.with(passes, fails, notRun)...)
		o.ReportOutputPath = os.Getenv(reportVariable)
		o.CleanupBaseResources = false // the runs after it take them over
		official.RunConformanceWithOptions(t, o)
	})
	run(byNameRun, func(t *testing.T) {
		for _, name := range list.with(passes) {
			t.Run(name, func(t *testing.T) { runByName(t, edge, name, false) })
		}
	})
	run(unclaimedRun, func(t *testing.T) {
		o := options(t, edge)
		o.TimeoutConfig = impatient()
		o.DisableParallelTests = true // one that is not served keeps others waiting
		o.UsableNetworkAddresses = addresses("192.0.2.1")
		o.UnusableNetworkAddresses = addresses("192.0.2.2")
		o.SupportedFeatures = featuresOf(list.with(fails))
		o.SkipTests = append(o.SkipTests, list.without(fails)...)
		o.CleanupBaseResources = false
		official.RunConformanceWithOptions(t, o)
	})
	t.Run(controlRun, func(t *testing.T) { runByName(t, edge, controlTest, true) })
}

// happens tells whether a run takes place. What is not expected to pass need not
// be asked of somebody's own cluster, where it would prove nothing.
func happens(run string) bool { return run != "" && (!*existing || run != unclaimedRun) }

// controlTest is one that fails whatever has gone: the controller, the API
// server, the node or the edge.
const controlTest = "HTTPRouteSimpleSameNamespace"

// runByName runs one test. The last one removes what all have in common, unless
// the suite's own flag says otherwise.
func runByName(t *testing.T, edge edge, name string, last bool) {
	o := options(t, edge)
	o.RunTest = name
	o.CleanupBaseResources = last && o.CleanupBaseResources
	official.RunConformanceWithOptions(t, o)
}

func addresses(value string) []gatewayv1.GatewaySpecAddress {
	return []gatewayv1.GatewaySpecAddress{{Type: new(gatewayv1.IPAddressType), Value: value}}
}

// onlyTest is the one test that the suite's own flag asks for, or "".
func onlyTest() string { return flag.Lookup("run-test").Value.String() }

// reach starts the test bed, unless there is a cluster already, and returns how
// its tunnels are reached.
func reach(t *testing.T) edge {
	if !*existing {
		b := startBed(t, os.Getenv(controllerLogVariable))
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

// options are those of the suite's flags, and ours where it has none.
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
	edge.connect(&o)
	return o
}

// featuresOf are all that the tests need.
func featuresOf(names []string) []features.FeatureName {
	all := sets.New[features.FeatureName]()
	for _, test := range tests.ConformanceTests {
		if slices.Contains(names, test.ShortName) {
			all.Insert(test.Features...)
		}
	}
	return sets.List(all)
}
