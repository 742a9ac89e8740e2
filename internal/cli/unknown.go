package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

// helpOf returns the command that prints help for cmd, in quotes.
func helpOf(cmd *cobra.Command) string { return fmt.Sprintf("%q", cmd.CommandPath()+" --help") }

// withHelp adds to an error the suggestion, unless it is empty, and the command that
// prints help for cmd.
func withHelp(cmd *cobra.Command, err error, suggestion string) error {
	if suggestion == "" {
		return fmt.Errorf("%w; see %s", err, helpOf(cmd))
	}
	return fmt.Errorf("%w, did you mean %s? See %s", err, suggestion, helpOf(cmd))
}

// explainFlagError explains an error about a command's flags.
func explainFlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return withHelp(cmd, err, "")
	}
	var flags []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { flags = append(flags, flag.Name) })
	closest := suggest.Closest(unknown.GetSpecifiedName(), flags)
	if closest != "" {
		closest = "--" + closest
	}
	return withHelp(cmd, err, closest)
}

func noArguments(cmd *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return withHelp(cmd, fmt.Errorf("%s accepts no arguments, got %q", cmd.Name(), arguments[0]), "")
	}
	return nil
}

// onlyCommands rejects arguments to a command that only runs its subcommands.
func onlyCommands(cmd *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	closest := suggest.Closest(arguments[0], names)
	if closest != "" {
		closest = fmt.Sprintf("%q", closest)
	}
	return withHelp(cmd, fmt.Errorf("unknown command %q for %q", arguments[0], cmd.CommandPath()), closest)
}

// rejectUnknownCommands makes cobra's commands fail for an unknown command. By default,
// they print a help text and succeed.
func rejectUnknownCommands(cmd *cobra.Command) {
	switch cmd.Name() {
	case "completion":
		cmd.Args = onlyCommands
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	case "help":
		cmd.Run = nil
		cmd.RunE = func(cmd *cobra.Command, arguments []string) error {
			found, rest, err := cmd.Root().Find(arguments)
			if err == nil {
				err = onlyCommands(found, rest)
			}
			if err != nil {
				return err
			}
			return found.Help()
		}
	}
}
