package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/progress"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/cloudflare"
)

// diffOptions are those of plan --diff.
type diffOptions struct {
	enabled    bool
	color      string
	cloudflare config.Cloudflare
	group      config.Group
}

var colorModes = []string{"auto", "always", "never"}

func (o *diffOptions) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.enabled, "diff", false, "compare with the configurations that the tunnels have at Cloudflare, and end with status 3 when a push would change one")
	f.StringVar(&o.color, "color", "auto", "`when` the output of --diff has colours: auto, always or never; auto is on a terminal, unless NO_COLOR is set")
	o.group = o.cloudflare.Flags("Read")
	o.group.Flags.Lookup("cloudflare-api-token-secret").Usage = "`namespace/name` of a Secret, in the cluster or among the manifests, that has the token under the key token"
	token := o.group.Flags.Lookup("cloudflare-api-token")
	token.Usage = strings.Replace(token.Usage, "this or the next,", "this or --cloudflare-api-token-secret,", 1)
	o.group.Flags.VisitAll(func(flag *pflag.Flag) { flag.Usage += " [" + config.EnvName(flag.Name) + "]" })
	f.AddFlagSet(o.group.Flags)
}

// load reads the environment and returns all that is wrong with the
// settings. Without --diff they are not looked at.
func (o *diffOptions) load() error {
	if !o.enabled {
		return nil
	}
	var errs []error
	if !slices.Contains(colorModes, o.color) {
		errs = append(errs, fmt.Errorf("--color %q is none of auto, always, never", o.color))
	}
	errs = append(errs, config.FromEnvironment([]config.Group{o.group}, os.LookupEnv), o.cloudflare.CheckFormat())
	return errors.Join(errs...)
}

// account returns the controller's account, which only --diff knows.
func (o *diffOptions) account() credentials.Default {
	if !o.enabled {
		return credentials.Default{}
	}
	return defaultCredentials(o.cloudflare)
}

// compare reads the tunnels. Secrets with API tokens are read from the source of
// the plan.
func (o *diffOptions) compare(ctx context.Context, made *plan.Plan, objects client.Reader, line *progress.Line) error {
	defer line.Step("reading the tunnels at Cloudflare")()
	return made.Compare(ctx, o.accounts(objects))
}

// accounts opens each account once, also one that cannot be opened.
func (o *diffOptions) accounts(objects client.Reader) plan.OpenAccount {
	type answer struct {
		provider provider.Provider
		err      error
	}
	opened := map[credentials.Source]answer{}
	return func(ctx context.Context, from credentials.Source) (provider.Provider, error) {
		known, ok := opened[from]
		if !ok {
			known.provider, known.err = o.open(ctx, from, objects)
			opened[from] = known
		}
		return known.provider, known.err
	}
}

func (o *diffOptions) open(ctx context.Context, from credentials.Source, objects client.Reader) (provider.Provider, error) {
	if err := checkCredentials(from); err != nil {
		return nil, err
	}
	token := from.Token
	if from.Secret.Name != "" {
		var err error
		if token, _, err = from.ReadToken(ctx, objects); err != nil {
			return nil, err
		}
	}
	p, err := cloudflare.New(cloudflare.Options{AccountID: from.Account, APIToken: token, BaseURL: o.cloudflare.BaseURL})
	if err != nil {
		return nil, &credentials.TokenError{Secret: from.Secret, Reason: err.Error()}
	}
	return p, nil
}

// checkCredentials returns which flags are missing to read a Gateway's tunnel.
func checkCredentials(from credentials.Source) error {
	var missing []string
	ask := func(flag string) { missing = append(missing, fmt.Sprintf("--%s (or %s)", flag, config.EnvName(flag))) }
	if from.Account == "" {
		ask("cloudflare-account-id")
	}
	if !from.HasToken() {
		ask("cloudflare-api-token")
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("its tunnel cannot be read without %s, or spec.account in the TunnelConfiguration of its GatewayClass", strings.Join(missing, " and "))
}

// writer prints the differences for people on stdout.
func (o *diffOptions) writer(stdout io.Writer) func(io.Writer, *plan.Plan) error {
	colour := o.useColor(stdout)
	return func(w io.Writer, p *plan.Plan) error { return p.WriteDiff(w, colour) }
}

// useColor reports whether what is written to w has them.
func (o *diffOptions) useColor(w io.Writer) bool {
	if o.color != "auto" {
		return o.color == "always"
	}
	file, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}
