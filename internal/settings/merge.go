package settings

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// mergeLevels merges the GatewayClass settings with the Gateway settings.
//
// The functions in this file merge field by field: the value in first takes precedence
// over the value in second. Maps and lists with keys are merged by key. Lists without
// keys are not merged, and neither are podDisruptionBudget and topologySpreadConstraint,
// which are valid only as a whole. When first sets one of two exclusive fields, the
// result does not take the other field from second. The result shares memory with the
// input, which does not change.
func mergeLevels(class, gateway *v1alpha1.TunnelConfigurationSpec) v1alpha1.TunnelConfigurationSpec {
	if prefersGateway(class) {
		return mergeSpecs(gateway, class)
	}
	return mergeSpecs(class, gateway)
}

// prefersGateway reports whether the Gateway settings take precedence over the
// GatewayClass settings.
func prefersGateway(class *v1alpha1.TunnelConfigurationSpec) bool {
	return ptr.Deref(class.MergingMode, v1alpha1.MergingModePreferGatewayClass) == v1alpha1.MergingModePreferGateway
}

// mergeSpecs merges two specs. Only the GatewayClass can set mergingMode, account,
// dataPlane, allowedGatewayFields, limits, pausing, hostnames, dns and access. The result has no
// listenerConfigurations, because [Listeners] has the entries from both levels.
func mergeSpecs(first, second *v1alpha1.TunnelConfigurationSpec) v1alpha1.TunnelConfigurationSpec {
	return v1alpha1.TunnelConfigurationSpec{
		MergingMode:          cmp.Or(first.MergingMode, second.MergingMode),
		Account:              cmp.Or(first.Account, second.Account),
		DataPlane:            cmp.Or(first.DataPlane, second.DataPlane),
		AllowedGatewayFields: firstNonNil(first.AllowedGatewayFields, second.AllowedGatewayFields),
		Limits:               cmp.Or(first.Limits, second.Limits),
		Pausing:              cmp.Or(first.Pausing, second.Pausing),
		Hostnames:            cmp.Or(first.Hostnames, second.Hostnames),
		DNS:                  cmp.Or(first.DNS, second.DNS),
		Access:               cmp.Or(first.Access, second.Access),
		Tunnel:               mergeBlocks(first.Tunnel, second.Tunnel, mergeTunnels),
		Connector:            mergeBlocks(first.Connector, second.Connector, mergeConnectors),
		OriginRequest:        mergeBlocks(first.OriginRequest, second.OriginRequest, mergeOriginRequests),
	}
}

func mergeTunnels(first, second *v1alpha1.TunnelSettings) v1alpha1.TunnelSettings {
	return v1alpha1.TunnelSettings{
		Existing:       mergeBlocks(first.Existing, second.Existing, mergeExisting),
		DeletionPolicy: cmp.Or(first.DeletionPolicy, second.DeletionPolicy),
	}
}

// mergeExisting keeps a takeover next to an id with that id, because it applies only to
// that tunnel.
func mergeExisting(first, second *v1alpha1.ExistingTunnel) v1alpha1.ExistingTunnel {
	merged := v1alpha1.ExistingTunnel{
		ID:       cmp.Or(first.ID, second.ID),
		Takeover: cmp.Or(first.Takeover, second.Takeover),
	}
	if second.ID != "" && second.ID != merged.ID {
		merged.Takeover = first.Takeover
	}
	return merged
}

