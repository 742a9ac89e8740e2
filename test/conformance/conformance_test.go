package conformance

import (
	"bufio"
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
	logs := logDirectory(t)
	report := filepath.Join(logs, "report.yaml")
	log, err := os.Create(filepath.Join(logs, "suite.log"))
	must(t, err)
	defer log.Close() //nolint:errcheck // a log

	events := startSuite(t, report, filepath.Join(logs, "controller.log"))
	seen := list.judgeAll(t, io.TeeReader(events, lines{log}))
	only := onlyTest()
	for _, name := range testNames() {
		if list.expected(name) != notRun && seen[name] == "" && (only == "" || only == name) {
			t.Errorf("%s did not run; the log of the suite is %s", name, log.Name())
		}
	}
	if !*existing && only == "" {
		t.Run("supported features", func(t *testing.T) { checkFeatures(t, report, seen) })
		t.Run("documents", func(t *testing.T) { checkDocuments(t, report, list) })
	}
}

// judgeAll judges every test of the suite when it ends, in the run in which its
// outcome counts, and returns the outcomes.
func (x exceptions) judgeAll(t *testing.T, events io.Reader) results {
	seen, output := results{}, map[string]string{}
	decoder := json.NewDecoder(bufio.NewReader(events))
	for {
		var e event
		if err := decoder.Decode(&e); err == io.EOF {
			return seen
		} else if err != nil {
			t.Fatalf("reading the suite's results: %v", err)
		}
		run, name := e.subject()
		output[run+"/"+name] += e.Output
		if got := e.outcome(); got != "" && e.Test == "TestSuite/"+run+"/"+name && x.runsIn(name) == run {
			seen[name] = got
			t.Run(name, func(t *testing.T) { x.judge(t, name, got, e.Elapsed, output[run+"/"+name]) })
		}
	}
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
func startSuite(t *testing.T, report, controllerLog string) io.Reader {
	arguments := append([]string{"tool", "test2json", "-t", os.Args[0]}, suiteFlags()...)
	command := exec.CommandContext(t.Context(), "go", arguments...) // #nosec G702 -- this very program
	command.Env = append(os.Environ(), reportVariable+"="+report, controllerLogVariable+"="+controllerLog)
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
	flags := []string{"-test.run=^TestSuite$", "-test.v=test2json"}
	flag.Visit(func(f *flag.Flag) {
		if name := f.Name; !strings.HasPrefix(name, "test.") || name == "test.timeout" {
			flags = append(flags, "-"+name+"="+f.Value.String())
		}
	})
	return flags
}

// event is one line of `go tool test2json`.
type event struct {
	Action, Test, Output string
	Elapsed              float64 // seconds
}

// subject tells which run and which of its tests the event is about.
func (e event) subject() (run, name string) {
	parts := strings.Split(e.Test, "/")
	if len(parts) > 1 {
		run = parts[1]
	}
	if len(parts) > 2 {
		name = parts[2]
	}
	return run, name
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

// lines writes the output of events to a log, as `go test -v` would show it.
type lines struct{ log io.Writer }

func (l lines) Write(data []byte) (int, error) {
	for line := range strings.Lines(string(data)) {
		var e event
		if json.Unmarshal([]byte(line), &e) == nil {
			if _, err := io.WriteString(l.log, e.Output); err != nil {
				return 0, err
			}
		}
	}
	return len(data), nil
}

// judge compares an outcome with what was expected of it.
func (x exceptions) judge(t *testing.T, name string, got outcome, seconds float64, output string) {
	want := x.expected(name)
	switch got {
	case want:
		t.Logf("it %s, as expected, in %.1f s", got, seconds)
	case fails:
		t.Errorf("it has failed after %.1f s:\n%s", seconds, indent(output))
	default:
		t.Errorf("it passes now: take it out of exceptions.yaml, or say there that it does")
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
