package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// sourceOptions are the flags that select what a plan is made from: a cluster, manifests, or
// both.
type sourceOptions struct {
	paths               []string
	namespace           string
	kubeconfig          string
	context             string
	recursive           bool
	assumeSecrets       bool
	experimentalCRDs    bool
	clusterDomain       string
	controller          string
	controllerNamespace string
	clusterID           string
}

func (o *sourceOptions) addFlags(f *pflag.FlagSet) {
	f.StringArrayVarP(&o.paths, "filename", "f", nil, "`file` or directory with manifests, or - for standard input; may be repeated")
	f.BoolVarP(&o.recursive, "recursive", "R", false, "also read the subdirectories of the directories in --filename")
	f.BoolVar(&o.experimentalCRDs, "experimental-crds", false, "accept the route fields, such as retry, that only the Gateway API CRDs of the experimental channel have; by default, the channel of the cluster that is read, or the standard channel")
	f.BoolVar(&o.assumeSecrets, "assume-secrets", false, "treat Secrets that do not exist as valid certificates, and name them; useful for manifests whose certificates cert-manager issues later")
	f.StringVar(&o.namespace, "namespace", "", "`namespace` of objects in manifests without a namespace, and the namespace to read in a cluster if you cannot read all namespaces (default the namespace of the kubeconfig's context, or \"default\" without a cluster)")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", kubeconfigUsage)
	f.StringVar(&o.context, "context", "", contextUsage)
	f.StringVar(&o.clusterDomain, "cluster-domain", config.DefaultClusterDomain, clusterDomainUsage)
	f.StringVar(&o.controller, "controller-name", config.DefaultControllerName, controllerNameUsage)
	f.StringVar(&o.controllerNamespace, "controller-namespace", config.DefaultControllerNamespace, "`namespace` of the controller, of its Tunnels, and of the accounts that GatewayClasses refer to")
	f.StringVar(&o.clusterID, "cluster-id", "", "`ID` of the controller's installation, the prefix of its tunnel names (default the ID in its Tunnels, otherwise the controller's default)")
}

// check adds the errors in the flags. isSet reports whether a flag is set on the command line.
func (o *sourceOptions) check(errs *flagErrors, isSet func(flag string) bool) {
	errs.add("cluster-domain", config.CheckClusterDomain(o.clusterDomain))
	errs.add("controller-name", config.CheckControllerName(o.controller))
	errs.add("controller-namespace", config.CheckNamespace(o.controllerNamespace))
	errs.add("cluster-id", config.CheckClusterID(o.clusterID))
	if slices.Contains(o.paths, "") {
		errs.add("filename", errEmptyValue)
	}
	errs.requireValues(isSet,
		flagValue{"cluster-id", o.clusterID}, flagValue{"context", o.context}, flagValue{"kubeconfig", o.kubeconfig}, flagValue{"namespace", o.namespace},
	)
	errs.checkNamespace(o.namespace)
}

// readsCluster reports whether a cluster is read.
func (o *sourceOptions) readsCluster() bool {
	return len(o.paths) == 0 || o.kubeconfig != "" || o.context != ""
}

// options returns the controller settings that the flags set.
func (o *sourceOptions) options() plan.Options {
	return plan.Options{
		Options: gateway.Options{
			ControllerName: gatewayv1.GatewayController(o.controller), ControllerNamespace: o.controllerNamespace, ClusterDomain: o.clusterDomain,
		},
		ClusterID: o.clusterID,
	}
}

// open connects to the cluster, if there is one. It makes no requests and reads no manifests.
func (o *sourceOptions) open(stdin io.Reader) (*sourceReader, error) {
	r := &sourceReader{sourceOptions: o, manifests: manifest.Options{Namespace: o.namespace, Stdin: stdin, Recursive: o.recursive, Experimental: o.experimentalCRDs}}
	r.readManifests = func(m manifest.Options) (*manifest.Set, error) { return manifest.Read(o.paths, m) }
	if !o.readsCluster() {
		return r, nil
	}
	selected := clientConfig(o.kubeconfig, o.context)
	live, err := connect(selected)
	if errors.Is(err, errNoCluster) {
		return nil, fmt.Errorf("%w, or read only manifests with --filename", err)
	}
	if err != nil {
		return nil, err
	}
	r.live, r.connection = live, live
	if o.namespace == "" {
		if r.manifests.Namespace, _, err = selected.Namespace(); err != nil {
			return nil, fmt.Errorf("read the context's namespace: %w", err)
		}
	}
	return r, nil
}