func mergeConnectors(first, second *v1alpha1.Connector) v1alpha1.Connector {
	merged := v1alpha1.Connector{
		Enabled:        cmp.Or(first.Enabled, second.Enabled),
		Replicas:       cmp.Or(first.Replicas, second.Replicas),
		Autoscaling:    mergeBlocks(first.Autoscaling, second.Autoscaling, mergeAutoscalings),
		Image:          cmp.Or(first.Image, second.Image),
		Envoy:          cmp.Or(first.Envoy, second.Envoy),
		Protocol:       cmp.Or(first.Protocol, second.Protocol),
		EdgeIPVersion:  cmp.Or(first.EdgeIPVersion, second.EdgeIPVersion),
		LogLevel:       cmp.Or(first.LogLevel, second.LogLevel),
		Metrics:        cmp.Or(first.Metrics, second.Metrics),
		MetricsFrom:    firstNonEmpty(first.MetricsFrom, second.MetricsFrom),
		Resources:      mergeBlocks(first.Resources, second.Resources, mergeResources),
		NodeSelector:   mergeMaps(first.NodeSelector, second.NodeSelector),
		Tolerations:    firstNonEmpty(first.Tolerations, second.Tolerations),
		Affinity:       mergeBlocks(first.Affinity, second.Affinity, mergeAffinities),
		PodAnnotations: mergeMaps(first.PodAnnotations, second.PodAnnotations),
		PodLabels:      mergeMaps(first.PodLabels, second.PodLabels),
		TokenRotation:  cmp.Or(first.TokenRotation, second.TokenRotation),
		ReadyDelay:     cmp.Or(first.ReadyDelay, second.ReadyDelay),
		GracePeriod:    cmp.Or(first.GracePeriod, second.GracePeriod),

		AllowedMetadataPrefixes: firstNonEmpty(first.AllowedMetadataPrefixes, second.AllowedMetadataPrefixes),
		TopologySpreadConstraints: mergeLists(
			first.TopologySpreadConstraints, second.TopologySpreadConstraints, constraintKeyOf, firstConstraint),
		PodDisruptionBudget: cmp.Or(first.PodDisruptionBudget, second.PodDisruptionBudget),
	}
	if first.Replicas != nil {
		merged.Autoscaling = first.Autoscaling
	}
	if first.Autoscaling != nil {
		merged.Replicas = first.Replicas
	}
	return merged
}

func mergeAutoscalings(first, second *v1alpha1.Autoscaling) v1alpha1.Autoscaling {
	return v1alpha1.Autoscaling{
		Autoscaler:                     cmp.Or(first.Autoscaler, second.Autoscaler),
		MinReplicas:                    cmp.Or(first.MinReplicas, second.MinReplicas),
		MaxReplicas:                    cmp.Or(first.MaxReplicas, second.MaxReplicas),
		TargetCPUUtilizationPercentage: cmp.Or(first.TargetCPUUtilizationPercentage, second.TargetCPUUtilizationPercentage),
	}
}

func mergeResources(first, second *corev1.ResourceRequirements) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Limits:   mergeMaps(first.Limits, second.Limits),
		Requests: mergeMaps(first.Requests, second.Requests),
		Claims:   firstNonEmpty(first.Claims, second.Claims),
	}
}

// mergeAffinities does not merge the lists with required or preferred terms.
func mergeAffinities(first, second *corev1.Affinity) corev1.Affinity {
	return corev1.Affinity{
		NodeAffinity: mergeBlocks(first.NodeAffinity, second.NodeAffinity, func(first, second *corev1.NodeAffinity) corev1.NodeAffinity {
			return corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution:  cmp.Or(first.RequiredDuringSchedulingIgnoredDuringExecution, second.RequiredDuringSchedulingIgnoredDuringExecution),
				PreferredDuringSchedulingIgnoredDuringExecution: firstNonEmpty(first.PreferredDuringSchedulingIgnoredDuringExecution, second.PreferredDuringSchedulingIgnoredDuringExecution),
			}
		}),
		PodAffinity: mergeBlocks(first.PodAffinity, second.PodAffinity, func(first, second *corev1.PodAffinity) corev1.PodAffinity {
			return corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution:  firstNonEmpty(first.RequiredDuringSchedulingIgnoredDuringExecution, second.RequiredDuringSchedulingIgnoredDuringExecution),
				PreferredDuringSchedulingIgnoredDuringExecution: firstNonEmpty(first.PreferredDuringSchedulingIgnoredDuringExecution, second.PreferredDuringSchedulingIgnoredDuringExecution),
			}
		}),
		PodAntiAffinity: mergeBlocks(first.PodAntiAffinity, second.PodAntiAffinity, func(first, second *corev1.PodAntiAffinity) corev1.PodAntiAffinity {
			return corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution:  firstNonEmpty(first.RequiredDuringSchedulingIgnoredDuringExecution, second.RequiredDuringSchedulingIgnoredDuringExecution),
				PreferredDuringSchedulingIgnoredDuringExecution: firstNonEmpty(first.PreferredDuringSchedulingIgnoredDuringExecution, second.PreferredDuringSchedulingIgnoredDuringExecution),
			}
		}),
	}
}

