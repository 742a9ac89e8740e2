package health

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The tools and their health checks.
const (
	argoCD        = "Argo CD"
	argoCDLenient = "Argo CD with the guide's scripts"
	kstatus       = "kstatus"
	flux          = "Flux with the guide's expressions"
)

// Argo CD's health statuses.
const (
	healthHealthy     = "Healthy"
	healthProgressing = "Progressing"
	healthDegraded    = "Degraded"
	// healthNone is for objects without a health check.
	healthNone = "None"
	// healthUnknown is for objects whose health check failed.
	healthUnknown = "Unknown"
)

// assessment is the result of a health check.
type assessment struct{ health, message string }

// healthCheck assesses an object's health like a tool.
type healthCheck func(*unstructured.Unstructured) assessment

// newHealthChecks returns the health checks by tool name.
func newHealthChecks(t *testing.T) map[string]healthCheck {
	t.Helper()
	scripts := builtinScripts(t)
	return map[string]healthCheck{
		argoCD:        scripts.assess,
		argoCDLenient: scripts.override(guideScripts(t)).assess,
		kstatus:       kstatusCheck,
		flux:          guideExpressions(t).assess,
	}
}

// kstatusHealths maps the statuses in kstatus to those in Argo CD.
var kstatusHealths = map[status.Status]string{
	status.CurrentStatus:     healthHealthy,
	status.InProgressStatus:  healthProgressing,
	status.FailedStatus:      healthDegraded,
	status.TerminatingStatus: healthProgressing,
}

func kstatusAssessment(result *status.Result, err error) assessment {
	if err != nil {
		return assessment{healthUnknown, err.Error()}
	}
	return assessment{kstatusHealths[result.Status], result.Message}
}

// kstatusCheck is the health check in Helm 4, and in Flux without expressions.
func kstatusCheck(object *unstructured.Unstructured) assessment {
	return kstatusAssessment(status.Compute(object))
}

// fluxExpressions maps API version and kind to Flux's evaluators.
type fluxExpressions map[string]*cel.StatusEvaluator

// guideExpressions reads the expressions in the guide's Kustomization.
func guideExpressions(t *testing.T) fluxExpressions {
	t.Helper()
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	readSample(t, "deployment-tools/flux/kustomization.yaml", &kustomization)
	all := fluxExpressions{}
	for _, check := range kustomization.Spec.HealthCheckExprs {
		evaluator, err := cel.NewStatusEvaluator(&check.HealthCheckExpressions)
		if err != nil {
			t.Fatalf("create the evaluator for %s: %v", check.Kind, err)
		}
		all[check.APIVersion+" "+check.Kind] = evaluator
	}
	if len(all) == 0 {
		t.Fatal("the guide's Kustomization contains no expressions")
	}
	return all
}

// assess evaluates the expressions for the kind, or uses kstatus if there are none.
// Like Flux, it continues to wait if an expression fails because the object has no
// status yet.
func (e fluxExpressions) assess(object *unstructured.Unstructured) assessment {
	evaluator, ok := e[object.GetAPIVersion()+" "+object.GetKind()]
	if !ok {
		return kstatusCheck(object)
	}
	result, err := evaluator.Evaluate(context.Background(), object)
	if _, hasStatus := object.Object["status"]; err != nil && !hasStatus {
		return assessment{healthProgressing, err.Error()}
	}
	return kstatusAssessment(result, err)
}

// guideScripts reads the ConfigMap argocd-cm in the guide.
func guideScripts(t *testing.T) map[string]string {
	t.Helper()
	var settings corev1.ConfigMap
	readSample(t, "deployment-tools/argo-cd/argocd-cm.yaml", &settings)
	return settings.Data
}

// readSample decodes a sample into target.
func readSample(t *testing.T, name string, target any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(samples, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, target); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", name, err))
	}
}
