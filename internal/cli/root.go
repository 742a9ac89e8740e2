// Package cli holds the commands of the tunnel-gateway binary: it turns
// arguments into calls of other packages, and their answers into output and an
// exit status. Nothing is decided here.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// The exit statuses.
const (
	exitOK      = 0
	exitFailure = 1
	// exitUnexpectedCondition: plan --strict found a condition that is not in its good
	// state.
	exitUnexpectedCondition = 2
	// exitChanges: plan --diff found that a push would change a tunnel.
	exitChanges = 3
)

// errUnexpectedCondition makes plan --strict end with exitNotGood.
var errUnexpectedCondition = errors.New("a condition is not in its good state")

// errChanges makes plan --diff end with exitDifferent.
var errChanges = errors.New("a push would change a tunnel")

// Streams are where a command reads from and writes to.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Run carries out the command that args name, which are those of the process
// with the program's own name first, and returns the exit status.
func Run(ctx context.Context, args []string, s Streams) int {
	name := filepath.Base(args[0])
	program := displayName(name)
	root := &cobra.Command{
		Use:           name,
		Short:         "Gateway API for Cloudflare Tunnel: teams add their own hostnames to a shared Gateway",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: program},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(controllerCommand(), planCommand(program), versionCommand())
	if len(args) > 1 && strings.HasPrefix(args[1], cobra.ShellCompRequestCmd) {
		unquoteUsages(root)
	}
	root.SetArgs(args[1:])
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errUnexpectedCondition):
		return exitUnexpectedCondition
	case errors.Is(err, errChanges):
		return exitChanges
	default:
		fmt.Fprintf(s.Err, "%s: %v\n", program, err)
		return exitFailure
	}
}

// displayName returns how people call the program: by the name of its file, unless
// kubectl runs it as a plugin.
func displayName(name string) string {
	if plugin, ok := strings.CutPrefix(strings.TrimSuffix(name, ".exe"), "kubectl-"); ok {
		return "kubectl " + plugin
	}
	return name
}