// MergeOriginRequests merges two blocks. Each can be nil. The fields in first take
// precedence.
func MergeOriginRequests(first, second *v1alpha1.OriginRequest) *v1alpha1.OriginRequest {
	return mergeBlocks(first, second, mergeOriginRequests)
}

// mergeOriginRequests treats matchSNItoHost and http2Origin as exclusive, because the
// connector does not use HTTP/2 when it matches the SNI.
func mergeOriginRequests(first, second *v1alpha1.OriginRequest) v1alpha1.OriginRequest {
	merged := v1alpha1.OriginRequest{
		ConnectTimeout:         cmp.Or(first.ConnectTimeout, second.ConnectTimeout),
		TLSTimeout:             cmp.Or(first.TLSTimeout, second.TLSTimeout),
		TCPKeepAlive:           cmp.Or(first.TCPKeepAlive, second.TCPKeepAlive),
		KeepAliveTimeout:       cmp.Or(first.KeepAliveTimeout, second.KeepAliveTimeout),
		KeepAliveConnections:   cmp.Or(first.KeepAliveConnections, second.KeepAliveConnections),
		NoHappyEyeballs:        cmp.Or(first.NoHappyEyeballs, second.NoHappyEyeballs),
		MatchSNIToHost:         cmp.Or(first.MatchSNIToHost, second.MatchSNIToHost),
		NoTLSVerify:            cmp.Or(first.NoTLSVerify, second.NoTLSVerify),
		DisableChunkedEncoding: cmp.Or(first.DisableChunkedEncoding, second.DisableChunkedEncoding),
		HTTP2Origin:            cmp.Or(first.HTTP2Origin, second.HTTP2Origin),
		HTTPHostHeader:         cmp.Or(first.HTTPHostHeader, second.HTTPHostHeader),
		OriginServerName:       cmp.Or(first.OriginServerName, second.OriginServerName),
		CAPool:                 cmp.Or(first.CAPool, second.CAPool),
		ProxyType:              cmp.Or(first.ProxyType, second.ProxyType),
	}
	if isTrue(first.MatchSNIToHost) && isTrue(merged.HTTP2Origin) {
		merged.HTTP2Origin = first.HTTP2Origin
	}
	if isTrue(first.HTTP2Origin) && isTrue(merged.MatchSNIToHost) {
		merged.MatchSNIToHost = first.MatchSNIToHost
	}
	return merged
}

func isTrue(field *bool) bool { return ptr.Deref(field, false) }

type constraintKey struct {
	topologyKey       string
	whenUnsatisfiable corev1.UnsatisfiableConstraintAction
}

func constraintKeyOf(c *corev1.TopologySpreadConstraint) constraintKey {
	return constraintKey{c.TopologyKey, c.WhenUnsatisfiable}
}

func firstConstraint(first, _ *corev1.TopologySpreadConstraint) corev1.TopologySpreadConstraint {
	return *first
}

// mergeBlocks merges two blocks, which can be nil.
func mergeBlocks[T any](first, second *T, merge func(first, second *T) T) *T {
	if first == nil || second == nil {
		return cmp.Or(first, second)
	}
	merged := merge(first, second)
	return &merged
}

// mergeLists merges entries with the same key. The entries in first come first.
func mergeLists[T any, K comparable](first, second []T, key func(*T) K, merge func(first, second *T) T) []T {
	if len(first) == 0 || len(second) == 0 {
		return firstNonEmpty(first, second)
	}
	merged, index := slices.Clone(first), map[K]int{}
	for i := range first {
		index[key(&first[i])] = i
	}
	for i := range second {
		if j, found := index[key(&second[i])]; found {
			merged[j] = merge(&first[j], &second[i])
		} else {
			merged = append(merged, second[i])
		}
	}
	return merged
}

// mergeMaps prefers the values in first.
func mergeMaps[M ~map[K]V, K comparable, V any](first, second M) M {
	switch {
	case len(first) == 0:
		return second
	case len(second) == 0:
		return first
	}
	merged := maps.Clone(second)
	maps.Copy(merged, first)
	return merged
}

// firstNonNil returns first, or second when first is nil. An empty list is not
// nil.
func firstNonNil[T any](first, second []T) []T {
	if first == nil {
		return second
	}
	return first
}

// firstNonEmpty returns first, or second when first is empty. An empty list counts as
// unset, because API clients omit it.
func firstNonEmpty[T any](first, second []T) []T {
	if len(first) == 0 {
		return second
	}
	return first
}
