package settings

import (
	"maps"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Metadata are the labels and annotations that the controller copies from
// spec.infrastructure to the connectors.
type Metadata struct {
	Labels      map[string]string
	Annotations map[string]string
	// Dropped are the sorted label and annotation keys that the GatewayClass does not
	// allow.
	Dropped []string
}

// reservedPrefixes are key prefixes that belong to Kubernetes and this controller. A
// GatewayClass cannot allow them or their subdomains.
var reservedPrefixes = []string{"tunnelgateway.dev", "kubernetes.io", "k8s.io", "gateway.networking.k8s.io"}

// allowedMetadata returns the labels and annotations whose prefix is allowed.
func allowedMetadata(infrastructure *gatewayv1.GatewayInfrastructure, allowed []string) Metadata {
	if infrastructure == nil {
		return Metadata{}
	}
	var m Metadata
	dropped := map[string]bool{}
	admit := func(target *map[string]string, key, value string) {
		if !allowsKey(allowed, key) {
			dropped[key] = true
			return
		}
		if *target == nil {
			*target = map[string]string{}
		}
		(*target)[key] = value
	}
	for key, value := range infrastructure.Labels {
		admit(&m.Labels, string(key), string(value))
	}
	for key, value := range infrastructure.Annotations {
		admit(&m.Annotations, string(key), string(value))
	}
	m.Dropped = slices.Sorted(maps.Keys(dropped))
	return m
}

// allowsKey reports whether the key has an allowed prefix. A key without a prefix
// is never allowed.
func allowsKey(allowed []string, key string) bool {
	prefix, _, ok := strings.Cut(key, "/")
	return ok && slices.Contains(allowed, prefix) && !slices.ContainsFunc(reservedPrefixes, func(reserved string) bool {
		return prefix == reserved || strings.HasSuffix(prefix, "."+reserved)
	})
}
