package kinds

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
)

var (
	gatewayAPI      = api{version: schema.GroupVersion(gatewayv1.GroupVersion), install: gatewayv1.Install, custom: true}
	gatewayBetaAPI  = api{version: schema.GroupVersion(gatewayv1beta1.GroupVersion), install: gatewayv1beta1.Install, custom: true}
	projectAPI      = api{version: v1alpha1.GroupVersion, install: v1alpha1.Install, custom: true}
	coreAPI         = api{version: corev1.SchemeGroupVersion, install: corev1.AddToScheme}
	discoveryAPI    = api{version: discoveryv1.SchemeGroupVersion, install: discoveryv1.AddToScheme}
	multiclusterAPI = api{version: multicluster.GroupVersion, install: multicluster.Install}
	extensionsAPI   = api{version: apiextensionsv1.SchemeGroupVersion, install: apiextensionsv1.AddToScheme}
	appsAPI         = api{version: appsv1.SchemeGroupVersion, install: appsv1.AddToScheme}
	autoscalingAPI  = api{version: autoscalingv2.SchemeGroupVersion, install: autoscalingv2.AddToScheme}
	networkingAPI   = api{version: networkingv1.SchemeGroupVersion, install: networkingv1.AddToScheme}
	policyAPI       = api{version: policyv1.SchemeGroupVersion, install: policyv1.AddToScheme}
)

// The kinds. Messages name them in this order.
var (
	GatewayClass = declare(gatewayAPI, Kind{
		Plural: "GatewayClasses", ClusterScoped: true, Plan: Listed, object: &gatewayv1.GatewayClass{}, list: &gatewayv1.GatewayClassList{},
	})
	Gateway     = declare(gatewayAPI, Kind{Plural: "Gateways", Plan: Listed, object: &gatewayv1.Gateway{}, list: &gatewayv1.GatewayList{}})
	ListenerSet = declare(gatewayAPI, Kind{Plural: "ListenerSets", Plan: Listed, object: &gatewayv1.ListenerSet{}, list: &gatewayv1.ListenerSetList{}})
	HTTPRoute   = declare(gatewayAPI, Kind{Plural: "HTTPRoutes", Plan: Listed, object: &gatewayv1.HTTPRoute{}, list: &gatewayv1.HTTPRouteList{}})
	GRPCRoute   = declare(gatewayAPI, Kind{Plural: "GRPCRoutes", Plan: Listed, object: &gatewayv1.GRPCRoute{}, list: &gatewayv1.GRPCRouteList{}})
	// ReferenceGrant has version v1beta1, the version in which the API server stores it.
	ReferenceGrant = declare(gatewayBetaAPI, Kind{
		Plural: "ReferenceGrants", Plan: Listed, object: &gatewayv1beta1.ReferenceGrant{}, list: &gatewayv1beta1.ReferenceGrantList{},
	})

	BackendTLSPolicy = declare(gatewayAPI, Kind{
		Plural: "BackendTLSPolicies", Plan: Listed, object: &gatewayv1.BackendTLSPolicy{}, list: &gatewayv1.BackendTLSPolicyList{},
	})

	TunnelConfiguration = declare(projectAPI, Kind{
		Plural: "TunnelConfigurations", Plan: Listed, object: &v1alpha1.TunnelConfiguration{}, list: &v1alpha1.TunnelConfigurationList{},
	})
	// AccessPolicy is optional, so that a controller that was upgraded before its CRDs serves
	// every Gateway.
	AccessPolicy = declare(projectAPI, Kind{
		Plural: "AccessPolicies", Optional: true, Plan: Listed, object: &v1alpha1.AccessPolicy{}, list: &v1alpha1.AccessPolicyList{},
	})
	Tunnel = declare(projectAPI, Kind{Plural: "Tunnels", OwnNamespace: true, Plan: Listed, object: &v1alpha1.Tunnel{}, list: &v1alpha1.TunnelList{}})

	Namespace     = declare(coreAPI, Kind{Plural: "Namespaces", ClusterScoped: true, Plan: Listed, object: &corev1.Namespace{}, list: &corev1.NamespaceList{}})
	Service       = declare(coreAPI, Kind{Plural: "Services", Plan: Listed, object: &corev1.Service{}, list: &corev1.ServiceList{}})
	EndpointSlice = declare(discoveryAPI, Kind{Plural: "EndpointSlices", Plan: OnDemand, object: &discoveryv1.EndpointSlice{}})
	// ServiceImport is read in the newest version that the cluster serves.
	ServiceImport = declare(multiclusterAPI, Kind{
		Plural: "ServiceImports", Plan: Listed, Versions: multicluster.Versions(), object: &multicluster.ServiceImport{}, list: &multicluster.ServiceImportList{},
	})
	ConfigMap = declare(coreAPI, Kind{Plural: "ConfigMaps", WatchMetadata: true, Plan: OnDemand, object: &corev1.ConfigMap{}})
	Secret    = declare(coreAPI, Kind{Plural: "Secrets", WatchMetadata: true, Plan: OnDemand, object: &corev1.Secret{}})

	CustomResourceDefinition = declare(extensionsAPI, Kind{
		Plural: "CustomResourceDefinitions", ClusterScoped: true, WatchMetadata: true, Plan: Metadata, object: &apiextensionsv1.CustomResourceDefinition{},
	})

	// Pod is the kind of the connector pods. The kinds below are the other objects that
	// run connectors.
	Pod                     = declare(coreAPI, Kind{Plural: "Pods", OwnNamespace: true, object: &corev1.Pod{}})
	ServiceAccount          = declare(coreAPI, Kind{Plural: "ServiceAccounts", OwnNamespace: true, object: &corev1.ServiceAccount{}})
	NetworkPolicy           = declare(networkingAPI, Kind{Plural: "NetworkPolicies", OwnNamespace: true, object: &networkingv1.NetworkPolicy{}})
	Deployment              = declare(appsAPI, Kind{Plural: "Deployments", OwnNamespace: true, object: &appsv1.Deployment{}})
	PodDisruptionBudget     = declare(policyAPI, Kind{Plural: "PodDisruptionBudgets", OwnNamespace: true, object: &policyv1.PodDisruptionBudget{}})
	HorizontalPodAutoscaler = declare(autoscalingAPI, Kind{Plural: "HorizontalPodAutoscalers", OwnNamespace: true, object: &autoscalingv2.HorizontalPodAutoscaler{}})
)
