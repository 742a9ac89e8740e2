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

// The names of the judges.
const (
	argoCD        = "Argo CD"
	argoCDLenient = "Argo CD with the guide's scripts"
	kstatus       = "kstatus"
	flux          = "Flux with the guide's expressions"
)

// What a judge says, in Argo CD's words.
const (
	healthHealthy     = "Healthy"
	healthProgressing = "Progressing"
	healthDegraded    = "Degraded"
	// healthNone is what is said of an object that a tool has no rule for.
	healthNone = "None"
	// healthUnknown is what is said when the rule itself failed.
	healthUnknown = "Unknown"
)

type verdict struct{ health, message string }

// judge says how a tool sees an object.
type judge func(*unstructured.Unstructured) verdict

// newJudges returns all judges by their names.
func newJudges(t *testing.T) map[string]judge {
	t.Helper()
	scripts := argoScripts(t)
	return map[string]judge{
		argoCD:        scripts.judge,
		argoCDLenient: scripts.with(guideScripts(t)).judge,
		kstatus:       judgeByKstatus,
		flux:          guideExpressions(t).judge,
	}
}

// healths translates the words of kstatus.
var healths = map[status.Status]string{
	status.CurrentStatus:     healthHealthy,
	status.InProgressStatus:  healthProgressing,
	status.FailedStatus:      healthDegraded,
	status.TerminatingStatus: healthProgressing,
}

func kstatusVerdict(result *status.Result, err error) verdict {
	if err != nil {
		return verdict{healthUnknown, err.Error()}
	}
	return verdict{healths[result.Status], result.Message}
}

// judgeByKstatus is the rule of Helm 4, and of Flux without expressions.
func judgeByKstatus(object *unstructured.Unstructured) verdict {
	return kstatusVerdict(status.Compute(object))
}

// expressions are Flux' evaluators by API version and kind.
type expressions map[string]*cel.StatusEvaluator

// guideExpressions reads those of the guide's Kustomization.
func guideExpressions(t *testing.T) expressions {
	t.Helper()
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	readSample(t, "deployment-tools/flux/kustomization.yaml", &kustomization)
	all := expressions{}
	for _, check := range kustomization.Spec.HealthCheckExprs {
		evaluator, err := cel.NewStatusEvaluator(&check.HealthCheckExpressions)
		if err != nil {
			t.Fatalf("the expressions for %s: %v", check.Kind, err)
		}
		all[check.APIVersion+" "+check.Kind] = evaluator
	}
	if len(all) == 0 {
		t.Fatal("the guide's Kustomization has no expressions")
	}
	return all
}

// judge goes by the expressions for the kind, otherwise by kstatus, as Flux
// does. An expression that fails, since there is no status yet, makes it wait.
func (e expressions) judge(object *unstructured.Unstructured) verdict {
	evaluator, ok := e[object.GetAPIVersion()+" "+object.GetKind()]
	if !ok {
		return judgeByKstatus(object)
	}
	result, err := evaluator.Evaluate(context.Background(), object)
	if _, hasStatus := object.Object["status"]; err != nil && !hasStatus {
		return verdict{healthProgressing, err.Error()}
	}
	return kstatusVerdict(result, err)
}

// guideScripts reads the scripts of the guide's ConfigMap for Argo CD, by the
// key that Argo CD has for the kind.
func guideScripts(t *testing.T) map[string]string {
	t.Helper()
	var settings corev1.ConfigMap
	readSample(t, "deployment-tools/argo-cd/argocd-cm.yaml", &settings)
	return settings.Data
}

func readSample(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(samples, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", name, err))
	}
}
