{{/* Checks of combinations of values, which a schema cannot express. */}}
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
{{- fail (printf "%s cannot be set in controller.extraArgs: the Roles grant access to the namespace of the release" .) -}}
{{- end -}}
{{- end -}}
{{- with .Values.cloudflare -}}
{{- if and .existingSecret $environment.CLOUDFLARE_API_TOKEN -}}
{{- fail "cloudflare.existingSecret and CLOUDFLARE_API_TOKEN in controller.extraEnv exclude each other: remove one of them" -}}
{{- end -}}
{{- if and .existingSecret (not .accountID) (not $environment.CLOUDFLARE_ACCOUNT_ID) -}}
{{- fail "cloudflare.accountID is missing: set it to the account of the token in cloudflare.existingSecret" -}}
{{- end -}}
{{- if and .accountID (not .existingSecret) (not $environment.CLOUDFLARE_API_TOKEN) -}}
{{- fail "cloudflare.existingSecret is missing: set it to the Secret with the API token for cloudflare.accountID" -}}
{{- end -}}
{{- end -}}
{{- range .Values.certificates.namespaces -}}
{{- if not $.Values.certificates.validate -}}
{{- fail "certificates.namespaces requires certificates.validate" -}}
{{- end -}}
{{- if and $.Values.controller.namespaces (not (has . $.Values.controller.namespaces)) -}}
{{- fail (printf "certificates.namespaces contains %s: add it to controller.namespaces too" .) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.tunnelConfiguration.create (not .Values.gatewayClass.create) -}}
{{- fail "tunnelConfiguration.create requires gatewayClass.create, because only the GatewayClass of the chart refers to the TunnelConfiguration" -}}
{{- end -}}
{{- with .Values.metrics -}}
{{- if not .enabled -}}
{{- if .serviceMonitor.enabled -}}
{{- fail "metrics.serviceMonitor.enabled requires metrics.enabled" -}}
{{- end -}}
{{- if .prometheusRule.enabled -}}
{{- fail "metrics.prometheusRule.enabled requires metrics.enabled" -}}
{{- end -}}
{{- if .pprof -}}
{{- fail "metrics.pprof requires metrics.enabled, because profiles use the same port" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
