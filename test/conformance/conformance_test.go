package conformance

import (
	"bufio"
	"encoding/json"
	"errors"
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

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/netns"
)

// The suite's runs.
const (
	supportedRun   = "supported"
	byNameRun      = "byName"
	unsupportedRun = "unsupported"
	controlRun     = "control"
)

var update = flag.Bool("update", false, "update the report and the table of tests in docs/conformance")

// results has the outcome of each test in the suite, by name.
type results map[string]outcome

// TestConformance runs the suite. It fails for each test whose outcome differs
// from the expected one in exceptions.yaml, including tests that pass
// unexpectedly.
func TestConformance(t *testing.T) {
	if os.Getenv(reportVariable) != "" {
		t.Fatal("this process runs the suite and must not start another one")
	}
	if !*existing {
		netns.Require(t)
	}
	if !slices.Contains(channels, *channel) {
		t.Fatalf("-channel: %q is not standard or experimental", *channel)
	}
	list := readExceptions(t)
	selected := selectedPlanes(t)
	checkArguments(t, list, selected)
	f := newFiles(t)
	outcomes := readResults(t, list, selected, startSuite(t, f), f.suiteLog)
	if *existing || onlyTest() != "" {
		return
	}
	for _, p := range selected {
		t.Run(string(p.name)+"/supported features", func(t *testing.T) { checkFeatures(t, p, p.file(f.features), outcomes[p.name]) })
	}
	if *channel != standard {
		return // the reports are about the standard channel
	}
	write := *update && !t.Failed()
	for _, p := range selected {
		t.Run(string(p.name)+"/report", func(t *testing.T) { checkReport(t, p, p.file(f.report), write) })
	}
	t.Run("table of tests", func(t *testing.T) { checkTable(t, list, write) })
}

// checkArguments ends the test if a flag is not valid.
func checkArguments(t *testing.T, list exceptions, selected []plane) {
	if flag.NArg() > 0 {
		t.Fatalf("arguments %q are not flags; write a boolean flag as -flag=true", flag.Args())
	}
	only := onlyTest()
	runs := func(p plane) bool { return list.with(p).runFor(only) != "" }
	if only != "" && (!slices.Contains(testNames(), only) || !slices.ContainsFunc(selected, runs)) {
		t.Fatalf("-run-test: %s is not a test of the suite, or is listed as not run", only)
	}
}

// readResults writes the suite's log, checks each test when it ends, and returns
// the outcomes by data plane.
func readResults(t *testing.T, list exceptions, selected []plane, events io.Reader, logFile string) map[v1alpha1.DataPlane]results {
	log, err := os.Create(logFile)
	must(t, err)
	defer log.Close() //nolint:errcheck // only a log
	checkers, outcomes := map[string]*checker{}, map[v1alpha1.DataPlane]results{}
	for _, p := range selected {
		outcomes[p.name] = results{}
		checkers[string(p.name)] = &checker{expectations: list.with(p), outcomes: outcomes[p.name], output: map[string]string{}}
	}
	var bedOutput string // from the test bed, outside of all runs
	decoder := json.NewDecoder(bufio.NewReader(events))
	for {
		var e event
		if err := decoder.Decode(&e); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("read the suite's results: %v", err)
		}
		_, err := log.WriteString(e.Output)
		must(t, err)
		if c := checkers[e.plane()]; c != nil {
			c.handle(t, e)
		} else {
			bedOutput += e.Output
		}
	}
	for _, c := range checkers {
		c.checkCompleteness(t, logFile)
	}
	if strings.Contains(bedOutput, "testbed_test.go:") {
		t.Errorf("the test bed failed:\n%s", indent(bedOutput))
	}
	return outcomes
}

// checker compares the outcomes of the suite's tests with one data plane with the
// expected outcomes.
type checker struct {
	expectations
	outcomes results
	output   map[string]string // by "run/test"
	control  outcome           // of controlTest in the last run
}

// handle stores the event's output, and checks the test that ends with it.
func (c *checker) handle(t *testing.T, e event) {
	run, name, whole := e.subject()
	key := run + "/" + name
	c.output[key] += e.Output
	got := e.outcome()
	switch {
	case got == "" || !whole:
	case key == controlRun+"/":
		c.control = got
	case key == supportedRun+"/" && got == fails:
		t.Errorf("the run of the supported features with the data plane %s failed:\n%s", c.name, indent(c.output[key]))
	case name != "" && c.runFor(name) == run:
		c.outcomes[name] = got
		t.Run(string(c.name)+"/"+name, func(t *testing.T) { c.checkTest(t, name, got, c.output[key]) })
	}
	if got != "" && whole {
		delete(c.output, key) // the output can be long
	}
}

// unrelatedFailure matches the output from a test that fails for another reason than the
// one in exceptions.yaml.
var unrelatedFailure = regexp.MustCompile(`no such host|is not the address of a tunnel|error (parsing manifest|creating resource|updating resource)`)

