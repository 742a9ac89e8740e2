package cli

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tunnel-gateway/tunnel-gateway/internal/check"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/probe"
)

// checkOptions are the flags for check.
type checkOptions struct {
	namespace           string
	gateway             string
	method              string
	headers             []string
	noRequest           bool
	strict              bool
	timeout             time.Duration
	connectTo           string
	caFile              string
	output              string
	color               colorMode
	kubeconfig          string
	context             string
	clusterDomain       string
	controller          string
	controllerNamespace string
	cloudflare          config.Cloudflare
	group               config.Group
}

// checkTimeout is the default for --timeout.
const checkTimeout = time.Minute

const checkHelp = `Checks whether a hostname works, and shows which step fails and what to do. Each step is
ok, warning, failed or unknown:

  decision     which Gateway, listener, route and backend answer the request
  objects      the statuses in the cluster: Gateway, listener, route, Tunnel,
               connectors and Envoys, and whether the current configuration is in effect
  backend      the Service, its ports and its endpoints
  dns          what the name resolves to, and its record
  certificate  the certificate at Cloudflare's edge, and the zone's settings
  access       whether the hostname requires a login with Cloudflare Access
  request      the answer to a request through the edge, and which component sent it

A URL without a scheme means https. check reads the cluster with your permissions, and
DNS records with your API token, never with the controller's. A step that lacks a
permission or a token is unknown. check changes nothing.

The request has no body and follows no redirect. check sends headers only to the hostname
and only over HTTPS, and never prints them. --no-request sends no request. If a flag's
description ends with a name in brackets, the environment variable with this name also
sets the flag.

Exit status:
  0    no step failed
  1    an error occurred
  2    a step failed, or with --strict, a step has a warning or is unknown
  130  Ctrl-C ended the command`

var checkFormats = []string{"table", "json"}

// checkCommand returns the command check. program is the program name in the examples.
func checkCommand(program string) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check (HOSTNAME | URL)",
		Short: "Check whether a hostname works, and show which step fails",
		Long:  checkHelp,
		Example: strings.ReplaceAll(`  PROGRAM check shop.example.com
  PROGRAM check https://shop.example.com/cart --method POST
  PROGRAM check shop.example.com --header "Authorization: Bearer $TOKEN"
  PROGRAM check shop.example.com --no-request -o json`, "PROGRAM", program),
		Args:              oneTarget,
		ValidArgsFunction: o.completeTargets,
		RunE:              o.run,
	}
	o.addFlags(cmd.Flags())
	registerCompletion(cmd, "output", cobra.FixedCompletions(checkFormats, cobra.ShellCompDirectiveNoFileComp))
	registerCompletion(cmd, "color", cobra.FixedCompletions(colorModes, cobra.ShellCompDirectiveNoFileComp))
	registerCompletion(cmd, "context", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return contextNames(o.kubeconfig)
	})
	registerCompletion(cmd, "gateway", func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		other := operationOptions{kubeconfig: o.kubeconfig, context: o.context, controller: o.controller, controllerNamespace: o.controllerNamespace}
		return other.completeGateway(cmd, nil, "")
	})
	return cmd
}

func (o *checkOptions) addFlags(f *pflag.FlagSet) {
	f.StringVarP(&o.namespace, "namespace", "n", "", "`namespace` to read if you cannot read all namespaces (default the namespace of the kubeconfig's context)")
	f.StringVar(&o.gateway, "gateway", "", "consider only the Gateway `namespace/name`")
	f.StringVar(&o.method, "method", "", "`method` of the request (default GET)")
	f.StringArrayVar(&o.headers, "header", nil, "header of the request, as `NAME:VALUE`; may be repeated")
	f.BoolVar(&o.noRequest, "no-request", false, "send no request through Cloudflare's edge")
	f.BoolVar(&o.strict, "strict", false, "exit with status 2 also if a step has a warning or is unknown")
	f.DurationVar(&o.timeout, "timeout", checkTimeout, "maximum `duration` of all steps, such as 90s")
	f.StringVar(&o.connectTo, "connect-to", "", "connect to this `address`, IP or IP:PORT, instead of the hostname's addresses in DNS; for a record that does not exist yet, or a simulated edge")
	f.StringVar(&o.caFile, "ca-file", "", "PEM `file` with the certificate authorities to trust instead of the system's, for a proxy that replaces certificates, or a simulated edge")
	f.StringVarP(&o.output, "output", "o", "table", "output `format`: "+strings.Join(checkFormats, " or "))
	f.StringVar((*string)(&o.color), "color", "auto", colorUsage)
	f.StringVar(&o.kubeconfig, "kubeconfig", "", kubeconfigUsage)
	f.StringVar(&o.context, "context", "", contextUsage)
	f.StringVar(&o.clusterDomain, "cluster-domain", config.DefaultClusterDomain, clusterDomainUsage)
	f.StringVar(&o.controller, "controller-name", config.DefaultControllerName, controllerNameUsage)
	f.StringVar(&o.controllerNamespace, "controller-namespace", config.DefaultControllerNamespace, controllerNamespaceUsage)
	o.group = o.cloudflare.OwnTokenFlags("permissions " + check.Permissions + " for the zones")
	addEnvironment(o.group.Flags)
	f.AddFlagSet(o.group.Flags)
}

