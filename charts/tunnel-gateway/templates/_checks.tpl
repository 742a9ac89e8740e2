{{/* Checks that involve more than one value, which a schema cannot express. */}}
{{- define "tunnel-gateway.check" -}}
{{- $environment := dict -}}
{{- range .Values.controller.extraEnv -}}
{{- $_ := set $environment .name true -}}
{{- if hasPrefix "TUNNEL_GATEWAY_LEADER_ELECTION" .name -}}
{{- fail (printf "%s cannot be set in controller.extraEnv: the replicas need a leader, and a Role names its Lease" .name) -}}
{{- end -}}
{{- end -}}
{{- range .Values.controller.extraArgs -}}
{{- if hasPrefix "--leader-election" . -}}
{{- fail (printf "%s cannot be set in controller.extraArgs: the replicas need a leader, and a Role names its Lease" .) -}}
{{- end -}}
{{- if hasPrefix "--controller-namespace" . -}}
{{- fail (printf "%s cannot be set in controller.extraArgs: the Roles are for the namespace of the release" .) -}}
{{- end -}}
{{- end -}}
{{- with .Values.cloudflare -}}
{{- if and .existingSecret $environment.CLOUDFLARE_API_TOKEN -}}
{{- fail "cloudflare.existingSecret and CLOUDFLARE_API_TOKEN in controller.extraEnv: only one of them can provide the default API token" -}}
{{- end -}}
{{- if and .existingSecret (not .accountID) (not $environment.CLOUDFLARE_ACCOUNT_ID) -}}
{{- fail "cloudflare.accountID is missing: the account that the token in cloudflare.existingSecret is for" -}}
{{- end -}}
{{- if and .accountID (not .existingSecret) (not $environment.CLOUDFLARE_API_TOKEN) -}}
{{- fail "cloudflare.existingSecret is missing: the Secret with the API token for cloudflare.accountID" -}}
{{- end -}}
{{- end -}}
{{- range .Values.certificates.namespaces -}}
{{- if not $.Values.certificates.validate -}}
{{- fail "certificates.namespaces needs certificates.validate: otherwise no certificates are checked" -}}
{{- end -}}
{{- if and $.Values.controller.namespaces (not (has . $.Values.controller.namespaces)) -}}
{{- fail (printf "%s in certificates.namespaces must be in controller.namespaces too" .) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.tunnelConfiguration.create (not .Values.gatewayClass.create) -}}
{{- fail "tunnelConfiguration.create needs gatewayClass.create: only the GatewayClass refers to the TunnelConfiguration" -}}
{{- end -}}
{{- with .Values.metrics -}}
{{- if not .enabled -}}
{{- if .serviceMonitor.enabled -}}
{{- fail "metrics.serviceMonitor.enabled needs metrics.enabled: without it there are no metrics to fetch" -}}
{{- end -}}
{{- if .prometheusRule.enabled -}}
{{- fail "metrics.prometheusRule.enabled needs metrics.enabled: without metrics no alert fires" -}}
{{- end -}}
{{- if .pprof -}}
{{- fail "metrics.pprof needs metrics.enabled: profiles are served on the same port" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
