package conformance

import (
	"bufio"
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/gateway-api/conformance/tests"
)

// The runs of the suite.
const (
	claimedRun   = "claimed"
	byNameRun    = "byName"
	unclaimedRun = "unclaimed"
	controlRun   = "control"
)

var update = flag.Bool("update", false, "write the files in docs/conformance anew")

// results are the outcomes of the suite's tests by their names.
type results map[string]outcome

// TestConformance runs the suite and fails for every test of it whose outcome
// is not the one that exceptions.yaml expects, in either direction.
func TestConformance(t *testing.T) {
	if os.Getenv(reportVariable) != "" {
		t.Fatal("this is the process that runs the suite, and not to start another")
	}
	list := readExceptions(t)
	checkArguments(t, list)
	f := newFiles(t)
	seen := follow(t, list, startSuite(t, f), f.suiteLog)
	if !*existing && onlyTest() == "" {
		t.Run("supported features", func(t *testing.T) { checkFeatures(t, f.features, seen) })
		t.Run("documents", func(t *testing.T) { checkDocuments(t, f.report, list) })
	}
}

// checkArguments ends the test when it would not do what is asked for.
func checkArguments(t *testing.T, list exceptions) {
	if flag.NArg() > 0 {
		t.Fatalf("%q are no flags; a boolean one is written -flag=true", flag.Args())
	}
	if only := onlyTest(); only != "" && (!slices.Contains(testNames(), only) || list.expected(only) == notRun) {
		t.Fatalf("-run-test: %s is no test that is run here", only)
	}
}

// follow writes the suite's log, judges every test when it ends, and returns the
// outcomes.
func follow(t *testing.T, list exceptions, events io.Reader, logFile string) results {
	log, err := os.Create(logFile)
	must(t, err)
	defer log.Close() //nolint:errcheck // a log
	j := judge{list: list, seen: results{}, output: map[string]string{}}
	decoder := json.NewDecoder(bufio.NewReader(events))
	for {
		var e event
		if err := decoder.Decode(&e); err == io.EOF {
			j.end(t, logFile)
			return j.seen
		} else if err != nil {
			t.Fatalf("reading the suite's results: %v", err)
		}
		_, err := log.WriteString(e.Output)
		must(t, err)
		j.hear(t, e)
	}
}

// judge compares what becomes of the suite's tests with what is expected.
type judge struct {
	list    exceptions
	seen    results
	output  map[string]string // by run and test
	control outcome           // of the last run
	bed     string            // what was said outside of all runs
}

// hear judges the test that the event is the end of.
func (j *judge) hear(t *testing.T, e event) {
	run, name, whole := e.subject()
	key := run + "/" + name
	if run == "" {
		j.bed += e.Output
	}
	j.output[key] += e.Output
	got := e.outcome()
	switch {
	case got == "" || !whole:
	case key == controlRun+"/":
		j.control = got
	case key == claimedRun+"/" && got == fails:
		t.Errorf("the first run has failed:\n%s", indent(j.output[key]))
	case name != "" && j.list.runsIn(name) == run:
		j.seen[name] = got
		t.Run(name, func(t *testing.T) { j.test(t, name, got, j.output[key]) })
	}
	if got != "" && whole {
		delete(j.output, key) // it can be long
	}
}

// strangers in the output of a test that fails tell that it does so for another
// reason than ours.
var strangers = regexp.MustCompile(`no such host|is not the address of a tunnel|error (parsing manifest|creating resource|updating resource)`)

// test judges one test.
func (j *judge) test(t *testing.T, name string, got outcome, output string) {
	want := j.list.expected(name)
	switch {
	case got == want && want == fails && strangers.MatchString(output):
		t.Errorf("it fails as expected, but for a reason that is not the one given:\n%s", indent(output))
	case got == want:
		t.Logf("it %s, as expected", got)
	case got == fails:
		t.Errorf("it has failed:\n%s", indent(output))
	default:
		t.Errorf("it passes now: take it out of exceptions.yaml, or say there that it does")
	}
}