// oneTarget requires one argument.
func oneTarget(cmd *cobra.Command, arguments []string) error {
	if len(arguments) == 1 {
		return nil
	}
	return withHelp(cmd, fmt.Errorf("check requires one hostname or URL, got %d arguments", len(arguments)), "")
}

// validate returns all errors in the arguments and flags, and the request that they describe.
// It reads the API token from the environment.
func (o *checkOptions) validate(target string, isSet func(flag string) bool) (check.Request, error) {
	r := check.Request{Method: strings.ToUpper(o.method), NoRequest: o.noRequest, ConnectTo: o.connectTo}
	var err, requestErr error
	if r.URL, err = check.ParseTarget(target); err != nil {
		err = fmt.Errorf("check%s: %w", describeTarget(target), err)
	}
	r.Header, requestErr = parseHeaders(o.headers)
	if err == nil && requestErr == nil {
		requestErr = probe.Request{URL: r.URL, Method: r.Method, Header: r.Header}.Validate()
	}
	tokenErr := errors.Join(config.FromEnvironment([]config.Group{o.group}, os.LookupEnv), o.cloudflare.CheckFormat())
	return r, errors.Join(err, requestErr, o.validateFlags(isSet), tokenErr)
}

// describeTarget names the argument in an error, unless it can contain a password.
func describeTarget(target string) string {
	if strings.Contains(target, "@") {
		return ""
	}
	return fmt.Sprintf(" %q", target)
}

// validateFlags returns all errors in the flags that do not describe the request.
func (o *checkOptions) validateFlags(isSet func(flag string) bool) error {
	var errs flagErrors
	errs.add("cluster-domain", config.CheckClusterDomain(o.clusterDomain))
	errs.add("controller-name", config.CheckControllerName(o.controller))
	errs.add("controller-namespace", config.CheckNamespace(o.controllerNamespace))
	errs.add("color", o.color.check())
	errs.requireValues(isSet,
		flagValue{"context", o.context}, flagValue{"kubeconfig", o.kubeconfig}, flagValue{"namespace", o.namespace}, flagValue{"gateway", o.gateway}, flagValue{"method", o.method},
		flagValue{"connect-to", o.connectTo}, flagValue{"ca-file", o.caFile},
	)
	if o.timeout <= 0 {
		errs.add("timeout", fmt.Errorf("must be greater than 0, got %s", o.timeout))
	}
	errs.rejectColor(o.output, isSet)
	errs.checkGateway(o.gateway)
	errs.checkNamespace(o.namespace)
	if o.connectTo != "" && !isAddress(o.connectTo) {
		errs.add("connect-to", fmt.Errorf("must be an IP address, with or without a port, got %q", o.connectTo))
	}
	errs.requireOneOf("output", o.output, checkFormats)
	return errors.Join(errs...)
}

// parseHeaders parses the values of --header. An error does not contain a header's value,
// which can be secret.
func parseHeaders(texts []string) (http.Header, error) {
	headers := http.Header{}
	var errs []error
	for n, text := range texts {
		name, value, ok := strings.Cut(text, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			errs = append(errs, fmt.Errorf("--header must be of the form NAME:VALUE; number %d is not", n+1))
			continue
		}
		headers.Add(name, strings.TrimSpace(value))
	}
	return headers, errors.Join(errs...)
}
