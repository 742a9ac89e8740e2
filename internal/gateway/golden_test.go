package gateway_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

//go:generate go run ../../test/docgen rules

// update makes the tests write the golden files; make golden sets it. Read the diff
// before you commit it.
var update = flag.Bool("update", false, "rewrite the golden files")

var options = gateway.Options{
	ControllerName: config.DefaultControllerName, ControllerNamespace: config.DefaultControllerNamespace, ClusterDomain: config.DefaultClusterDomain,
	DataPlanes: routing.DataPlanes{
		v1alpha1.DataPlaneIngressRules: ingress.Capabilities(),
		v1alpha1.DataPlaneEnvoy:        envoyOfFiles(),
	},
}

// envoyOfFiles are the capabilities for Services from files, whose addresses are not
// known.
func envoyOfFiles() routing.Capabilities {
	c := envoy.Capabilities()
	c.NeedsClusterIP = false
	return c
}

// goldenTime is the decision time in all golden cases.
var goldenTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestGolden decides about every testdata/NAME.in.yaml. It compares the tunnel
// configurations with NAME.config.golden.yaml and the statuses with
// NAME.status.golden.yaml. For an invalid manifest, it compares the error with
// NAME.error.golden.txt. Each case's first line states the rule that it tests. If the
// second line begins with "# envoy: ", TestGolden also compares Envoy's routes and
// clusters with NAME.envoy.golden.yaml. That line says what this file shows and no other
// file does. To add a case, add a file.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(input), ".in.yaml"), func(t *testing.T) {
			wantHeader(t, input)
			got := goldenFiles(t, input)
			for _, kind := range []string{".config.golden.yaml", ".status.golden.yaml", ".envoy.golden.yaml", ".error.golden.txt"} {
				compareGolden(t, strings.TrimSuffix(input, ".in.yaml")+kind, got[kind])
			}
		})
	}
}

// goldenFiles returns the golden files of a case by file suffix.
func goldenFiles(t *testing.T, input string) map[string][]byte {
	t.Helper()
	files, err := state.FromFiles([]string{input}, manifest.Options{Namespace: "default", Experimental: true}, options.ControllerName, config.DefaultClassName)
	if err != nil {
		return map[string][]byte{".error.golden.txt": []byte(strings.ReplaceAll(err.Error(), "testdata/", "") + "\n")}
	}
	var configurations, statuses bytes.Buffer
	verdicts := verdictsOf(t, input)
	decisions := decideCase(t, verdicts, files, "")
	if len(decisions) == 0 {
		fmt.Fprintln(&configurations, "# no managed Gateway")
		fmt.Fprintln(&statuses, "# no managed Gateway")
	}
	for _, d := range decisions {
		writeStatuses(&statuses, d.report)
		writeAccess(&statuses, d.result)
		if d.result.DataPlane == v1alpha1.DataPlaneEnvoy {
			fmt.Fprintf(&configurations, "# %s: Envoy routes the requests\n", d.key)
			continue
		}
		writeConfiguration(&configurations, d)
		if c := rulesConfiguration(d.result.Table); c != nil {
			if err := provider.Validate(*c); err != nil {
				t.Errorf("the connector rejects the configuration: %v", err)
			}
		}
	}
	golden := map[string][]byte{".config.golden.yaml": configurations.Bytes(), ".status.golden.yaml": statuses.Bytes()}
	if asksForEnvoy(t, input) {
		var resources bytes.Buffer
		for _, d := range decideCase(t, verdicts, files, v1alpha1.DataPlaneEnvoy) {
			writeEnvoy(t, &resources, d)
		}
		golden[".envoy.golden.yaml"] = resources.Bytes()
	}
	return golden
}

// asksForEnvoy reports whether the second line of a case asks for the Envoy resources.
func asksForEnvoy(t *testing.T, input string) bool {
	t.Helper()
	content, err := os.ReadFile(input)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(content, []byte("\n"))
	asks := bytes.HasPrefix(rest, []byte("# envoy: "))
	if !asks && bytes.Contains(content, []byte("\n# envoy")) {
		t.Errorf("%s: \"# envoy: \" is not the beginning of the second line", input)
	}
	return asks
}

func wantHeader(t *testing.T, input string) {
	t.Helper()
	content, err := os.ReadFile(input)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(content, []byte("# rule: ")) {
		t.Errorf("%s does not begin with \"# rule: \"", input)
	}
}

