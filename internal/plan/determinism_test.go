package plan_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

func TestPlanDependsOnlyOnTheManifests(t *testing.T) {
	samples, err := filepath.Glob("../../config/samples/*.yaml")
	if err != nil || len(samples) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	want := printed(t, buildPlan(t, read(t, "", samples...), now))
	t.Run("at another time", func(t *testing.T) {
		wantSame(t, want, buildPlan(t, read(t, "", samples...), now.Add(time.Hour)))
	})
	t.Run("with the files in another order", func(t *testing.T) {
		files := slices.Clone(samples)
		slices.Reverse(files)
		wantSame(t, want, buildPlan(t, read(t, "", files...), now))
	})
	t.Run("with the documents in another order", func(t *testing.T) {
		var documents []string
		for _, file := range samples {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			documents = append(documents, strings.Split(string(text), "\n---\n")...)
		}
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the test must be reproducible
		for range 10 {
			random.Shuffle(len(documents), func(i, j int) { documents[i], documents[j] = documents[j], documents[i] })
			wantSame(t, want, planOf(t, documents...))
		}
	})
}

// wantSame checks that the plan prints want.
func wantSame(t *testing.T, want string, p *plan.Plan) {
	t.Helper()
	if diff := cmp.Diff(want, printed(t, p)); diff != "" {
		t.Errorf("the plan differs (-want +got):\n%s", diff)
	}
}

func TestBuildDoesNotChangeTheObjects(t *testing.T) {
	files := read(t, strings.Join([]string{shared, rejected, teams, movedRoute}, "\n---\n"), "-")
	var before []client.Object
	for _, object := range files.Objects {
		before = append(before, object.DeepCopyObject().(client.Object))
	}
	buildPlan(t, files, now)
	if diff := cmp.Diff(before, files.Objects); diff != "" {
		t.Errorf("Build changed the objects (-before +after):\n%s", diff)
	}
}
