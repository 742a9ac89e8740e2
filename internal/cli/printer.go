package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// printFunc prints a plan, its differences, or an explanation for a request.
type printFunc func(io.Writer, *plan.Plan) error

// printer returns the function that prints what the flags select: the plan, its
// differences, or an explanation for a request.
func (o *planOptions) printer(stdout io.Writer) (printFunc, error) {
	style := o.style(stdout)
	switch o.output {
	case formatEnvoy:
		return func(w io.Writer, p *plan.Plan) error { return p.WriteEnvoy(w) }, nil
	case formatEnvoyRoutes:
		return func(w io.Writer, p *plan.Plan) error { return p.WriteEnvoyRoutes(w) }, nil
	}
	if o.why == "" {
		table := func(w io.Writer, p *plan.Plan) error { return p.WriteTable(w, style) }
		if o.diff.enabled {
			table = func(w io.Writer, p *plan.Plan) error { return p.WriteDiff(w, style.Color) }
		}
		return formatPrinter(o.output, table, func(p *plan.Plan) any { return p })
	}
	request, err := o.request()
	if err != nil {
		return nil, err
	}
	table := func(w io.Writer, p *plan.Plan) error { return p.Explain(request).WriteTable(w, style) }
	return formatPrinter(o.output, table, func(p *plan.Plan) any { return p.Explain(request) })
}

// style returns how text on stdout is styled.
func (o *planOptions) style(stdout io.Writer) plan.Style {
	return plan.Style{Color: o.color.enabled(stdout), Width: terminalWidth(stdout), Wide: o.wide}
}

// colored returns stdout, with colors if --color enables them.
func (o *planOptions) colored(stdout io.Writer) io.Writer {
	if o.color.enabled(stdout) {
		return withColors(stdout)
	}
	return stdout
}

// request returns the request that --why, --method and --header describe.
func (o *planOptions) request() (routing.Request, error) {
	request, err := routing.ParseRequest(o.why)
	if err != nil {
		return request, fmt.Errorf("--why: %w", err)
	}
	request.Method = strings.ToUpper(o.method)
	for _, header := range o.headers {
		if err := request.AddHeader(header); err != nil {
			return request, fmt.Errorf("--header %w", err)
		}
	}
	return request, nil
}

// The formats that print the Envoy configuration instead of the plan.
const (
	formatEnvoy       = "envoy"
	formatEnvoyRoutes = "envoy-routes"
)

// planFormats are the values that --output accepts.
var planFormats = []string{"table", "yaml", "json", formatEnvoy, formatEnvoyRoutes}

// printsEnvoy reports whether the output is the Envoy configuration.
func (o *planOptions) printsEnvoy() bool {
	return o.output == formatEnvoy || o.output == formatEnvoyRoutes
}

// formatPrinter returns the function that prints in the given format. table prints
// the table; value returns the value to encode in the other formats.
func formatPrinter(format string, table printFunc, value func(*plan.Plan) any) (printFunc, error) {
	switch format {
	case "table":
		return table, nil
	case "json":
		return encodedPrinter(encodeJSON, value), nil
	case "yaml":
		return encodedPrinter(encodeYAML, value), nil
	default:
		return nil, fmt.Errorf("--output must be one of %s, got %q", strings.Join(planFormats, ", "), format)
	}
}

// encodedPrinter returns the function that prints an encoded value.
func encodedPrinter(encode func(any) ([]byte, error), value func(*plan.Plan) any) printFunc {
	return func(w io.Writer, p *plan.Plan) error {
		text, err := encode(value(p))
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}
}