type decision struct {
	key    state.Key
	result *gateway.Result
	tunnel provider.TunnelID
	report gateway.Report
}

// decide decides about every managed Gateway in the files, in order. The settings choose the
// data plane when none is given.
func decide(t *testing.T, files *state.Source, plane v1alpha1.DataPlane) []decision {
	t.Helper()
	return decideCase(t, nil, files, plane)
}

// decideCase does the same for the files of a case, whose comments can have verdicts about
// applications.
func decideCase(t *testing.T, verdicts access.Verdicts, files *state.Source, plane v1alpha1.DataPlane) []decision {
	t.Helper()
	loader := state.Loader{
		Reader: files, ControllerName: options.ControllerName, ControllerNamespace: options.ControllerNamespace, Certificates: state.DirectCertificates{Reader: files},
		CABundles: state.DirectCABundles{Reader: files},
	}
	var decisions []decision
	unused := maps.Clone(verdicts)
	hostnames := gateway.NewHostnames()
	for _, object := range files.Objects {
		g, ok := object.(*gatewayv1.Gateway)
		if !ok {
			continue
		}
		key := state.GatewayKey(g.Namespace, g.Name)
		loaded, err := loader.Load(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if !loaded.Managed {
			continue
		}
		loaded.Snapshot.Now, loaded.Snapshot.DataPlane = goldenTime, plane
		result := gateway.Build(loaded.Snapshot, options)
		if len(result.Demanded.Demands) > 0 {
			loaded.Snapshot.Access = knownApplications(result, verdicts)
			result = gateway.Build(loaded.Snapshot, options)
			maps.DeleteFunc(unused, func(hostname string, _ access.Verdict) bool {
				return result.Demanded.Demands[hostname].Hostname == hostname
			})
		}
		hostnames.Set(key.NamespacedName, result.Hostnames())
		decisions = append(decisions, decision{key: key, result: result, tunnel: loaded.Snapshot.Tunnel})
	}
	if len(unused) > 0 {
		t.Errorf("no Gateway demands applications for the verdicts %v", slices.Sorted(maps.Keys(unused)))
	}
	for i := range decisions {
		d := &decisions[i]
		d.report = d.result.Report(gateway.Outcome{
			Push: gateway.Push{State: gateway.PushSucceeded}, Tunnel: d.tunnel, Shared: hostnames.Shared(d.key.NamespacedName),
		})
	}
	return decisions
}

// compareGolden compares the file with the result of the case. When got is nil, the file
// must not exist.
func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		updateGolden(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if got == nil && errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatalf("%v; run make golden to write it", err)
	}
	if got == nil {
		t.Fatalf("%s exists, but the case has no such result; run make golden to remove it", path)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); run make golden to update it:\n%s", path, diff)
	}
}

func updateGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil && got != nil {
		err = os.WriteFile(path, got, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// writeConfiguration writes one line for each ingress rule, so that golden file diffs are
// readable.
func writeConfiguration(w *bytes.Buffer, d decision) {
	fmt.Fprintf(w, "# %s\n", d.key)
	c := rulesConfiguration(d.result.Table)
	if c == nil {
		fmt.Fprintln(w, "null # not accepted: the tunnel keeps its configuration")
		return
	}
	writeRules(w, c)
	if fields := originFields(c.OriginRequest); len(fields) > 0 {
		fmt.Fprintf(w, "originRequest: {%s}\n", strings.Join(fields, ", "))
	}
}

func writeRules(w *bytes.Buffer, c *provider.Configuration) {
	fmt.Fprintln(w, "ingress:")
	for _, rule := range c.Ingress {
		var fields []string
		if rule.Hostname != "" {
			fields = append(fields, fmt.Sprintf("hostname: %q", rule.Hostname))
		}
		if rule.Path != "" {
			fields = append(fields, fmt.Sprintf("path: %q", rule.Path))
		}
		fields = append(fields, fmt.Sprintf("service: %q", rule.Service))
		fields = append(fields, originFields(rule.OriginRequest)...)
		fmt.Fprintf(w, "- {%s}\n", strings.Join(fields, ", "))
	}
}

// originFields returns the fields that are set, in the form that the tunnel configuration
// has.
func originFields(o provider.OriginRequest) []string {
	encoded, err := json.Marshal(o)
	values := map[string]json.RawMessage{}
	if err == nil {
		err = json.Unmarshal(encoded, &values)
	}
	if err != nil {
		return []string{err.Error()}
	}
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fields = append(fields, fmt.Sprintf("%s: %s", name, values[name]))
	}
	return fields
}

func writeStatuses(w *bytes.Buffer, report gateway.Report) {
	fmt.Fprintln(w, "Gateway:")
	fmt.Fprintf(w, "  attachedListenerSets: %d\n", *report.Gateway.AttachedListenerSets)
	for _, address := range report.Gateway.Addresses {
		fmt.Fprintf(w, "  address: %q\n", string(*address.Type)+" "+address.Value)
	}
	writeConditions(w, "  ", report.Gateway.Conditions)
	writeListeners(w, report.Gateway.Listeners)
	for _, set := range report.ListenerSets {
		fmt.Fprintf(w, "ListenerSet %s:\n", set.NamespacedName)
		writeConditions(w, "  ", set.Status.Conditions)
		entries := make([]gatewayv1.ListenerStatus, len(set.Status.Listeners))
		for i, entry := range set.Status.Listeners {
			entries[i] = gatewayv1.ListenerStatus(entry)
		}
		writeListeners(w, entries)
	}
	writeRoutes(w, report)
	for _, policy := range report.Policies {
		fmt.Fprintf(w, "BackendTLSPolicy %s:\n", policy.NamespacedName)
		if policy.Ancestor != nil {
			fmt.Fprintf(w, "  %s:\n", describeRef(policy.Ancestor.AncestorRef))
			writeConditions(w, "    ", policy.Ancestor.Conditions)
		}
	}
	for _, policy := range report.AccessPolicies {
		fmt.Fprintf(w, "AccessPolicy %s:\n", policy.NamespacedName)
		for i := range policy.Ancestors {
			fmt.Fprintf(w, "  %s:\n", describeRef(policy.Ancestors[i].AncestorRef))
			writeConditions(w, "    ", policy.Ancestors[i].Conditions)
		}
	}
}

func writeRoutes(w *bytes.Buffer, report gateway.Report) {
	for _, route := range report.Routes {
		fmt.Fprintf(w, "%s %s:\n", route.Kind, route.NamespacedName)
		for _, parent := range route.Parents {
			fmt.Fprintf(w, "  %s:\n", describeRef(parent.ParentRef))
			writeConditions(w, "    ", parent.Conditions)
		}
	}
}

func writeListeners(w *bytes.Buffer, listeners []gatewayv1.ListenerStatus) {
	for _, l := range listeners {
		var kinds []string
		for _, kind := range l.SupportedKinds {
			kinds = append(kinds, string(*kind.Group)+"/"+string(kind.Kind))
		}
		fmt.Fprintf(w, "  listener %s:\n    attachedRoutes: %d\n    supportedKinds: [%s]\n", l.Name, l.AttachedRoutes, strings.Join(kinds, ", "))
		writeConditions(w, "    ", l.Conditions)
	}
}

// writeConditions writes the conditions. It omits the message if a condition has no
// problem, unless the message has a warning.
func writeConditions(w *bytes.Buffer, indent string, conditions []metav1.Condition) {
	for _, c := range conditions {
		expected := metav1.ConditionTrue
		if c.Type == string(gatewayv1.ListenerConditionConflicted) {
			expected = metav1.ConditionFalse
		}
		warning := c.Type == string(gatewayv1.ListenerConditionResolvedRefs) && c.Message != "All references are resolved." ||
			strings.HasPrefix(c.Message, "The Gateway is accepted. ") || strings.HasPrefix(c.Message, "The route is accepted, but ") || strings.HasPrefix(c.Message, "The route is accepted. ")
		text := fmt.Sprintf("%s %s", c.Status, c.Reason)
		if warning || c.Status != expected || c.Reason != c.Type && c.Reason != string(gatewayv1.ListenerReasonNoConflicts) {
			text += ": " + c.Message
		}
		fmt.Fprintf(w, "%s%s: %q\n", indent, c.Type, text)
	}
}

func describeRef(ref gatewayv1.ParentReference) string {
	var b strings.Builder
	if ref.Kind != nil {
		fmt.Fprintf(&b, "%s ", *ref.Kind)
	}
	if ref.Namespace != nil {
		fmt.Fprintf(&b, "%s/", *ref.Namespace)
	}
	b.WriteString(string(ref.Name))
	if ref.SectionName != nil {
		fmt.Fprintf(&b, " section %s", *ref.SectionName)
	}
	if ref.Port != nil {
		fmt.Fprintf(&b, " port %d", *ref.Port)
	}
	return b.String()
}
