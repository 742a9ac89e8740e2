package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// rollout is what replaces a Deployment's Pods by Pods with its current template, step by
// step.
type rollout struct {
	create int // Pods with the current template
	remove []corev1.Pod
	status appsv1.DeploymentStatus // without the effect of this step
}

// newRollout returns the next step for a Deployment and its Pods. Within the bounds of its
// strategy, it starts new Pods first, and removes a ready Pod only when another one has
// become ready.
func newRollout(d *appsv1.Deployment, pods []corev1.Pod) rollout {
	replicas := int(ptr.Deref(d.Spec.Replicas, 1))
	surge, unavailable := bounded(d, replicas)
	active := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	hash := templateHash(d)
	var updated, outdated []corev1.Pod
	ready := 0
	for _, pod := range active {
		if isReady(pod) {
			ready++
		}
		if pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == hash {
			updated = append(updated, pod)
		} else {
			outdated = append(outdated, pod)
		}
	}
	r := rollout{
		create: max(0, min(replicas-len(updated), replicas+surge-len(active))),
		status: appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: count(len(active)), UpdatedReplicas: count(len(updated)), ReadyReplicas: count(ready),
			AvailableReplicas: count(ready), UnavailableReplicas: count(max(0, replicas-ready)),
		},
	}
	excess := unreadyFirst(updated)[:max(0, len(updated)-replicas)]
	spare := ready - (replicas - unavailable)
	for _, pod := range slices.Concat(excess, unreadyFirst(outdated)) {
		if isReady(pod) {
			if spare <= 0 {
				continue
			}
			spare--
		}
		r.remove = append(r.remove, pod)
	}
	return r
}

// bounded returns how many Pods the Deployment may have above its replicas, and how many
// may be missing.
func bounded(d *appsv1.Deployment, replicas int) (surge, unavailable int) {
	if d.Spec.Strategy.RollingUpdate == nil {
		return 1, 0
	}
	scaled := func(value *intstr.IntOrString, roundUp bool) int {
		// The API server rejects other text than percentages.
		n, _ := intstr.GetScaledValueFromIntOrPercent(ptr.To(ptr.Deref(value, intstr.FromInt32(0))), replicas, roundUp)
		return n
	}
	surge, unavailable = scaled(d.Spec.Strategy.RollingUpdate.MaxSurge, true), scaled(d.Spec.Strategy.RollingUpdate.MaxUnavailable, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

func unreadyFirst(pods []corev1.Pod) []corev1.Pod {
	rank := func(p corev1.Pod) int {
		if isReady(p) {
			return 1
		}
		return 0
	}
	return slices.SortedStableFunc(slices.Values(pods), func(a, b corev1.Pod) int { return cmp.Compare(rank(a), rank(b)) })
}

// templateHash identifies the Deployment's current template.
func templateHash(d *appsv1.Deployment) string {
	template, err := json.Marshal(d.Spec.Template)
	if err != nil {
		panic(err) // the API server sent it
	}
	sum := sha256.Sum256(template)
	return hex.EncodeToString(sum[:5])
}

func count(n int) int32 { return int32(n) } // #nosec G115 -- few Pods

func isReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
