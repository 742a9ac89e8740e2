package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// printer prints a plan, or what is asked about it.
type printer func(io.Writer, *plan.Plan) error

// printer returns what is printed for people or for programs: the plan itself,
// its differences, or the trail of a request.
func (o *planOptions) printer(stdout io.Writer) (printer, error) {
	if o.why == "" {
		table := func(w io.Writer, p *plan.Plan) error { return p.WriteTable(w) }
		if o.diff.wanted {
			table = o.diff.writer(stdout)
		}
		return inFormat(o.output, table, func(p *plan.Plan) any { return p })
	}
	request, err := gateway.ParseRequest(o.why)
	if err != nil {
		return nil, fmt.Errorf("--why: %w", err)
	}
	table := func(w io.Writer, p *plan.Plan) error { return p.Explain(request).WriteTable(w) }
	return inFormat(o.output, table, func(p *plan.Plan) any { return p.Explain(request) })
}

// planFormats are the values of --output.
var planFormats = []string{"table", "yaml", "json"}

// inFormat returns the printer of a format: the table is for people, and what
// part returns is for programs.
func inFormat(format string, table printer, part func(*plan.Plan) any) (printer, error) {
	switch format {
	case "table":
		return table, nil
	case "json":
		return func(w io.Writer, p *plan.Plan) error {
			encoder := json.NewEncoder(w)
			encoder.SetIndent("", "  ")
			encoder.SetEscapeHTML(false)
			return encoder.Encode(part(p))
		}, nil
	case "yaml":
		return func(w io.Writer, p *plan.Plan) error {
			text, err := yaml.Marshal(part(p))
			if err == nil {
				_, err = w.Write(text)
			}
			return err
		}, nil
	default:
		return nil, fmt.Errorf("--output %q is none of %s", format, strings.Join(planFormats, ", "))
	}
}
