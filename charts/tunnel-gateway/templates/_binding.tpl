{{/*
A role with its binding to the controller's ServiceAccount. Takes a dict of
root, name, rules and, unless it is for the whole cluster, namespace. Where other
releases may have roles too, the release's namespace is part of the name, behind
a dot, which no other part of it has; a name that is that of the namespace says it
already.
*/}}
{{- define "tunnel-gateway.role" -}}
{{- $kind := ternary "Role" "ClusterRole" (hasKey . "namespace") }}
{{- $name := .name }}
{{- if ne (default .name .namespace) .root.Release.Namespace }}
{{- $name = printf "%s.%s" .name .root.Release.Namespace }}
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ $name | quote }}
  {{- with .namespace }}
  namespace: {{ . | quote }}
  {{- end }}
  labels: {{- include "tunnel-gateway.labels" .root | nindent 4 }}
rules:
{{ .rules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ $name | quote }}
  {{- with .namespace }}
  namespace: {{ . | quote }}
  {{- end }}
  labels: {{- include "tunnel-gateway.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $name | quote }}
subjects:
- kind: ServiceAccount
  name: {{ include "tunnel-gateway.serviceAccountName" .root | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
{{- end -}}
