package gateway_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
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

// update rewrites the golden files: make golden. Read the diff before you
// commit it.
var update = flag.Bool("update", false, "rewrite the golden files")

var decisions = gateway.Options{ControllerName: config.DefaultControllerName, ClusterDomain: config.DefaultClusterDomain}

// goldenTime is the time of every decision in a golden case.
var goldenTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestGolden runs every testdata/NAME.in.yaml, whose first line names the rule
// that it pins down, and compares the documents and the statuses with
// NAME.config.golden.yaml and NAME.status.golden.yaml. A new case is a new
// file.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, input := range inputs {
		name := strings.TrimSuffix(filepath.Base(input), ".in.yaml")
		t.Run(name, func(t *testing.T) {
			wantHeader(t, input)
			var documents, statuses bytes.Buffer
			for _, d := range decide(t, input) {
				writeDocument(&documents, d)
				writeStatuses(&statuses, d.report)
				if c := d.result.Configuration(); c != nil {
					if err := provider.Validate(*c); err != nil {
						t.Errorf("the connector rejects the document: %v", err)
					}
				}
			}
			compareGolden(t, "testdata/"+name+".config.golden.yaml", documents.Bytes())
			compareGolden(t, "testdata/"+name+".status.golden.yaml", statuses.Bytes())
		})
	}
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
	report gateway.Report
}

// decide builds every Gateway of ours in the file, in the order of the file.
func decide(t *testing.T, input string) []decision {
	t.Helper()
	files, err := state.FromFiles([]string{input}, manifest.Options{Namespace: "default"}, decisions.ControllerName, config.DefaultClassName)
	if err != nil {
		t.Fatal(err)
	}
	loader := state.Loader{
		Reader: files, ControllerName: decisions.ControllerName, Certificates: state.DirectCertificates{Reader: files},
	}
	var made []decision
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
		if !loaded.Ours {
			continue
		}
		loaded.Snapshot.Now = goldenTime
		result := gateway.Build(loaded.Snapshot, decisions)
		report := result.Report(gateway.Push{State: gateway.PushSucceeded}, loaded.Record.Tunnel)
		made = append(made, decision{key, result, report})
	}
	return made
}

func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; make golden writes it", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); make golden rewrites it:\n%s", path, diff)
	}
}

// writeDocument prints a rule a line, so that a diff of goldens reads well.
func writeDocument(w *bytes.Buffer, d decision) {
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
		if rule.OriginRequest.HTTP2Origin != nil {
			fields = append(fields, fmt.Sprintf("http2Origin: %t", *rule.OriginRequest.HTTP2Origin))
		}
		fmt.Fprintf(w, "- {%s}\n", strings.Join(fields, ", "))
	}
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

// writeConditions leaves out the message of a condition in its good state.
func writeConditions(w *bytes.Buffer, indent string, conditions []metav1.Condition) {
	for _, c := range conditions {
		good := metav1.ConditionTrue
		if c.Type == string(gatewayv1.ListenerConditionConflicted) {
			good = metav1.ConditionFalse
		}
		text := fmt.Sprintf("%s %s", c.Status, c.Reason)
		if c.Status != good || c.Reason != c.Type && c.Reason != string(gatewayv1.ListenerReasonNoConflicts) {
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
