package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// plannedStatus is a status in the output of plan.
type plannedStatus struct {
	APIVersion, Kind, Namespace, Name string
	Status                            map[string]any
}

// missingPlan runs plan --diff, and returns the first difference between the plan, the cluster and
// Cloudflare.
func (w *world) missingPlan() string {
	kubeconfig := filepath.Join(w.dir, "admin")
	if _, err := os.Stat(kubeconfig); err != nil {
		w.must(w.control.Kubeconfig(kubeconfig))
	}
	command := exec.CommandContext(w.Context(), programPath("tunnel-gateway"), "plan", "--diff", "--output=json", "--kubeconfig="+kubeconfig,
		"--cluster-id="+clusterID, "--cloudflare-api-token-secret="+cluster.ControllerNamespace+"/cloudflare") // #nosec G204 -- the test's program
	command.Env = append(os.Environ(), "CLOUDFLARE_ACCOUNT_ID="+account, "CLOUDFLARE_BASE_URL="+w.apiURL)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return fmt.Sprintf("plan --diff: %v\n%s%s", err, stderr.String(), changes(stdout.Bytes()))
	}
	var plan struct{ Statuses []plannedStatus }
	if err := json.Unmarshal(stdout.Bytes(), &plan); err != nil {
		return fmt.Sprintf("plan --diff: %v", err)
	}
	planned := map[string]bool{}
	for _, s := range plan.Statuses {
		planned[s.Kind+" "+s.Namespace+"/"+s.Name] = true
		if text := w.compareStatus(s); text != "" {
			return text
		}
	}
	return w.unplannedStatus(planned)
}

// changes returns what the plan would change at Cloudflare.
func changes(output []byte) string {
	var plan struct {
		Gateways []struct {
			Name string
			Diff struct{ Unified string }
		}
		Zones, Accounts json.RawMessage
	}
	_ = json.Unmarshal(output, &plan) // plan may have printed nothing
	var b strings.Builder
	for _, g := range plan.Gateways {
		if g.Diff.Unified != "" {
			fmt.Fprintf(&b, "%s: %s\n", g.Name, g.Diff.Unified)
		}
	}
	fmt.Fprintf(&b, "zones: %s\naccounts: %s", plan.Zones, plan.Accounts)
	return b.String()
}

// compareStatus compares a planned status with the one in the cluster.
func (w *world) compareStatus(s plannedStatus) string {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(s.APIVersion)
	object.SetKind(s.Kind)
	if err := w.kube.Get(w.Context(), client.ObjectKey{Namespace: s.Namespace, Name: s.Name}, object); err != nil {
		return err.Error()
	}
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	if diff := cmp.Diff(withoutEvidence(s.Status), withoutEvidence(status)); diff != "" {
		return fmt.Sprintf("the status of %s %s/%s (-plan +cluster):\n%s", s.Kind, s.Namespace, s.Name, diff)
	}
	return ""
}

// unplannedStatus returns the first route that has the controller's status although plan does not
// report any.
func (w *world) unplannedStatus(planned map[string]bool) string {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("gateway.networking.k8s.io/v1")
	list.SetKind("HTTPRouteList")
	if text := w.list(list); text != "" {
		return text
	}
	for _, route := range list.Items {
		if parents, _, _ := unstructured.NestedSlice(route.Object, "status", "parents"); len(parents) > 0 && !planned["HTTPRoute "+route.GetNamespace()+"/"+route.GetName()] {
			return fmt.Sprintf("HTTPRoute %s has a status that is not planned: %v", route.GetName(), parents)
		}
	}
	return ""
}

// observed are the conditions about what only the controller sees. [world.missingConditions]
// checks them.
var observed = []string{ready("Connectors"), ready("DataPlane"), ready("DNS"), ready("EdgeCertificate"), ready("Access")}

// withoutEvidence returns the value without times, and without conditions that plan cannot know, in a
// stable order.
func withoutEvidence(value any) any {
	switch v := value.(type) {
	case map[string]any:
		all := map[string]any{}
		for key, value := range v {
			if key != "lastTransitionTime" {
				all[key] = withoutEvidence(value)
			}
		}
		return all
	case []any:
		var all []any
		for _, element := range v {
			if m, ok := element.(map[string]any); ok && slices.Contains(observed, fmt.Sprint(m["type"])) {
				continue
			}
			all = append(all, withoutEvidence(element))
		}
		slices.SortFunc(all, func(a, b any) int { return strings.Compare(canonical(a), canonical(b)) })
		return all
	case int64:
		return float64(v)
	}
	return value
}

func canonical(value any) string {
	text, _ := json.Marshal(value) //nolint:errchkjson // it was decoded from JSON
	return string(text)
}
