package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/progress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/secrets"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/cloudflare"
)

// diffOptions are the flags for plan --diff.
type diffOptions struct {
	enabled    bool
	cloudflare config.Cloudflare
	// signingKey names the Secret with the key that signs DNS records.
	signingKey string
	group      config.Group
	accounts   cloudflare.Client
	// applications are what readApplications has read.
	applications *plan.ReadApplications
}

func (o *diffOptions) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.enabled, "diff", false, "compare with the configurations that the tunnels have at Cloudflare; exit with status 3 if a push would change a tunnel, the controller would change DNS records, or the manifests change Envoy routes")
	o.addAccountFlags(f)
}

// addAccountFlags adds the flags that select the account and its API token.
func (o *diffOptions) addAccountFlags(f *pflag.FlagSet) {
	o.group = o.cloudflare.Flags("Read")
	o.group.Flags.Lookup("cloudflare-api-token-secret").Usage = "`namespace/name` of the Secret with the API token under the key token, in the cluster or the manifests; alternative to --cloudflare-api-token"
	o.group.Flags.StringVar(&o.signingKey, "signing-key-secret", config.DefaultSigningKeySecret, "`name` of the Secret in --controller-namespace with the key that signs the controller's DNS records")
	addEnvironment(o.group.Flags)
	f.AddFlagSet(o.group.Flags)
}

// load reads the environment and validates the settings. It ignores them without
// --diff.
func (o *diffOptions) load() error {
	if !o.enabled {
		return nil
	}
	return o.loadAccount()
}

// loadAccount is load without --diff.
func (o *diffOptions) loadAccount() error {
	return errors.Join(config.FromEnvironment([]config.Group{o.group}, os.LookupEnv), o.cloudflare.CheckFormat())
}

// account returns the default account. Only flags for --diff set it.
func (o *diffOptions) account() credentials.Default {
	if !o.enabled {
		return credentials.Default{}
	}
	return defaultCredentials(o.cloudflare)
}

// compare compares the plan with the tunnels at Cloudflare. It reads the Secrets
// with API tokens from objects.
func (o *diffOptions) compare(ctx context.Context, result *plan.Plan, objects client.Reader, line *progress.Line) error {
	done := line.Step("reading the tunnels at Cloudflare")
	err := result.Compare(ctx, o.openAccounts(objects))
	done()
	defer line.Step("reading the DNS zones at Cloudflare")()
	result.CompareZones(ctx, o.openZones(objects), objects, o.signingKey)
	return errors.Join(err, ctx.Err())
}

// readApplications reads the applications of Cloudflare Access on which the plan depends. It
// reports whether there are any.
func (o *diffOptions) readApplications(ctx context.Context, result *plan.Plan, objects client.Reader, line *progress.Line) bool {
	defer line.Step("reading the applications at Cloudflare")()
	o.applications = result.ReadApplications(ctx, o.openAccounts(objects), o.openApplications(objects), objects, o.signingKey)
	return o.applications != nil
}

// openApplications returns a function that opens the applications of an account. Like
// [diffOptions.openZones], it uses the account's token if the Secret with the API token for
// Access cannot be read.
func (o *diffOptions) openApplications(objects client.Reader) plan.OpenApplications {
	return func(ctx context.Context, account credentials.Source, separate *credentials.Source) (provider.Access, error) {
		token, own, err := readTokens(ctx, account, separate, objects)
		if err != nil {
			return nil, err
		}
		a, err := o.accounts.OpenAccess(cloudflare.Options{AccountID: account.Account, APIToken: token, BaseURL: o.cloudflare.BaseURL}, own)
		if err != nil {
			return nil, &credentials.TokenError{Secret: account.Secret, Reason: err.Error()}
		}
		return a, nil
	}
}

// openAccounts returns a function that opens an account at most once, even if
// opening it fails.
func (o *diffOptions) openAccounts(objects client.Reader) plan.OpenAccount {
	type result struct {
		provider provider.Provider
		err      error
	}
	results := map[credentials.Source]result{}
	return func(ctx context.Context, source credentials.Source) (provider.Provider, error) {
		r, ok := results[source]
		if !ok {
			r.provider, r.err = o.open(ctx, source, objects)
			results[source] = r
		}
		return r.provider, r.err
	}
}

// open returns the provider for an account.
func (o *diffOptions) open(ctx context.Context, source credentials.Source, objects client.Reader) (provider.Provider, error) {
	token, err := readAPIToken(ctx, source, objects)
	if err != nil {
		return nil, err
	}
	p, err := o.accounts.Open(cloudflare.Options{AccountID: source.Account, APIToken: token, BaseURL: o.cloudflare.BaseURL})
	if err != nil {
		return nil, &credentials.TokenError{Secret: source.Secret, Reason: err.Error()}
	}
	return p, nil
}

// openZones returns a function that opens the zones of an account. If the Secret with the
// API token for DNS cannot be read, the account's token is used: users of plan often have a
// token of their own, and no permission to get the controller's.
func (o *diffOptions) openZones(objects client.Reader) plan.OpenZones {
	return func(ctx context.Context, account credentials.Source, separate *credentials.Source) (provider.DNS, error) {
		token, own, err := readTokens(ctx, account, separate, objects)
		if err != nil {
			return nil, err
		}
		d, err := o.accounts.OpenDNS(cloudflare.Options{AccountID: account.Account, APIToken: token, BaseURL: o.cloudflare.BaseURL}, own)
		if err != nil {
			return nil, &credentials.TokenError{Secret: account.Secret, Reason: err.Error()}
		}
		return d, nil
	}
}

// readTokens returns the account's API token, and the separate one for records or
// applications, which is empty if it cannot be read or if there is none. Without the
// account's token, the separate one takes its place.
func readTokens(ctx context.Context, account credentials.Source, separate *credentials.Source, objects client.Reader) (token, own string, err error) {
	if separate != nil {
		own, _, _ = secrets.ReadToken(ctx, objects, *separate)
	}
	if token, err = readAPIToken(ctx, account, objects); err != nil && own == "" {
		return "", "", err
	}
	return cmp.Or(token, own), own, nil
}

// readAPIToken returns the API token from the flags or from the Secret.
func readAPIToken(ctx context.Context, source credentials.Source, objects client.Reader) (string, error) {
	if err := checkCredentials(source); err != nil {
		return "", err
	}
	if source.Secret.Name == "" {
		return source.Token, nil
	}
	token, _, err := secrets.ReadToken(ctx, objects, source)
	return token, err
}

// checkCredentials returns an error that names the missing flags if the account or
// its API token is missing.
func checkCredentials(source credentials.Source) error {
	var missing []string
	add := func(flag string) { missing = append(missing, fmt.Sprintf("--%s (or %s)", flag, config.EnvName(flag))) }
	if source.Account == "" {
		add("cloudflare-account-id")
	}
	if !source.HasToken() {
		add("cloudflare-api-token")
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("no credentials to read the tunnel: set %s, or spec.account in the GatewayClass's TunnelConfiguration", strings.Join(missing, " and "))
}
