package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// The labels divide the specs into parts that take about the same time. Each spec has at
// most one.
var (
	// slow marks specs that take long, mostly because they wait.
	slow = Label("slow")
	// crashes marks specs in which the controller crashes or Cloudflare's API fails
	// during every call.
	crashes = Label("crashes")
	// lifecycle marks specs that create and delete tunnels and connectors.
	lifecycle = Label("lifecycle")
	// ownership marks specs about which Gateway or program a tunnel belongs to.
	ownership = Label("ownership")
	// records marks specs about DNS records, and about applications at Cloudflare's edge.
	records = Label("dns")
	// withEnvoy and envoyRollouts mark specs that run Envoys, which share the xDS server's
	// port and the node of their process. envoyRollouts marks a part of them that takes about as long.
	withEnvoy     = Label("envoy")
	envoyRollouts = Label("envoy-rollouts")
	// users marks specs about guides and commands.
	users = Label("users")
	// underLoad marks specs that send requests at a constant rate and expect that none
	// fails. On a busy machine, requests time out.
	underLoad = Label("load")
)

// parts maps each part's name to its label filter. Each part runs in a separate process
// with a separate control plane. They run concurrently because most specs wait most of
// the time, and one part does not affect another's counters.
var parts = map[string]string{
	"envoy": "envoy", "envoy-rollouts": "envoy-rollouts", "slow": "slow", "crashes": "crashes", "lifecycle": "lifecycle", "ownership": "ownership",
	"dns": "dns", "users": "users",
	"others": "!envoy && !envoy-rollouts && !slow && !crashes && !lifecycle && !ownership && !dns && !users && !load",
}

// racingParts are the parts whose controllers have the race detector. The tests of
// internal/controller run the other parts' code with it.
var racingParts = []string{"envoy"}

// network is the part of the network namespace that belongs to a part's process. Nodes serve
// Pod and Service addresses, so those of the two parts with Envoys must differ.
type network struct {
	services string       // CIDR of the ClusterIPs
	pods     netip.Prefix // the addresses of Pods
	backends string       // begins the addresses of backends that are not Pods
	xds      string       // begins the addresses on which controllers serve Envoys
}

// networkOf returns a part's network. Parts without Envoys serve no addresses.
func networkOf(part string) network {
	if part == "envoy-rollouts" {
		return network{"10.104.0.0/13", netip.MustParsePrefix("10.244.128.0/17"), "10.111.255.", "127.0.1."}
	}
	return network{"10.96.0.0/13", netip.MustParsePrefix("10.244.0.0/17"), "10.103.255.", "127.0.0."}
}

// lastPart is the name and the label filter of the part that runs after the others.
const lastPart = "load"

// logs is the directory with each part's whole output from the last run.
const logs = "../../bin/integration"

// A failure shows the last shownOutput lines. The rest is in [logs].
const shownOutput = 40

// runParts runs all parts concurrently except the last one, each as a test whose subtests are its
// specs.
func runParts(t *testing.T) {
	if err := errors.Join(os.RemoveAll(logs), os.MkdirAll(logs, 0o750)); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for name, filter := range parts {
		running.Go(func() { t.Run(name, func(t *testing.T) { runPart(t, name, filter) }) })
	}
	running.Wait()
	t.Run(lastPart, func(t *testing.T) { runPart(t, lastPart, lastPart) })
}

func runPart(t *testing.T, name, filter string) {
	dir := t.TempDir()
	log, audited, err := cluster.Audit(dir)
	if err != nil {
		t.Fatal(err)
	}
	network := networkOf(name)
	control, err := cluster.Start(t.Context(), cluster.Options{APIServer: audited, ServiceCIDR: network.services})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := control.Stop(); err != nil {
			t.Error(err)
		}
	}()
	config, identity, results := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "identity"), filepath.Join(dir, "results.json")
	user, err := cluster.ControllerIdentity(t.Context(), control.Config, "../../config/rbac", identity)
	if err := errors.Join(err, control.Kubeconfig(config)); err != nil {
		t.Fatal(err)
	}
	arguments := append(os.Args[1:], "-test.run=^TestIntegration$", "-ginkgo.label-filter="+filter, "-ginkgo.json-report="+results)
	run := exec.CommandContext(t.Context(), os.Args[0], arguments...) // #nosec G702 -- the path of this test program
	run.Env = append(os.Environ(), kubeconfigVariable+"="+config, controllerKubeconfigVariable+"="+identity, partVariable+"="+name)
	if os.Getenv(raceVariable) != "" && slices.Contains(racingParts, name) {
		run.Env = append(run.Env, binaryVariable+"="+racingBinary())
	}
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	output, err := run.CombinedOutput()
	ran, failed := reportSpecs(t, results)
	reportProcess(t, name, string(output), err, failed)
	if ran > 0 { // if a spec in another part has the focus, none
		checkAudit(t, log, user)
	}
}

// reportSpecs reports each spec that ran as a test. It returns how many specs ran, and how many
// specs and set-ups failed.
func reportSpecs(t *testing.T, results string) (ran, failed int) {
	content, err := os.ReadFile(results) // #nosec G304 -- a file of this test
	if err != nil {
		t.Errorf("the process has written no results: %v", err)
		return 0, 0
	}
	var suites []Report
	if err := json.Unmarshal(content, &suites); err != nil {
		t.Error(err)
	}
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			if isSpec(spec) && spec.State.Is(types.SpecStatePassed|types.SpecStateFailureStates) {
				ran++
			}
			if spec.Failed() {
				failed++
			}
			reportSpec(t, spec)
		}
	}
	return ran, failed
}

// reportSpec reports a spec as a test. A failure shows the location, the message and the
// last log lines. It ignores specs in other parts.
func reportSpec(t *testing.T, spec SpecReport) {
	switch {
	case spec.Failed():
		name := spec.FullText()
		if !isSpec(spec) {
			name = spec.LeafNodeType.String()
		}
		t.Run(name, func(t *testing.T) {
			t.Errorf("%s\n%s\n%s", spec.FailureLocation(), spec.FailureMessage(), end(spec.CapturedGinkgoWriterOutput))
		})
	case isSpec(spec) && spec.State == types.SpecStatePassed:
		t.Run(spec.FullText(), func(*testing.T) {})
	case isSpec(spec) && spec.State == types.SpecStateSkipped && spec.Failure.Message != "":
		t.Run(spec.FullText(), func(t *testing.T) { t.Skip(spec.Failure.Message) })
	}
}

// isSpec reports whether the report is about a spec, not about the suite's set-up.
func isSpec(spec SpecReport) bool { return spec.LeafNodeType == types.NodeTypeIt }

// reportProcess writes the process's output to a file. It fails if the process has failed
// for another reason than a spec. Otherwise it logs the number of specs and the
// measurements.
func reportProcess(t *testing.T, name, output string, err error, failedSpecs int) {
	path := filepath.Join(logs, name+".log")
	if err := os.WriteFile(path, []byte(output), 0o600); err != nil {
		t.Error(err)
	}
	if err != nil && failedSpecs == 0 {
		t.Errorf("%v; the whole output is in %s, and ends with:\n%s", err, path, end(output))
	}
	for line := range strings.Lines(output) {
		if strings.Contains(line, "Passed") || strings.Contains(line, "Ran ") || strings.Contains(line, "measured: ") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// end returns the last lines of an output. It indents them, because otherwise go test
// would read the results in them as this process's results.
func end(output string) string {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	omitted := max(0, len(lines)-shownOutput)
	return fmt.Sprintf("  (%d lines before these)\n  %s", omitted, strings.Join(lines[omitted:], "\n  "))
}
