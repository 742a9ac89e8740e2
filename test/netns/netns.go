package netns

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// variable is the environment variable with the state, which child processes inherit:
// empty before Run, then entering in the process that sets up its namespace, inside, or
// unavailablePrefix and the reason.
const (
	variable          = "TUNNEL_GATEWAY_NETNS"
	entering          = "entering"
	inside            = "inside"
	unavailablePrefix = "unavailable: "
)

// Run returns the result of run, which it calls in a network namespace. TestMain passes
// it to [os.Exit]:
//
//	func TestMain(m *testing.M) { os.Exit(netns.Run(prepare, m.Run)) }
//
// Run starts the test binary again in the namespace, with the same arguments, forwards
// signals to it, and returns its exit status. If this process is killed, so is the
// process in the namespace. A child process that calls Run again stays in the namespace.
// prepare, which may be nil, is called before, with access to the machine's network. If
// it fails, Run reports its error and returns 1.
//
// A namespace needs root or permission to create user namespaces. Without either, Run calls
// run in this process, and [Require] skips tests.
func Run(prepare func() error, run func() int) int {
	switch state := os.Getenv(variable); {
	case state == entering:
		if !enter() {
			return 1 // the parent process runs the tests itself
		}
		return run()
	case state != "":
		return run()
	}
	if prepare != nil {
		if err := prepare(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	status, err := runInNamespace()
	if err == nil {
		return status
	}
	fmt.Fprintf(os.Stderr, "The tests run without a network namespace: %v\n", err)
	setState(unavailablePrefix + err.Error())
	return run()
}

// Require skips the test unless it runs in a network namespace.
func Require(t testing.TB) {
	t.Helper()
	switch state := os.Getenv(variable); {
	case state == inside:
	case strings.HasPrefix(state, unavailablePrefix):
		t.Skip("requires a network namespace: " + strings.TrimPrefix(state, unavailablePrefix))
	default:
		t.Fatal("TestMain does not call netns.Run")
	}
}

func setState(state string) {
	if err := os.Setenv(variable, state); err != nil {
		panic(err) // the name is valid
	}
}
