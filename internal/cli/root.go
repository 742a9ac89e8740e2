// Package cli contains the commands of the tunnel-gateway binary. It translates
// arguments into calls of other packages, and their results into output and an exit
// status.
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

// Exit statuses.
const (
	exitOK      = 0
	exitFailure = 1
	// exitUnexpectedCondition means that plan --strict found a condition without its
	// expected status.
	exitUnexpectedCondition = 2
	// exitChanges means that plan --diff found that a push would change a tunnel.
	exitChanges = 3
)

// errUnexpectedCondition results in exitUnexpectedCondition.
var errUnexpectedCondition = errors.New("a condition does not have its expected status, or a Gateway has a warning")

// errChanges results in exitChanges.
var errChanges = errors.New("a push would change a tunnel")

// Streams are the standard streams of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Run executes a command and returns the exit status. args are the arguments of the
// process, beginning with the name of the program.
func Run(ctx context.Context, args []string, s Streams) int {
	name := filepath.Base(args[0])
	program := displayName(name)
	root := &cobra.Command{
		Use:           name,
		Short:         "A Kubernetes controller that serves Gateway API resources through Cloudflare Tunnel",
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

// displayName returns the command that users type to run the program: its file
// name, or "kubectl NAME" for a kubectl plugin.
func displayName(name string) string {
	if plugin, ok := strings.CutPrefix(strings.TrimSuffix(name, ".exe"), "kubectl-"); ok {
		return "kubectl " + plugin
	}
	return name
}
