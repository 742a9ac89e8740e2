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

// confirm asks whether the controller may replace the records. It returns an error unless
// the user answers yes. Without a terminal, the user cannot answer.
func confirm(cmd *cobra.Command, replaced []*adoption.Candidate) error {
	file, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return fmt.Errorf("the controller would replace records that lead elsewhere (%s), and the command cannot ask: standard input is not a terminal; "+
			"set --yes to replace them. The command has requested nothing", adoption.Names(replaced))
	}
	return ask(cmd.Context(), file, cmd.ErrOrStderr(), replaced)
}

// ask asks on w and reads the answer from r. It returns the context's error if the user
// interrupts the command.
func ask(ctx context.Context, r io.Reader, w io.Writer, replaced []*adoption.Candidate) error {
	question := "Replace the record that leads elsewhere?"
	if len(replaced) > 1 {
		question = fmt.Sprintf("Replace the %d records that lead elsewhere?", len(replaced))
	}
	terminal.Printf(w, "%s Requests then go to the Gateway. [y/N] ", question)
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
