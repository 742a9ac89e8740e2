package integration

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

func connectorsReady(g *gatewayv1.Gateway) func() string {
	return gatewayCondition(g, "tunnelgateway.dev/ConnectorsReady")
}

// exists reads the object and reports whether it exists.
func exists(object client.Object) bool {
	GinkgoHelper()
	err := kube.Get(context.Background(), client.ObjectKeyFromObject(object), object)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err == nil
}

// connectorObject gives an empty object the name and namespace of the connectors for the
// Gateway "shared", and returns it.
func connectorObject[T client.Object](env *environment, object T) T {
	object.SetNamespace(env.controllerNamespace)
	object.SetName(tunnel.ConnectorName(types.NamespacedName{Namespace: env.namespace, Name: "shared"}))
	return object
}

// connectorObjects returns an empty object for each kind that the connectors of the
// Gateway "shared" need.
func (env *environment) connectorObjects() []client.Object {
	return []client.Object{
		connectorObject(env, &corev1.ServiceAccount{}), connectorObject(env, &networkingv1.NetworkPolicy{}), connectorObject(env, &appsv1.Deployment{}),
		connectorObject(env, &policyv1.PodDisruptionBudget{}), connectorObject(env, &autoscalingv2.HorizontalPodAutoscaler{}),
	}
}

// deployment waits for the connector Deployment of the Gateway "shared".
func (env *environment) deployment() *appsv1.Deployment {
	GinkgoHelper()
	deployment := connectorObject(env, &appsv1.Deployment{})
	Eventually(exists).WithArguments(deployment).Should(BeTrue())
	return deployment
}

func (env *environment) connectorReplicas() int32 {
	return ptr.Deref(env.deployment().Spec.Replicas, -1)
}

func (env *environment) connectorArguments() string {
	return strings.Join(env.deployment().Spec.Template.Spec.Containers[0].Args, " ")
}

func (env *environment) pods(gateway string) []corev1.Pod {
	GinkgoHelper()
	var list corev1.PodList
	Expect(kube.List(context.Background(), &list, client.InNamespace(env.controllerNamespace), env.tunnelLabel(gateway))).To(Succeed())
	return list.Items
}

// markPodsReady sets the status of all pods that belong to the Gateway "shared" to
// running and ready, as a kubelet would.
func (env *environment) markPodsReady() {
	GinkgoHelper()
	for _, pod := range env.pods("shared") {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		err := kube.Status().Update(context.Background(), &pod)
		if !apierrors.IsConflict(err) { // the next call updates the pod
			Expect(client.IgnoreNotFound(err)).To(Succeed())
		}
	}
}

// tunnelLabel selects a Gateway's connector objects in the environment's namespace.
func (env *environment) tunnelLabel(gateway string) client.MatchingLabels {
	return client.MatchingLabels{"tunnelgateway.dev/tunnel": tunnel.ObjectName(types.NamespacedName{Namespace: env.namespace, Name: gateway})}
}

// remainingObjects returns the kind and name of each connector object that the Gateway
// still has.
func (env *environment) remainingObjects(gateway string) []string {
	GinkgoHelper()
	var found []string
	for _, list := range []client.ObjectList{
		&corev1.ServiceAccountList{}, &networkingv1.NetworkPolicyList{}, &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{},
		&policyv1.PodDisruptionBudgetList{}, &autoscalingv2.HorizontalPodAutoscalerList{}, &corev1.PodList{}, &corev1.SecretList{},
	} {
		Expect(kube.List(context.Background(), list, client.InNamespace(env.controllerNamespace), env.tunnelLabel(gateway))).To(Succeed())
		Expect(meta.EachListItem(list, func(item runtime.Object) error {
			kind := strings.TrimPrefix(fmt.Sprintf("%T", item), "*")
			found = append(found, kind[strings.Index(kind, ".")+1:]+" "+item.(client.Object).GetName())
			return nil
		})).To(Succeed())
	}
	return found
}

// watchMinReplicas watches the connector Deployment. The returned function returns the
// smallest replica count since the call.
func (env *environment) watchMinReplicas(ctx context.Context) func() int32 {
	GinkgoHelper()
	watch, err := kube.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(env.controllerNamespace))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(watch.Stop)
	var minimum atomic.Int32
	minimum.Store(env.connectorReplicas())
	go func() {
		for event := range watch.ResultChan() {
			if deployment, ok := event.Object.(*appsv1.Deployment); ok {
				minimum.Store(min(minimum.Load(), ptr.Deref(deployment.Spec.Replicas, 1)))
			}
		}
	}()
	return minimum.Load
}

// grpcRoute returns a GRPCRoute on the Gateway "shared" for <name>.example.com.
func (env *environment) grpcRoute(name string) *gatewayv1.GRPCRoute {
	return &gatewayv1.GRPCRoute{ObjectMeta: env.objectMeta(name), Spec: gatewayv1.GRPCRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{gatewayParent("shared")}},
		Hostnames:       []gatewayv1.Hostname{gatewayv1.Hostname(name + ".example.com")},
		Rules: []gatewayv1.GRPCRouteRule{{BackendRefs: []gatewayv1.GRPCBackendRef{{BackendRef: gatewayv1.BackendRef{
			BackendObjectReference: gatewayv1.BackendObjectReference{Name: "web", Port: ptr.To[int32](80)},
		}}}}},
	}}
}
