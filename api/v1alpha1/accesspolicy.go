package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// AccessPolicy protects the hostnames of listeners with Cloudflare Access: only visitors
// whom the policies allow reach the backends. The owner of a listener creates it in the
// listener's namespace. It cannot weaken what the GatewayClass or the Gateway require.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=gateway-api
// +kubebuilder:metadata:annotations="tunnelgateway.dev/bundle-version=v0.1.0"
// +kubebuilder:metadata:labels="gateway.networking.k8s.io/policy=Direct"
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.ancestors[*].conditions[?(@.type=="Accepted")].status`,description="Whether each Gateway accepts the policy"
// +kubebuilder:printcolumn:name="Programmed",type=string,JSONPath=`.status.ancestors[*].conditions[?(@.type=="Programmed")].status`,description="Whether an application protects each hostname"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.ancestors[*].conditions[?(@.status=="False")].reason`,description="Why hostnames are closed"
// +kubebuilder:printcolumn:name="Policies",type=string,JSONPath=`.spec.policies`,description="The names of the policies in the catalogue"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AccessPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec names the listeners and the policies.
	//
	// +required
	Spec AccessPolicySpec `json:"spec"`

	// Status reports for each Gateway whether the policy is in effect.
	//
	// +optional
	Status gatewayv1.PolicyStatus `json:"status,omitzero"`
}

// AccessPolicyList is a list of AccessPolicies.
//
// +kubebuilder:object:root=true
type AccessPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AccessPolicy `json:"items"`
}

// AccessPolicySpec names the listeners whose hostnames are protected, and the policies.
type AccessPolicySpec struct {
	// TargetRefs are Gateways and ListenerSets in the same namespace, or single listeners
	// of them with sectionName. A sectionName that does not exist closes all hostnames of
	// the named object. If several AccessPolicies select a listener, one with sectionName
	// takes precedence, then the older one, then the first by name.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.group == 'gateway.networking.k8s.io' && (r.kind == 'Gateway' || r.kind == 'ListenerSet'))",message="each target must be a Gateway or a ListenerSet of the group gateway.networking.k8s.io"
	TargetRefs []gatewayv1.LocalPolicyTargetReferenceWithSectionName `json:"targetRefs"`

	// Policies are the names of policies in the catalogue of the GatewayClass. A visitor
	// whom one of them allows reaches the backends.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Policies []PolicyName `json:"policies"`

	// SessionDuration is how long a visitor's session lasts before a new login. Default:
	// 24h.
	//
	// +optional
	SessionDuration *SessionDuration `json:"sessionDuration,omitempty"`

	// CORS makes Cloudflare answer CORS preflight requests, which have no token. Without
	// it, Cloudflare refuses them.
	//
	// +optional
	CORS *AccessCORS `json:"cors,omitempty"`
}
