package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tunnel-gateway/tunnel-gateway/internal/adoption"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// errNotConfirmed is returned when the user does not confirm.
var errNotConfirmed = errors.New("not confirmed; the command has requested nothing")

// confirmation is a question, and what an error says about it if the command cannot ask.
type confirmation struct{ question, cannotAsk string }

// replacing asks whether the controller may replace the records.
func replacing(replaced []*adoption.Candidate) confirmation {
	question := "Replace the record that leads elsewhere?"
	if len(replaced) > 1 {
		question = fmt.Sprintf("Replace the %d records that lead elsewhere?", len(replaced))
	}
	return confirmation{question + " Requests then go to the Gateway.", fmt.Sprintf(
		"the controller would replace records that lead elsewhere (%s), and the command cannot ask: standard input is not a terminal; set --yes to replace them", adoption.Names(replaced))}
}

// changingPolicies asks whether the controller may change who can log in.
func changingPolicies(changing []*adoption.Application) confirmation {
	return confirmation{
		fmt.Sprintf("Replace the policies of %d of the applications? They decide who can log in.", len(changing)), fmt.Sprintf(
			"the controller would replace the policies of applications (%s), and the command cannot ask: standard input is not a terminal; set --yes to replace them", adoption.ApplicationNames(changing)),
	}
}

// confirm asks the question. It returns an error unless the user answers yes. Without a
// terminal, the user cannot answer.
func confirm(cmd *cobra.Command, c confirmation) error {
	file, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return errors.New(c.cannotAsk + ". The command has requested nothing")
	}
	return ask(cmd.Context(), file, cmd.ErrOrStderr(), c.question)
}

// ask asks on w and reads the answer from r. It returns the context's error if the user
// interrupts the command.
func ask(ctx context.Context, r io.Reader, w io.Writer, question string) error {
	terminal.Printf(w, "%s [y/N] ", question)
	answers := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(r).ReadString('\n') // no answer means no
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		terminal.Printf(w, "\n")
		return ctx.Err()
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
		return errNotConfirmed
	}
}
