{{/* What no schema of single values can say. */}}
{{- define "tunnel-gateway.check" -}}
{{- $environment := dict -}}
{{- range .Values.controller.extraEnv -}}
{{- $_ := set $environment .name true -}}
{{- if hasPrefix "TUNNEL_GATEWAY_LEADER_ELECTION" .name -}}
{{- fail (printf "%s in controller.extraEnv: the replicas need a leader, and its role names the Lease" .name) -}}
{{- end -}}
{{- end -}}
{{- range .Values.controller.extraArgs -}}
{{- if hasPrefix "--leader-election" . -}}
{{- fail (printf "%s in controller.extraArgs: the replicas need a leader, and its role names the Lease" .) -}}
{{- end -}}
{{- end -}}
{{- with .Values.cloudflare -}}
{{- if and .existingSecret $environment.CLOUDFLARE_API_TOKEN -}}
{{- fail "cloudflare.existingSecret and CLOUDFLARE_API_TOKEN in controller.extraEnv: there can be one API token by default" -}}
{{- end -}}
{{- if and .existingSecret (not .accountID) (not $environment.CLOUDFLARE_ACCOUNT_ID) -}}
{{- fail "cloudflare.accountID is missing: the account that the token in cloudflare.existingSecret is for" -}}
{{- end -}}
{{- if and .accountID (not .existingSecret) (not $environment.CLOUDFLARE_API_TOKEN) -}}
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
