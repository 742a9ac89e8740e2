package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/load"
)

// loadConnections is the number of WebSockets, and of streams, in a load.
const loadConnections = 2

// underLoad calls change while visitors send requests and keep WebSockets and streams open.
// It returns what happened to the load.
func (s *scenario) underLoad(ctx context.Context, connections int, change func() error) (load.Result, error) {
	host := s.host(webHost)
	l := load.Start(load.Options{
		Address: host + ":443", Host: host, Connections: connections, TLS: s.visitors.tls(host), Dial: s.visitors.dial,
	})
	defer l.Stop()
	err := s.await(ctx, "the WebSockets and streams of the load", func(context.Context) error {
		if _, open := l.InFlight(); open < 2*connections {
			return fmt.Errorf("%d of %d are open", open, 2*connections)
		}
		return nil
	})
	if err != nil {
		return l.Stop(), errors.Join(err, firstFailure(l.Stop()))
	}
	if err := change(); err != nil {
		return l.Stop(), err
	}
	sent := l.Sent()
	err = s.await(ctx, "requests after the change", func(context.Context) error {
		if l.Sent() < sent+20 {
			return errors.New("too few were sent")
		}
		return nil
	})
	return l.Stop(), err
}

// judge returns an error if one of the load's requests has failed.
func judge(r load.Result) error {
	if r.Failed == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", r, firstFailure(r))
}

// judgeShared is like judge for connectors that share ports. When an Envoy ends, the other
// connector's connections to it break, so cloudflared returns 502; in a cluster, each
// connector has its own Envoy. A failed request with another status is Cloudflare's.
func judgeShared(r load.Result) (detail string, err error) {
	var others []string
	for _, failure := range r.Failures {
		if strings.Contains(failure, "status ") && !strings.Contains(failure, "status 502") {
			others = append(others, failure)
		}
	}
	if len(others) > 0 {
		return "", fmt.Errorf("%s: %s", r, others[0])
	}
	return "; 502 is not judged, because the connectors on this machine share ports", nil
}

// firstFailure returns the first failure of a load, or nil.
func firstFailure(r load.Result) error {
	if len(r.Failures) == 0 {
		return nil
	}
	return errors.New(r.Failures[0])
}

// changeRoute sends all requests to the canary, and back. With Envoy, this changes nothing at
// Cloudflare.
func (s *scenario) changeRoute(ctx context.Context) (string, error) {
	_, before, err := s.cloud.tunnels.Configuration(ctx, s.tunnel.ID)
	if err != nil {
		return "", err
	}
	var took time.Duration
	r, err := s.underLoad(ctx, loadConnections, func() (err error) {
		took, err = s.setBackend(ctx, canary)
		return err
	})
	if err = errors.Join(err, judge(r)); err != nil {
		return "", err
	}
	if _, err := s.setBackend(ctx, stable); err != nil {
		return "", err
	}
	_, after, err := s.cloud.tunnels.Configuration(ctx, s.tunnel.ID)
	if err == nil && after != before {
		err = fmt.Errorf("the change wrote %d configurations, want none", after-before)
	}
	return fmt.Sprintf("in effect after %s; %s", took.Round(10*time.Millisecond), r), err
}

// setBackend gives all weight to the backend, and waits until it responds. It returns how
// long this took.
func (s *scenario) setBackend(ctx context.Context, backend gatewayv1.ObjectName) (time.Duration, error) {
	route := &gatewayv1.HTTPRoute{}
	if err := s.kube.Get(ctx, client.ObjectKey{Namespace: s.prefix, Name: webHost}, route); err != nil {
		return 0, err
	}
	patch := client.MergeFrom(route.DeepCopy())
	for i, b := range route.Spec.Rules[0].BackendRefs {
		weight := int32(0)
		if b.Name == backend {
			weight = 1
		}
		route.Spec.Rules[0].BackendRefs[i].Weight = &weight
	}
	if err := s.kube.Patch(ctx, route, patch); err != nil {
		return 0, err
	}
	start := time.Now()
	err := s.await(ctx, "a response from "+string(backend), func(ctx context.Context) error {
		for range 4 { // more than there are connectors
			got, err := s.visitors.get(ctx, "https://"+s.host(webHost)+echoPath)
			if err != nil {
				return err
			}
			if err := checkBackend(got, string(backend)); err != nil {
				return err
			}
		}
		return nil
	})
	return time.Since(start), err
}

// rollOutBackend replaces a backend's pods one after the other. Their WebSockets and
// streams would end, so the load has none.
func (s *scenario) rollOutBackend(ctx context.Context) (string, error) {
	previous := slices.Clone(s.pods[stable])
	r, err := s.underLoad(ctx, 0, func() error {
		for _, old := range previous {
			if err := s.startPod(ctx, stable); err != nil {
				return err
			}
			if err := s.stopPod(ctx, stable, old); err != nil {
				return err
			}
		}
		return nil
	})
	return fmt.Sprintf("%d pods replaced; %s", len(previous), r), errors.Join(err, judge(r))
}

// rollOutConnectors replaces all connectors.
func (s *scenario) rollOutConnectors(ctx context.Context) (string, error) {
	previous, err := s.connectors(ctx)
	if err != nil {
		return "", err
	}
	r, err := s.underLoad(ctx, loadConnections, func() error {
		configuration := &v1alpha1.TunnelConfiguration{}
		configuration.Namespace, configuration.Name = cluster.ControllerNamespace, name
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"connector":{"podAnnotations":{"example.com/rollout":"1"}}}}`))
		if err := s.kube.Patch(ctx, configuration, patch); err != nil {
			return err
		}
		return s.await(ctx, "new connectors", func(ctx context.Context) error { return s.checkReplaced(ctx, previous) })
	})
	detail := fmt.Sprintf("connectors replaced: %d; %s", len(previous), r)
	if err == nil && s.sharesPorts {
		shared, err := judgeShared(r)
		return detail + shared, err
	}
	return detail, errors.Join(err, judge(r))
}

// selector selects the Gateway's connector objects.
func (s *scenario) selector() []client.ListOption {
	return []client.ListOption{
		client.InNamespace(cluster.ControllerNamespace), client.MatchingLabels{connector.TunnelLabel: tunnel.ObjectName(s.gatewayKey())},
	}
}

func (s *scenario) connectors(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := s.kube.List(ctx, &list, s.selector()...)
	return list.Items, err
}

// checkReplaced returns an error unless the rollout is complete, and no previous pod
// is left.
func (s *scenario) checkReplaced(ctx context.Context, previous []corev1.Pod) error {
	var deployments appsv1.DeploymentList
	if err := s.kube.List(ctx, &deployments, s.selector()...); err != nil {
		return err
	}
	for _, d := range deployments.Items {
		replicas := ptr.Deref(d.Spec.Replicas, 1)
		if d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas != replicas || d.Status.AvailableReplicas != replicas {
			return fmt.Errorf("the Deployment %s has %d of %d new connectors ready", d.Name, min(d.Status.UpdatedReplicas, d.Status.AvailableReplicas), replicas)
		}
	}
	pods, err := s.connectors(ctx)
	if err != nil {
		return err
	}
	var left []string
	for _, pod := range pods {
		if slices.ContainsFunc(previous, func(p corev1.Pod) bool { return p.UID == pod.UID }) {
			left = append(left, pod.Name)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("not replaced: %s", strings.Join(left, ", "))
	}
	return nil
}
