// Command envoy replaces the Envoy image in tests that run Pods as processes. It accepts
// only the arguments that the Envoys beside connectors are deployed with, adapts their
// configuration to the machine, and executes the real Envoy, which keeps the process ID:
// a signal reaches Envoy itself.
//
// The node in package test/cluster/node has already replaced the volumes' paths. The path
// of a Unix domain socket, such as the admin interface, has at most 107 bytes.
//
// It reads these environment variables:
//
//   - ENVOY is the absolute path of Envoy.
//   - OPEN_PORT, PROTECTED_PORT and READY_PORT replace the listeners' ports. The listeners
//     are static here: Envoys that share this machine cannot have the controller's listeners.
//   - OUTBOUND_PORTS, if set, such as "80,18000", runs Envoy in a network namespace of its own,
//     with the controller's listeners. There, the listeners have their own ports, and Envoy
//     can connect only to these ports. The program then stays as Envoy's parent.
//   - SETTINGS, if set, has the connector.envoy of the Gateway's settings, as JSON, whose
//     metrics, access logs and traces the static listeners provide.
//   - XDS_ADDRESS, as host:port, replaces the controller's address.
//   - CA_FILE replaces the file with the certificate authorities in the image.
//   - MAX_PROGRAM_SIZE, if set, limits the compiled size of expressions, as in an Envoy that
//     rejects a configuration which the controller considers valid.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	log.SetFlags(0)
	log.Fatal(run(os.Args[1:], os.Getenv))
}

// run executes Envoy. It returns only if that fails.
func run(arguments []string, getenv func(string) string) error {
	program := getenv("ENVOY")
	if !filepath.IsAbs(program) {
		return fmt.Errorf("ENVOY must be an absolute path, got %q", program)
	}
	s, err := parse(arguments)
	if err != nil {
		return err
	}
	r, err := newReplacements(getenv)
	if err != nil {
		return err
	}
	configuration, err := r.adapt([]byte(s.configuration))
	if err != nil {
		return fmt.Errorf("--config-yaml: %w", err)
	}
	command := slices.Concat([]string{program, "--config-yaml", string(configuration)}, s.others)
	if r.pod != nil {
		status, err := r.pod.run(envoyCommand(command))
		if err == nil {
			os.Exit(status)
		}
		return err
	}
	return fmt.Errorf("execute %s: %w", program, syscall.Exec(program, command, os.Environ())) // #nosec G204 -- the test sets the path
}

// envoyCommand returns the command. Envoy stays in the process group that the node kills.
func envoyCommand(command []string) *exec.Cmd {
	c := exec.Command(command[0], command[1:]...) // #nosec G204 -- the test sets the path
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	return c
}

// settings are Envoy's arguments.
type settings struct {
	configuration string
	others        []string
}

// parse reads the arguments. It rejects every argument that connectors are not deployed
// with, so that a test detects an unexpected one, and requires all others.
func parse(arguments []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("envoy", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints the error
	flags.StringVar(&s.configuration, "config-yaml", "", "")
	concurrency := flags.Uint("concurrency", 0, "")
	level := flags.String("log-level", "", "")
	withoutHotRestart := flags.Bool("disable-hot-restart", false, "")
	if err := flags.Parse(arguments); err != nil {
		return settings{}, err
	}
	switch levels := []string{"trace", "debug", "info", "warning", "warn", "error", "critical", "off"}; {
	case flags.NArg() > 0:
		return settings{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case s.configuration == "":
		return settings{}, errors.New("--config-yaml is required")
	case *concurrency == 0:
		return settings{}, errors.New("--concurrency must be at least 1")
	case !slices.Contains(levels, *level):
		return settings{}, fmt.Errorf("--log-level must be one of %s", strings.Join(levels, ", "))
	case !*withoutHotRestart:
		return settings{}, errors.New("--disable-hot-restart is required")
	}
	s.others = []string{"--concurrency", fmt.Sprint(*concurrency), "--log-level", *level, "--disable-hot-restart"}
	return s, nil
}
