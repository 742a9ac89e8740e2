{{/*
The name of a role and its binding. Parameters: a dict with root, name and, for a
Role, namespace. If other releases can have roles in the same place, the name ends
with a dot and the namespace of the release, unless the name equals that namespace.
No other part of the name contains a dot.
*/}}
{{- define "tunnel-gateway.roleName" -}}
{{ .name }}{{ if ne (default .name .namespace) .root.Release.Namespace }}.{{ .root.Release.Namespace }}{{ end }}
{{- end -}}

{{/*
The name of a ClusterRole for users: tunnel-gateway-viewer, for example. The commands plan
and check print it. If other releases can have the role, the name ends with a dot and the
namespace of the release. Parameters: a dict with root and name.
*/}}
{{- define "tunnel-gateway.userRole" -}}
{{- $fullname := include "tunnel-gateway.fullname" .root -}}
{{ $fullname }}-{{ .name }}{{ if ne $fullname .root.Release.Namespace }}.{{ .root.Release.Namespace }}{{ end }}
{{- end -}}

{{/*
A role and its binding to the ServiceAccount of the controller. Parameters: a dict
with root, name, rules and, for a Role, namespace.
*/}}
{{- define "tunnel-gateway.role" -}}
{{- $kind := ternary "Role" "ClusterRole" (hasKey . "namespace") }}
{{- $name := include "tunnel-gateway.roleName" . }}
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
