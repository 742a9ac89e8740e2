{{/*
What the controller does, and nothing else: the tests compare it with the API
server's audit log. A "get" beside "list" and "watch" is a read past the cache,
a "patch" of an object a finalizer or an annotation.
*/}}

{{/* Objects that are in no namespace. */}}
{{- define "tunnel-gateway.clusterRules" -}}
- apiGroups: [gateway.networking.k8s.io]
  resources: [gatewayclasses]
  verbs: [get, list, watch, patch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [gatewayclasses/status]
  verbs: [update]
# Metadata only: which version of the Gateway API is installed.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [list, watch]
# Labels, which listeners select by.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch]
{{- if not .Values.controller.clusterID }}
# Its UID is the cluster's ID.
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [kube-system]
  verbs: [get]
{{- end }}
{{- end -}}

{{/* Objects in namespaces. */}}
{{- define "tunnel-gateway.namespacedRules" -}}
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways]
  verbs: [get, list, watch, patch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [listenersets, httproutes, grpcroutes]
  verbs: [get, list, watch]
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways/status, listenersets/status, httproutes/status, grpcroutes/status]
  verbs: [update]
- apiGroups: [gateway.networking.k8s.io]
  resources: [referencegrants]
  verbs: [list, watch]
- apiGroups: [tunnelgateway.dev]
  resources: [tunnelconfigurations]
  verbs: [get, list, watch, patch]
- apiGroups: [""]
  resources: [services]
  verbs: [list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
# Listed and watched as metadata; read one by one where a listener or an account
# refers to them; written for the tokens of tunnels.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create, update, patch, delete]
# What runs the connectors of a Gateway.
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
# Whether the last connector has ended.
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
{{ include "tunnel-gateway.eventRules" . }}
{{- end -}}

{{- define "tunnel-gateway.eventRules" -}}
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{/* The Lease of the leader, and the event that says who it is. */}}
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

{{/* The one Secret with the API token, in a namespace that is not worked in. */}}
{{- define "tunnel-gateway.tokenRules" -}}
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ . | quote }}]
  verbs: [get, list, watch, patch]
{{- end -}}