// checkTest checks the outcome of one test.
func (c *checker) checkTest(t *testing.T, name string, got outcome, output string) {
	want := c.expected(name)
	switch {
	case got == want && want == fails && unrelatedFailure.MatchString(output):
		t.Errorf("the test fails as expected, but for another reason than the one in exceptions.yaml:\n%s", indent(output))
	case got == want:
		t.Logf("the test %s, as expected", got)
	case got == fails:
		t.Errorf("the test failed:\n%s", indent(output))
	default:
		t.Errorf("the test passes now: remove it from exceptions.yaml, or change its outcome to passes")
	}
}

// checkCompleteness checks that all tests ran, and that the test bed still worked
// at the end.
func (c *checker) checkCompleteness(t *testing.T, logFile string) {
	only := onlyTest()
	missing := slices.DeleteFunc(testNames(), func(name string) bool {
		return !isEnabled(c.runFor(name)) || c.outcomes[name] != "" || (only != "" && only != name)
	})
	if len(missing) > 0 {
		t.Errorf("%d tests did not complete with the data plane %s, for example %s; the suite's log is %s, and it ends with\n%s",
			len(missing), c.name, missing[0], logFile, indent(end(t, logFile)))
	}
	if c.control != passes {
		t.Errorf("%s fails at the end with the data plane %s, so the test bed may have failed during the other tests; the log is %s",
			controlTest, c.name, logFile)
	}
}

// crash matches the message with which the Go runtime ends a program.
var crash = regexp.MustCompile(`(?m)^(panic|fatal error|SIG[A-Z]+): .*$`)

// end returns the lines in the suite's log that explain why it ended: a crash message and
// the lines after it, or the last lines.
func end(t *testing.T, logFile string) string {
	const lines = 60
	content, err := os.ReadFile(logFile)
	must(t, err)
	if at := crash.FindIndex(content); at != nil {
		after := strings.SplitAfter(string(content[at[0]:]), "\n")
		return strings.Join(after[:min(lines, len(after))], "")
	}
	all := strings.SplitAfter(string(content), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}

// files are the paths of the files that a run writes. Each data plane has its own variant
// of the first two.
type files struct{ report, features, suiteLog, controllerLog string }

// newFiles returns the paths, and removes an earlier run's files.
func newFiles(t *testing.T) files {
	dir := logDirectory(t)
	f := files{
		report: filepath.Join(dir, "report.yaml"), features: filepath.Join(dir, "features.yaml"),
		suiteLog: filepath.Join(dir, "suite.log"), controllerLog: filepath.Join(dir, "controller.log"),
	}
	for _, p := range planes {
		must(t, errors.Join(os.RemoveAll(p.file(f.report)), os.RemoveAll(p.file(f.features))))
	}
	must(t, errors.Join(os.RemoveAll(f.suiteLog), os.RemoveAll(f.controllerLog)))
	return f
}

// logDirectory returns the directory for the logs and the report. A run with one data plane has
// its own, because another one can run at the same time.
func logDirectory(t *testing.T) string {
	dir, err := filepath.Abs(filepath.Join("..", "..", "bin", "conformance", strings.ToLower(*dataPlane)))
	must(t, err)
	must(t, os.MkdirAll(dir, 0o750))
	return dir
}

// startSuite runs TestSuite in a separate process with this process's flags, and returns
// its events.
func startSuite(t *testing.T, f files) io.Reader {
	arguments := append([]string{"tool", "test2json", "-t", os.Args[0]}, suiteFlags()...)
	command := exec.CommandContext(t.Context(), "go", arguments...) // #nosec G702 -- the path of this test program
	command.Env = append(os.Environ(), reportVariable+"="+f.report,
		featuresVariable+"="+f.features, controllerLogVariable+"="+f.controllerLog)
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = time.Minute
	events, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() { _ = command.Wait() }) // the events contain the result
	return events
}

// suiteFlags returns the flags for the suite's process: this process's flags without the
// `go test` flags.
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

// path returns the names below TestSuite: data plane, run, test, and parts of the test.
func (e event) path() []string { return strings.Split(e.Test, "/")[1:] }

// plane returns the name of the event's data plane, or "".
func (e event) plane() string {
	if parts := e.path(); len(parts) > 0 {
		return parts[0]
	}
	return ""
}

// subject returns the event's run and test. It returns whole as false if the event
// describes only a part of that test or run.
func (e event) subject() (run, name string, whole bool) {
	parts := e.path()
	if len(parts) > 1 {
		run = parts[1]
	}
	if len(parts) > 2 {
		name = parts[2]
	}
	return run, name, len(parts) <= 3
}

func (e event) outcome() outcome {
	switch e.Action {
	case "pass":
		return passes
	case "fail":
		return fails
	default: // a skipped test has no outcome
		return ""
	}
}

// indent indents the suite's output, so that `go test` does not read it as this process's
// results.
func indent(output string) string {
	return "  | " + strings.ReplaceAll(strings.TrimSpace(output), "\n", "\n  | ")
}

// testNames returns the names of all tests in the suite, sorted.
func testNames() []string {
	var names []string
	for _, test := range tests.ConformanceTests {
		names = append(names, test.ShortName)
	}
	slices.Sort(names)
	return names
}
