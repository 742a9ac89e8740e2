package cli

import (
	"fmt"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// checkGaps refuses the outputs that require complete configurations if the user may not
// read everything: rules that are missing in them would look like rules to delete.
func (o *planOptions) checkGaps(source *state.Source) error {
	gaps := source.DescribeGaps()
	switch {
	case gaps == "":
		return nil
	case o.diff.enabled:
		return fmt.Errorf("--diff compares complete configurations: %s", gaps)
	case o.printsEnvoy():
		return fmt.Errorf("--output %s prints complete configurations: %s", o.output, gaps)
	}
	return nil
}
