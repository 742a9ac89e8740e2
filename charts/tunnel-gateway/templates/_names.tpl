{{/*
The name of most objects, with at most 53 characters, so that the name with the
suffix "-dashboard" is a valid name of a Service: at most 63 characters, no dot, and
a letter at the beginning.
*/}}
{{- define "tunnel-gateway.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $release := .Release.Name | replace "." "-" -}}
{{- if regexMatch "^[0-9]" $release -}}
{{- $release = printf "%s-%s" $name $release -}}
{{- else if not (contains $name $release) -}}
{{- $release = printf "%s-%s" $release $name -}}
{{- end -}}
{{- regexReplaceAll "-+$" ($release | trunc 53) "" -}}
{{- end -}}
{{- end -}}

{{/* The Lease of the leader election. */}}
{{- define "tunnel-gateway.lease" -}}
{{ include "tunnel-gateway.fullname" . }}.tunnelgateway.dev
{{- end -}}

{{/* The labels that select the pods. A selector is immutable. */}}
{{- define "tunnel-gateway.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "tunnel-gateway.labels" -}}
{{ include "tunnel-gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "tunnel-gateway.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "tunnel-gateway.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is required when serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "tunnel-gateway.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default (printf "v%s" .Chart.AppVersion) .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- define "tunnel-gateway.configurationName" -}}
{{- default .Values.gatewayClass.name .Values.tunnelConfiguration.name -}}
{{- end -}}

{{/* The Service through which Envoys connect to the controller. */}}
{{- define "tunnel-gateway.xdsService" -}}
{{ include "tunnel-gateway.fullname" . }}-xds
{{- end -}}

{{/* Not empty if the chart creates a TunnelConfiguration. */}}
{{- define "tunnel-gateway.hasConfiguration" -}}
{{- with .Values.gatewayClass -}}
{{- if or $.Values.tunnelConfiguration.create .images.cloudflared .images.envoy -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* The spec of the TunnelConfiguration, with the images in gatewayClass. */}}
{{- define "tunnel-gateway.configurationSpec" -}}
{{- $spec := deepCopy (default dict .Values.tunnelConfiguration.spec) -}}
{{- with .Values.gatewayClass -}}
{{- if .images.cloudflared -}}
{{- $spec = merge $spec (dict "connector" (dict "image" .images.cloudflared)) -}}
{{- end -}}
{{- if .images.envoy -}}
{{- $spec = merge $spec (dict "connector" (dict "envoy" (dict "image" .images.envoy))) -}}
{{- end -}}
{{- end -}}
{{- toYaml $spec -}}
{{- end -}}

{{/*
The environment variables that set the memory limit of the Go runtime, so that it
collects garbage before the kernel kills the process. Megabytes instead of mebibytes
leave 5 % for other memory. Empty if the pods have no limit or extraEnv sets one.
*/}}
{{- define "tunnel-gateway.memoryEnv" -}}
{{- $own := false -}}
{{- range .Values.controller.extraEnv }}{{ if eq .name "GOMEMLIMIT" }}{{ $own = true }}{{ end }}{{ end -}}
{{- if and (dig "limits" "memory" "" (default dict .Values.resources)) (not $own) -}}
- name: MEMORY_LIMIT_MI
  valueFrom:
    resourceFieldRef:
      containerName: controller
      resource: limits.memory
      divisor: 1Mi
- name: GOMEMLIMIT
  value: $(MEMORY_LIMIT_MI)000000
{{- end -}}
{{- end -}}

{{/* The port of the Cloudflare API, or of its proxy. */}}
{{- define "tunnel-gateway.apiPort" -}}
{{- $url := .Values.cloudflare.baseURL -}}
{{- $port := regexReplaceAll "^https?://[^/]*?(:([0-9]+))?(/.*)?$" (default "" $url) "${2}" -}}
{{- $port | default (ternary 80 443 (hasPrefix "http://" (default "" $url))) -}}
{{- end -}}