// end judges what did not happen, and what the tests were run against.
func (j *judge) end(t *testing.T, logFile string) {
	only := onlyTest()
	for _, name := range testNames() {
		if happens(j.list.runsIn(name)) && j.seen[name] == "" && (only == "" || only == name) {
			t.Errorf("%s did not run to its end; the log of the suite is %s", name, logFile)
		}
	}
	if j.control != passes {
		t.Errorf("%s does not pass in the end: what was run against may have been gone before; the log is %s", controlTest, logFile)
	}
	if bed := j.bed; strings.Contains(bed, "bed_test.go:") {
		t.Errorf("something that the suite runs against has failed:\n%s", indent(bed))
	}
}

// files are what a run leaves.
type files struct{ report, features, suiteLog, controllerLog string }

// newFiles names them, and removes those of an earlier run.
func newFiles(t *testing.T) files {
	dir := logDirectory(t)
	f := files{
		report: filepath.Join(dir, "report.yaml"), features: filepath.Join(dir, "features.yaml"),
		suiteLog: filepath.Join(dir, "suite.log"), controllerLog: filepath.Join(dir, "controller.log"),
	}
	for _, file := range []string{f.report, f.features, f.suiteLog, f.controllerLog} {
		must(t, os.RemoveAll(file))
	}
	return f
}

// logDirectory is where logs and the report are kept after the run.
func logDirectory(t *testing.T) string {
	dir, err := filepath.Abs(filepath.Join("..", "..", "bin", "conformance"))
	must(t, err)
	must(t, os.MkdirAll(dir, 0o750))
	return dir
}

// startSuite runs TestSuite in a process of its own, with the flags that this
// one was given, and returns its events.
func startSuite(t *testing.T, f files) io.Reader {
	arguments := append([]string{"tool", "test2json", "-t", os.Args[0]}, suiteFlags()...)
	command := exec.CommandContext(t.Context(), "go", arguments...) // #nosec G702 -- this very program
	command.Env = append(os.Environ(), reportVariable+"="+f.report,
		featuresVariable+"="+f.features, controllerLogVariable+"="+f.controllerLog)
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = time.Minute
	events, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() { _ = command.Wait() }) // how it ended is in the events
	return events
}

// suiteFlags are the flags that were set, but for those of `go test` that are
// about this process.
func suiteFlags() []string {
	flags := []string{"-test.run=^TestSuite$", "-test.v=test2json", "-test.timeout=25m"}
	flag.Visit(func(f *flag.Flag) {
		if name := f.Name; !strings.HasPrefix(name, "test.") {
			flags = append(flags, "-"+name+"="+f.Value.String())
		}
	})
	return flags
}

// event is one line of `go tool test2json`.
type event struct{ Action, Test, Output string }

// subject tells which run and which of its tests the event is about, and
// whether it is about the whole of that and not about a part.
func (e event) subject() (run, name string, whole bool) {
	parts := strings.Split(e.Test, "/")
	if len(parts) > 1 {
		run = parts[1]
	}
	if len(parts) > 2 {
		name = parts[2]
	}
	if run == byNameRun { // one run for each test
		return run, name, len(parts) == 4 && parts[3] == name
	}
	return run, name, len(parts) <= 3
}

func (e event) outcome() outcome {
	switch e.Action {
	case "pass":
		return passes
	case "fail":
		return fails
	default: // a test that is skipped has no outcome
		return ""
	}
}

// indent keeps lines of another `go test` from being taken for ours.
func indent(output string) string {
	return "  | " + strings.ReplaceAll(strings.TrimSpace(output), "\n", "\n  | ")
}

// names of all tests of the suite, sorted.
func testNames() []string {
	var names []string
	for _, test := range tests.ConformanceTests {
		names = append(names, test.ShortName)
	}
	slices.Sort(names)
	return names
}
