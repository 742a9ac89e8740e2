package config

import (
	"errors"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation"
)

// XDS configures how the Envoys beside connectors get their configuration from the
// controller.
type XDS struct {
	// Service names the Service, in the controller's namespace, through which Envoys
	// connect to the controller.
	Service string
	// BindAddress is the host:port on which the leader serves the configuration. The
	// host can be empty.
	BindAddress string
	// PodIP is the controller pod's address, or the zero value outside a cluster.
	PodIP netip.Addr
}

func (x *XDS) validate() error {
	var errs []error
	if len(validation.IsDNS1035Label(x.Service)) > 0 {
		errs = append(errs, invalid("xds-service", "must be a valid Service name, got %q", x.Service))
	}
	if !isHostPort(x.BindAddress) {
		errs = append(errs, invalid("xds-bind-address", "must be of the form host:port, got %q", x.BindAddress))
	}
	return errors.Join(errs...)
}
