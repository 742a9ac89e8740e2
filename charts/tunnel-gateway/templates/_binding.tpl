{{/*
A role with its binding to the controller's ServiceAccount. Takes a dict of
root, name, rules and, unless it is for the whole cluster, namespace.
*/}}
{{- define "tunnel-gateway.role" -}}
{{- $kind := ternary "Role" "ClusterRole" (hasKey . "namespace") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {{- include "tunnel-gateway.labels" .root | nindent 4 }}
rules:
{{ .rules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {{- include "tunnel-gateway.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ .name }}
subjects:
- kind: ServiceAccount
  name: {{ include "tunnel-gateway.serviceAccountName" .root }}
  namespace: {{ .root.Release.Namespace }}
{{- end -}}
