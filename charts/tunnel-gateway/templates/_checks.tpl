{{/* What no schema of single values can say. */}}
{{- define "tunnel-gateway.check" -}}
{{- $byEnvironment := false -}}
{{- range .Values.controller.extraEnv -}}
{{- if eq .name "CLOUDFLARE_API_TOKEN" }}{{ $byEnvironment = true }}{{ end -}}
{{- end -}}
{{- with .Values.cloudflare -}}
{{- if and .existingSecret (not .accountID) -}}
{{- fail "cloudflare.accountID is missing: the account that the token in cloudflare.existingSecret is for" -}}
{{- end -}}
{{- if and .accountID (not .existingSecret) (not $byEnvironment) -}}
{{- fail "cloudflare.existingSecret is missing: the Secret with the API token for cloudflare.accountID" -}}
{{- end -}}
{{- end -}}
{{- $namespaces := .Values.controller.namespaces -}}
{{- if .Values.tunnelConfiguration.create -}}
{{- if not .Values.gatewayClass.create -}}
{{- fail "tunnelConfiguration.create needs gatewayClass.create: nothing else refers to it" -}}
{{- end -}}
{{- if and $namespaces (not (has .Release.Namespace $namespaces)) -}}
{{- fail (printf "tunnelConfiguration.create needs the release's namespace %s in controller.namespaces: the controller sees nothing elsewhere" .Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- with .Values.metrics -}}
{{- if not .enabled -}}
{{- if .serviceMonitor.enabled -}}
{{- fail "metrics.serviceMonitor.enabled needs metrics.enabled: there is nothing to fetch" -}}
{{- end -}}
{{- if .prometheusRule.enabled -}}
{{- fail "metrics.prometheusRule.enabled needs metrics.enabled: no alert would ever fire" -}}
{{- end -}}
{{- if .pprof -}}
{{- fail "metrics.pprof needs metrics.enabled: profiles are served at the same port" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
