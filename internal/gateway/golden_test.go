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

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

//go:generate go run ../../test/ruletable

// update rewrites the golden files: make golden. Read the diff before you
// commit it.
var update = flag.Bool("update", false, "rewrite the golden files")

var options = gateway.Options{
	ControllerName: config.DefaultControllerName, ControllerNamespace: config.DefaultControllerNamespace, ClusterDomain: config.DefaultClusterDomain,
}

// goldenTime is the time of every decision in a golden case.
var goldenTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestGolden runs every testdata/NAME.in.yaml, whose first line names the rule
// that it pins down, and compares the documents and the statuses with
// NAME.config.golden.yaml and NAME.status.golden.yaml; or, when the manifest is
// refused, the error with NAME.error.golden.txt. A new case is a new file.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(input), ".in.yaml"), func(t *testing.T) {
			wantHeader(t, input)
			got := goldenFiles(t, input)
			for _, kind := range []string{".config.golden.yaml", ".status.golden.yaml", ".error.golden.txt"} {
				compareGolden(t, strings.TrimSuffix(input, ".in.yaml")+kind, got[kind])
			}
		})
	}
}

// goldenFiles are what the case gives, by the end of the golden file's name.
func goldenFiles(t *testing.T, input string) map[string][]byte {
	t.Helper()
	files, err := state.FromFiles([]string{input}, manifest.Options{Namespace: "default"}, options.ControllerName, config.DefaultClassName)
	if err != nil {
		return map[string][]byte{".error.golden.txt": []byte(strings.ReplaceAll(err.Error(), "testdata/", "") + "\n")}
	}
	var documents, statuses bytes.Buffer
	made := decide(t, files)
	if len(made) == 0 {
		fmt.Fprintln(&documents, "# no Gateway of ours")
		fmt.Fprintln(&statuses, "# no Gateway of ours")
	}
	for _, d := range made {
		writeConfiguration(&documents, d)
		writeStatuses(&statuses, d.report)
		if c := d.result.Configuration(); c != nil {
			if err := provider.Validate(*c); err != nil {
				t.Errorf("the connector rejects the document: %v", err)
			}
		}
	}
	return map[string][]byte{".config.golden.yaml": documents.Bytes(), ".status.golden.yaml": statuses.Bytes()}
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

// decide builds every managed Gateway among the files, in their order.
func decide(t *testing.T, files *state.Source) []decision {
	t.Helper()
	loader := state.Loader{
		Reader: files, ControllerName: options.ControllerName, ControllerNamespace: options.ControllerNamespace, Certificates: state.DirectCertificates{Reader: files},
	}
	var made []decision
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
		loaded.Snapshot.Now = goldenTime
		result := gateway.Build(loaded.Snapshot, options)
		hostnames.Set(key.NamespacedName, result.Hostnames())
		made = append(made, decision{key: key, result: result, tunnel: loaded.Snapshot.Tunnel})
	}
	for i := range made {
		d := &made[i]
		d.report = d.result.Report(gateway.Outcome{
			Push: gateway.Push{State: gateway.PushSucceeded}, Tunnel: d.tunnel, Shared: hostnames.Shared(d.key.NamespacedName),
		})
	}
	return made
}

// compareGolden compares the file with what the case gives, and wants none when
// that is nil.
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
		t.Fatalf("%v; make golden writes it", err)
	}
	if got == nil {
		t.Fatalf("%s is there, but the case gives none; make golden removes it", path)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); make golden rewrites it:\n%s", path, diff)
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

// writeConfiguration prints a rule a line, so that a diff of goldens reads well.
func writeConfiguration(w *bytes.Buffer, d decision) {
	fmt.Fprintf(w, "# %s\n", d.key)
	c := d.result.Configuration()
	if c == nil {
		fmt.Fprintln(w, "null # not accepted, so nothing is pushed")
		return
	}
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
	if top := originFields(c.OriginRequest); len(top) > 0 {
		fmt.Fprintf(w, "originRequest: {%s}\n", strings.Join(top, ", "))
	}
}

// originFields are the fields that are set, as the document has them.
func originFields(o provider.OriginRequest) []string {
	document, err := json.Marshal(o)
	values := map[string]json.RawMessage{}
	if err == nil {
		err = json.Unmarshal(document, &values)
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

// writeConditions leaves out the message of a condition in its good state,
// unless it has a remark about references or about fields of the Gateway.
func writeConditions(w *bytes.Buffer, indent string, conditions []metav1.Condition) {
	for _, c := range conditions {
		good := metav1.ConditionTrue
		if c.Type == string(gatewayv1.ListenerConditionConflicted) {
			good = metav1.ConditionFalse
		}
		remark := c.Type == string(gatewayv1.ListenerConditionResolvedRefs) && c.Message != "Every reference resolves." ||
			strings.HasPrefix(c.Message, "The Gateway is accepted. ")
		text := fmt.Sprintf("%s %s", c.Status, c.Reason)
		if remark || c.Status != good || c.Reason != c.Type && c.Reason != string(gatewayv1.ListenerReasonNoConflicts) {
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
