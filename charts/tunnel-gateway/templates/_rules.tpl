{{/*
The permissions of the controller. The tests compare them with the audit log of the
API server: the controller uses every permission and needs no other. Outside its
namespace, the controller writes only status and events. It uses "get" for reads
that bypass the cache.
*/}}

{{/* Cluster-scoped objects. */}}
{{- define "tunnel-gateway.clusterRules" -}}
- apiGroups: [gateway.networking.k8s.io]
  resources: [gatewayclasses]
  verbs: [get, list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [gatewayclasses/status]
  verbs: [update]
# The metadata shows the installed version of the Gateway API, and the definition of
# ServiceImports their served versions.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [list, watch]
# Listeners select namespaces by their labels. The controller also reads the UID of
# kube-system, and checks that the namespace of a deleted Gateway still exists.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch]
{{- end -}}

{{/* Objects of tenants. */}}
{{- define "tunnel-gateway.tenantRules" -}}
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways, listenersets, httproutes, grpcroutes, backendtlspolicies]
  verbs: [get, list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways/status, listenersets/status, httproutes/status, grpcroutes/status, backendtlspolicies/status]
  verbs: [update]
- apiGroups: [gateway.networking.k8s.io]
  resources: [referencegrants]
  verbs: [list, watch]
- apiGroups: [tunnelgateway.dev]
  resources: [tunnelconfigurations]
  verbs: [get, list, watch]
- apiGroups: [tunnelgateway.dev]
  resources: [accesspolicies]
  verbs: [get, list, watch]
- apiGroups: [tunnelgateway.dev]
  resources: [accesspolicies/status]
  verbs: [update]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch]
# The controller watches the metadata of ConfigMaps, and reads single ConfigMaps, to which
# BackendTLSPolicies refer.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
# Services of other clusters, if the cluster has the Multi-Cluster Services API.
- apiGroups: [multicluster.x-k8s.io]
  resources: [serviceimports]
  verbs: [list, watch]
{{ include "tunnel-gateway.eventRules" . }}
{{- end -}}

{{/* The controller lists and watches the metadata of Secrets, and reads single Secrets. */}}
{{- define "tunnel-gateway.secretRules" -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch]
{{- end -}}

{{- define "tunnel-gateway.eventRules" -}}
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{/* Events about a GatewayClass are never patched, because each refers to another resourceVersion. */}}
{{- define "tunnel-gateway.classEventRules" -}}
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end -}}

{{/*
The scope of the certificate checks: "cluster" for all namespaces, "list" for the
namespaces of tunnel-gateway.certificateNamespaces, which can be empty.
*/}}
{{- define "tunnel-gateway.certificateScope" -}}
{{- if and .Values.certificates.validate (not .Values.certificates.namespaces) (not .Values.controller.namespaces) -}}
cluster
{{- else -}}
list
{{- end -}}
{{- end -}}

{{/* What plan and check read. Users can read Secrets only with another role. */}}
{{- define "tunnel-gateway.viewerRules" -}}
- apiGroups: [gateway.networking.k8s.io]
  resources: [gatewayclasses, gateways, listenersets, httproutes, grpcroutes, referencegrants, backendtlspolicies]
  verbs: [get, list, watch]
# The controller ignores these kinds. plan reports their objects.
- apiGroups: [gateway.networking.k8s.io]
  resources: [tcproutes, tlsroutes, udproutes]
  verbs: [get, list, watch]
- apiGroups: [gateway.networking.x-k8s.io]
  resources: [xbackendtrafficpolicies, xlistenersets]
  verbs: [get, list, watch]
- apiGroups: [tunnelgateway.dev]
  resources: [tunnelconfigurations, accesspolicies, tunnels]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [namespaces, services, configmaps]
  verbs: [get, list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list, watch]
- apiGroups: [multicluster.x-k8s.io]
  resources: [serviceimports]
  verbs: [get, list, watch]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
{{- end -}}

{{/* The Gateway of a team, and its settings. */}}
{{- define "tunnel-gateway.teamRules" -}}
- apiGroups: [gateway.networking.k8s.io]
  resources: [gatewayclasses, gateways]
  verbs: [get]
- apiGroups: [tunnelgateway.dev]
  resources: [tunnelconfigurations, tunnels]
  verbs: [get]
{{- end -}}

{{/* The list of namespaces in which the controller checks certificates, as JSON. */}}
{{- define "tunnel-gateway.certificateNamespaces" -}}
{{- if .Values.certificates.validate -}}
{{- .Values.certificates.namespaces | default .Values.controller.namespaces | default list | uniq | toJson -}}
{{- else -}}
[]
{{- end -}}
{{- end -}}

{{/* The controller's namespace, which contains the Tunnels and their connectors. */}}
{{- define "tunnel-gateway.tunnelRules" -}}
- apiGroups: [tunnelgateway.dev]
  resources: [tunnels]
  verbs: [get, list, watch, create, update, delete]
- apiGroups: [tunnelgateway.dev]
  resources: [tunnels/status]
  verbs: [update, patch]
# The tokens of tunnels, the certificates of Envoys and their certificate authority.
# The garbage collector deletes the Secrets of Tunnels.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create, patch]
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
# The controller deletes a tunnel after the last pod of its connectors has stopped. No
# route may lead to the addresses of connectors.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
{{- if ne (include "tunnel-gateway.certificateScope" .) "cluster" }}
# API tokens and the tokens of tunnels.
{{ include "tunnel-gateway.secretRules" . }}
{{- end }}
{{- if .Values.controller.namespaces }}
# The settings of GatewayClasses, and events about Tunnels.
- apiGroups: [tunnelgateway.dev]
  resources: [tunnelconfigurations]
  verbs: [get, list, watch]
{{ include "tunnel-gateway.eventRules" . }}
{{- end }}
{{- end -}}

{{/* The Lease of the leader, and the event that names the leader. */}}
{{- define "tunnel-gateway.leaderRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "tunnel-gateway.lease" . | quote }}]
  verbs: [get, update]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end -}}
