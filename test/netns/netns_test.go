package netns_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/test/netns"
)

// roleVariable is the environment variable that selects what this program runs: the
// tests, or the role "wait", which waits for SIGTERM and ends with waitStatus.
const (
	roleVariable = "NETNS_TEST_ROLE"
	waitStatus   = 7
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "wait" {
		os.Exit(netns.Run(nil, waitForSignal))
	}
	os.Exit(netns.Run(nil, m.Run))
}

func waitForSignal() int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	fmt.Println("waiting")
	<-signals
	return waitStatus
}

func TestAddressesOfPodsAndServicesAreLocal(t *testing.T) {
	netns.Require(t)
	for _, address := range []string{"127.0.0.1:80", "10.244.0.1:80", "10.244.255.254:8080", "10.96.0.1:443", "10.111.255.254:80"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Error(err)
			continue
		}
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Error(err)
		} else {
			_ = connection.Close()
		}
		_ = listener.Close()
	}
}

func TestOtherAddressesAreUnreachable(t *testing.T) {
	netns.Require(t)
	if connection, err := net.Dial("tcp", "192.0.2.1:80"); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("got %v, %v, want that the network is unreachable", connection, err)
	}
}

func TestSignalsAndTheExitStatusAreForwarded(t *testing.T) {
	netns.Require(t)
	command := exec.Command(os.Args[0]) //nolint:gosec // G702: this program
	command.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TUNNEL_GATEWAY_NETNS=") })
	command.Env = append(command.Env, roleVariable+"=wait")
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); line != "waiting\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); command.ProcessState.ExitCode() != waitStatus {
		t.Errorf("got %v, want exit status %d", err, waitStatus)
	}
}

func TestAnIsolatedGoroutineSharesNoAddressWithTheOthers(t *testing.T) {
	netns.Require(t)
	const address = "10.96.0.1:80"
	outside, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close() //nolint:errcheck // the test ends
	done := make(chan error)
	go func() { // its thread ends with it
		done <- func() error {
			if err := netns.Isolate(); err != nil {
				return err
			}
			if connection, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
				return fmt.Errorf("got %v, %w, want a refused connection", connection, err)
			}
			inside, err := net.Listen("tcp", address)
			if err != nil {
				return err
			}
			defer inside.Close() //nolint:errcheck // the test ends
			connection, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			return connection.Close()
		}()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
