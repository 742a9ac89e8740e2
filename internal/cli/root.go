// Package cli contains the tunnel-gateway commands. It translates arguments into calls to
// other packages, and their results into output and an exit status.
package cli

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tunnel-gateway/tunnel-gateway/internal/adoption"
	"github.com/tunnel-gateway/tunnel-gateway/internal/operation"
)

// Exit statuses.
const (
	exitOK      = 0
	exitFailure = 1
	// exitUnexpectedCondition means that plan --strict or check found a problem.
	exitUnexpectedCondition = 2
	// exitChanges means that plan --diff found that a push would change a tunnel.
	exitChanges = 3
	// exitInterrupted means that a signal ended the command. Shells use the same status.
	exitInterrupted = 130
)

// errUnexpectedCondition results in exitUnexpectedCondition.
var errUnexpectedCondition = errors.New("a condition does not have its expected status, or a Gateway has a warning")

// errNotExpressed results in exitUnexpectedCondition.
var errNotExpressed = errors.New("the objects do not express the whole configuration")

// errInterrupted results in exitInterrupted. It replaces the error from a command that a
// signal ended.
var errInterrupted = errors.New("interrupted")

// errChanges results in exitChanges.
var errChanges = errors.New("a push would change a tunnel")

// Streams are a command's standard streams.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Run executes a command and returns the exit status. args are the process arguments,
// beginning with the program name.
func Run(ctx context.Context, args []string, s Streams) int {
	s.Out, s.Err = output{stream: s.Out}, output{stream: s.Err}
	args = completionForKubectl(args)
	root := rootCommand(filepath.Base(args[0]), s.Out)
	if len(args) > 1 && strings.HasPrefix(args[1], cobra.ShellCompRequestCmd) {
		unquoteUsages(root)
	}
	root.SetArgs(args[1:])
	root.SetIn(s.In)
	root.SetErr(s.Err)
	err := root.ExecuteContext(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errInterrupted
	}
	status := exitStatus(err)
	if status == exitFailure || status == exitInterrupted {
		printError(s.Err, root.DisplayName(), err)
	}
	return status
}

// rootCommand returns the command that runs the other commands. name is the program's
// file name, and out receives the help.
func rootCommand(name string, out io.Writer) *cobra.Command {
	program := displayName(name)
	root := &cobra.Command{
		Use:               name,
		Short:             "A Kubernetes controller that serves Gateway API resources through Cloudflare Tunnel",
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: program},
		Version:           version,
		Args:              onlyCommands,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		ValidArgsFunction: cobra.NoFileCompletions,
		SilenceErrors:     true,
		SilenceUsage:      true,
	}
	root.SetVersionTemplate(versionText())
	root.SetFlagErrorFunc(explainFlagError)
	root.AddCommand(accessCommand(program), checkCommand(program), controllerCommand(), convertCommand(program), dnsCommand(program), planCommand(program), topCommand(program), uiCommand(program), versionCommand())
	root.AddCommand(operationCommands(program)...)
	root.SetOut(out) // the next call reads it
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		rejectUnknownCommands(cmd)
	}
	wrapHelp(root, out)
	return root
}

// exitStatus returns the exit status for a command that returned err.
func exitStatus(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errUnexpectedCondition), errors.Is(err, errCheckFailed), errors.Is(err, errNotExpressed):
		return exitUnexpectedCondition
	case errors.Is(err, errChanges):
		return exitChanges
	case errors.Is(err, errInterrupted), errors.Is(err, operation.ErrStillRequested), errors.Is(err, adoption.ErrStillRequested):
		return exitInterrupted
	default:
		return exitFailure
	}
}

// completionForKubectl returns the arguments that complete a command line if the program's
// file name is the one by which kubectl asks a plugin to do so. The file can be a link.
func completionForKubectl(args []string) []string {
	plugin, ok := strings.CutPrefix(filepath.Base(args[0]), "kubectl_complete-")
	if !ok {
		return args
	}
	return append([]string{"kubectl-" + plugin, cobra.ShellCompRequestCmd}, args[1:]...)
}

// displayName returns the command that users type to run the program: its file
// name, or "kubectl NAME" for a kubectl plugin. In the name of a plugin's file, an
// underscore stands for a hyphen.
func displayName(name string) string {
	if plugin, ok := strings.CutPrefix(strings.TrimSuffix(name, ".exe"), "kubectl-"); ok {
		return "kubectl " + strings.ReplaceAll(plugin, "_", "-")
	}
	return name
}
