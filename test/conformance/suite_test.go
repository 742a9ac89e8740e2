package conformance

import (
	"context"
	"flag"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	xwebsocket "golang.org/x/net/websocket"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	official "sigs.k8s.io/gateway-api/conformance"
	confv1 "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/tests"
	timeouts "sigs.k8s.io/gateway-api/conformance/utils/config"
	"sigs.k8s.io/gateway-api/conformance/utils/flags"
	"sigs.k8s.io/gateway-api/conformance/utils/roundtripper"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/conformance/utils/websocket"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// What the process of the suite is told by its environment.
const (
	reportVariable        = "CONFORMANCE_REPORT"         // where the suite's own report goes
	controllerLogVariable = "CONFORMANCE_CONTROLLER_LOG" // where the controller's log goes
)

// Flags of ours beside the suite's own, for a run against a cluster that is
// there already.
var (
	existing = flag.Bool("existing-cluster", false,
		"run against the cluster of --kubeconfig, in which the controller and a GatewayClass are, instead of a test bed")
	edgeAddress = flag.String("edge", "",
		"with --existing-cluster, the `host:port` to send requests for every tunnel to (default the tunnel's own address)")
)

// dialContext is how a client reaches the address of a tunnel.
type dialContext func(ctx context.Context, network, address string) (net.Conn, error)

// TestSuite is the suite itself, in two runs. The first is the one that a
// report is about: the features that the GatewayClass claims. The second is of
// what is not claimed and not expected to pass, to know whether that is still
// so; nothing in it is worth waiting long for.
func TestSuite(t *testing.T) {
	if os.Getenv(reportVariable) == "" {
		t.Skip("TestConformance runs this in a process of its own, and judges it")
	}
	list := readExceptions(t)
	dial := reach(t)

	t.Run(claimedRun, func(t *testing.T) {
		o := options(t, dial)
		o.SkipTests = append(o.SkipTests, list.names()...)
		o.ReportOutputPath = os.Getenv(reportVariable)
		o.CleanupBaseResources = false // the second run takes them over
		official.RunConformanceWithOptions(t, o)
	})
	t.Run(unclaimedRun, func(t *testing.T) {
		o := options(t, dial)
		o.SupportedFeatures = allFeatures()
		o.SkipTests = append(o.SkipTests, list.others()...)
		o.TimeoutConfig = impatient()
		official.RunConformanceWithOptions(t, o)
	})
}

// reach starts the test bed, unless there is a cluster already, and returns how
// its tunnels are reached.
func reach(t *testing.T) dialContext {
	if !*existing {
		b := startBed(t, os.Getenv(controllerLogVariable))
		must(t, flag.Set(config.KubeconfigFlagName, b.kubeconfig))
		return b.Dial
	}
	var dialer net.Dialer
	if *edgeAddress == "" {
		return dialer.DialContext
	}
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, *edgeAddress)
	}
}

// options are those of the suite's flags, and what is ours in them.
func options(t *testing.T, dial dialContext) suite.ConformanceOptions {
	o := official.DefaultOptions(t)
	if o.GatewayClassName == flags.DefaultGatewayClassName {
		o.GatewayClassName = className
	}
	o.ConformanceProfiles = []suite.ConformanceProfileName{suite.GatewayHTTPConformanceProfileName}
	o.Implementation = confv1.Implementation{
		Organization: "tunnel-gateway", Project: "tunnel-gateway", URL: "https://" + root,
		Version: version(t), Contact: []string{"https://" + root + "/issues"},
	}
	timeouts.SetupTimeoutConfig(&o.TimeoutConfig)
	o.RoundTripper = &roundtripper.DefaultRoundTripper{Debug: o.Debug, TimeoutConfig: o.TimeoutConfig, CustomDialContext: dial}
	o.WebSocketDialer = webSocketDialer{dial}
	return o
}

// impatient is for what is expected to fail: what passes here does so within a
// second or two.
func impatient() timeouts.TimeoutConfig {
	const patience = 6 * time.Second
	c := timeouts.DefaultTimeoutConfig()
	for _, timeout := range []*time.Duration{
		&c.GatewayMustHaveAddress, &c.GatewayMustHaveCondition, &c.GatewayStatusMustHaveListeners,
		&c.GatewayListenersMustHaveConditions, &c.ListenerSetMustHaveCondition, &c.ListenerSetListenersMustHaveConditions,
		&c.HTTPRouteMustNotHaveParents, &c.HTTPRouteMustHaveCondition, &c.TLSRouteMustHaveCondition,
		&c.TCPRouteMustHaveCondition, &c.UDPRouteMustHaveCondition, &c.RouteMustHaveParents, &c.MaxTimeToConsistency,
		&c.LatestObservedGenerationSet, &c.DefaultTestTimeout,
	} {
		*timeout = patience
	}
	return c
}

// allFeatures are the features of all tests of Gateways.
func allFeatures() []features.FeatureName {
	all := sets.New[features.FeatureName]()
	for _, test := range gatewayTests() {
		all.Insert(test.Features...)
	}
	return sets.List(all)
}

// gatewayTests are the tests of the suite but for those of a mesh.
func gatewayTests() []suite.ConformanceTest {
	return slices.DeleteFunc(slices.Clone(tests.ConformanceTests), func(test suite.ConformanceTest) bool {
		return slices.Contains(test.Features, features.SupportMesh)
	})
}

// webSocketDialer opens WebSockets over connections of its dial function.
type webSocketDialer struct{ dial dialContext }

var _ websocket.Dialer = webSocketDialer{}

// Dial implements [websocket.Dialer].
func (d webSocketDialer) Dial(url, protocol, origin string) (*xwebsocket.Conn, error) {
	c, err := xwebsocket.NewConfig(url, origin)
	if err != nil {
		return nil, err
	}
	if protocol != "" {
		c.Protocol = []string{protocol}
	}
	conn, err := d.dial(context.Background(), "tcp", c.Location.Host)
	if err != nil {
		return nil, err
	}
	return xwebsocket.NewClient(c, conn)
}
