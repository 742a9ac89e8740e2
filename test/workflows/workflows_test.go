package workflows

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
)

const root = "../.."

// workflows returns each workflow's content by path.
func workflows(t *testing.T) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("found no workflows, error %v", err)
	}
	contents := map[string][]byte{}
	for _, path := range paths {
		contents[path] = readFile(t, path)
	}
	return contents
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// parseWorkflow parses a workflow.
func parseWorkflow(t *testing.T, content []byte) *actionlint.Workflow {
	t.Helper()
	workflow, problems := actionlint.Parse(content)
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	return workflow
}

func TestWorkflowsAreValid(t *testing.T) {
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	project, err := actionlint.NewProject(root)
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range workflows(t) {
		problems, err := linter.Lint(path, content, project)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range problems {
			t.Errorf("%s:%d: %s", path, problem.Line, problem.Message)
		}
	}
}

var (
	uses = regexp.MustCompile(`(?m)^\s*(?:- )?uses: *(.*)$`)
	// pinned matches an action at a commit, with its version in a comment.
	pinned = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	// local matches a workflow or an action in this repository, at the same commit.
	local = regexp.MustCompile(`^\./[\w./-]+$`)
)

func TestActionsArePinnedToCommits(t *testing.T) {
	// An action's owner can move a tag to another commit.
	for path, content := range workflows(t) {
		for _, found := range uses.FindAllStringSubmatch(string(content), -1) {
			if !pinned.MatchString(found[1]) && !local.MatchString(found[1]) {
				t.Errorf("%s uses %q: replace the version by the full hash of its commit, and add the version as a comment", path, found[1])
			}
		}
	}
}

func TestPinsRequireAFullHashAndAVersion(t *testing.T) {
	hash := strings.Repeat("0123456789", 4)
	for use, want := range map[string]bool{
		"actions/checkout@" + hash + " # v7.0.1":          true,
		"github/codeql-action/init@" + hash + " # v4.0.0": true,
		"actions/checkout@" + hash:                        false,
		"actions/checkout@" + hash[:39] + " # v7.0.1":     false,
		"actions/checkout@" + hash + " # main":            false,
		"actions/checkout@v7.0.1":                         false,
		"docker://alpine@" + hash + " # v3.0.0":           false,
	} {
		if got := pinned.MatchString(use); got != want {
			t.Errorf("%s is pinned: %t, want %t", use, got, want)
		}
	}
}

var (
	// loop matches a list of make targets in a script, and made a single one.
	loop = regexp.MustCompile(`(?m)^for target in ([a-z -]+); do$`)
	made = regexp.MustCompile(`(?m)^make ([a-z-]+)\b`)
)

func TestCIRunsItsScriptsTargetsInParallel(t *testing.T) {
	script := string(readFile(t, filepath.Join(root, ".ci", "run")))
	var want []string
	for _, found := range loop.FindAllStringSubmatch(script, -1) {
		want = append(want, strings.Fields(found[1])...)
	}
	for _, found := range made.FindAllStringSubmatch(script, -1) {
		want = append(want, found[1])
	}
	job := parseWorkflow(t, readFile(t, filepath.Join(root, ".github", "workflows", "ci.yml"))).Jobs["ci"]
	var got []string
	for _, target := range job.Strategy.Matrix.Rows["target"].Values {
		got = append(got, strings.Trim(target.String(), `"`))
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 5 || !slices.Equal(got, want) {
		t.Errorf("CI runs the targets %q, want %q as .ci/run", got, want)
	}
	last, ok := job.Steps[len(job.Steps)-1].Exec.(*actionlint.ExecRun)
	if !ok || last.Run.Value != "make ${{ matrix.target }}" {
		t.Error("the last step of CI does not run the target of its job")
	}
}

// jobPermissions are each job's permissions, in addition to contents: read.
var jobPermissions = map[string][]string{
	"release.yml image":  {"attestations: write", "id-token: write", "packages: write"},
	"release.yml chart":  {"attestations: write", "id-token: write", "packages: write"},
	"release.yml plugin": {"attestations: write", "contents: write", "id-token: write"},
	"release.yml verify": {"packages: read"},
}

func TestJobsHaveOnlyThePermissionsThatTheyNeed(t *testing.T) {
	for path, content := range workflows(t) {
		workflow := parseWorkflow(t, content)
		if workflow.Permissions == nil {
			t.Errorf("%s has no permissions, so its jobs have the default permissions of the repository", path)
		}
		if got := additional(workflow.Permissions); len(got) > 0 {
			t.Errorf("%s gives every job the permissions %q", path, got)
		}
		for name, job := range workflow.Jobs {
			if got, want := additional(job.Permissions), jobPermissions[filepath.Base(path)+" "+name]; !slices.Equal(got, want) {
				t.Errorf("%s: job %s has the permissions %q, want %q", path, name, got, want)
			}
		}
	}
}

// additional returns the permissions except contents: read.
func additional(p *actionlint.Permissions) []string {
	if p == nil {
		return nil
	}
	if p.All != nil {
		return []string{p.All.Value}
	}
	var found []string
	for name, scope := range p.Scopes {
		if permission := name + ": " + scope.Value.Value; permission != "contents: read" {
			found = append(found, permission)
		}
	}
	slices.Sort(found)
	return found
}

// writtenDigest matches an image digest.
var writtenDigest = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

func TestNoImageDigestIsWrittenByHand(t *testing.T) {
	// The release workflow resolves the digests.
	files := []string{"Dockerfile", "Makefile", "charts/tunnel-gateway/Chart.yaml", "charts/tunnel-gateway/values.yaml", "internal/connector/pod.go", "internal/connector/envoy.go"}
	for _, pattern := range []string{".github/workflows/*", ".ci/*"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("found no files for %s, error %v", pattern, err)
		}
		for _, path := range found {
			files = append(files, strings.TrimPrefix(path, root+"/"))
		}
	}
	for _, path := range files {
		if digest := writtenDigest.Find(readFile(t, filepath.Join(root, path))); digest != nil {
			t.Errorf("%s contains the digest %s", path, digest)
		}
	}
}
