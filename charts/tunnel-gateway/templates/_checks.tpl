{{/* Checks of combinations of values, which a schema cannot express. */}}
{{- define "tunnel-gateway.check" -}}
{{- $environment := dict -}}
{{- range .Values.controller.extraEnv -}}
{{- $_ := set $environment .name true -}}
{{- if hasPrefix "TUNNEL_GATEWAY_LEADER_ELECTION" .name -}}
{{- fail (printf "%s cannot be set in controller.extraEnv: remove it, because the chart configures leader election" .name) -}}
{{- end -}}
{{- end -}}
{{- range .Values.controller.extraArgs -}}
{{- if hasPrefix "--leader-election" . -}}
{{- fail (printf "%s cannot be set in controller.extraArgs: remove it, because the chart configures leader election" .) -}}
{{- end -}}
{{- if hasPrefix "--controller-namespace" . -}}
{{- fail (printf "%s cannot be set in controller.extraArgs: remove it, because the controller must use the namespace of the release" .) -}}
{{- end -}}
{{- if hasPrefix "--xds-service" . -}}
{{- fail (printf "%s cannot be set in controller.extraArgs: remove it, because the chart creates the Service" .) -}}
{{- end -}}
{{- if hasPrefix "--xds-bind-address" . -}}
{{- fail (printf "%s cannot be set in controller.extraArgs: remove it, because Envoys connect to port 18000 of the Service" .) -}}
{{- end -}}
{{- end -}}
{{- with .Values.cloudflare -}}
{{- if and .existingSecret $environment.CLOUDFLARE_API_TOKEN -}}
{{- fail "cloudflare.existingSecret and CLOUDFLARE_API_TOKEN in controller.extraEnv are mutually exclusive: remove one of them" -}}
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
{{- fail "certificates.namespaces requires certificates.validate: set it to true, or remove the namespaces" -}}
{{- end -}}
{{- if and $.Values.controller.namespaces (not (has . $.Values.controller.namespaces)) -}}
{{- fail (printf "certificates.namespaces contains %s: add it to controller.namespaces too" .) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.tunnelConfiguration.create (not .Values.gatewayClass.create) -}}
{{- fail "tunnelConfiguration.create requires gatewayClass.create: set it to true, because only the GatewayClass of the chart refers to the TunnelConfiguration" -}}
{{- end -}}
{{- $spec := default dict .Values.tunnelConfiguration.spec -}}
{{- with .Values.gatewayClass -}}
{{- if and (or .dataPlane .images.cloudflared .images.envoy) (not .create) -}}
{{- fail "gatewayClass.dataPlane and gatewayClass.images require gatewayClass.create: set it to true, or set the annotation tunnelgateway.dev/data-plane of your own GatewayClass, and the images in your own TunnelConfiguration" -}}
{{- end -}}
{{- if and .dataPlane (dig "dataPlane" "" $spec) -}}
{{- fail "gatewayClass.dataPlane and tunnelConfiguration.spec.dataPlane are mutually exclusive: remove one of them" -}}
{{- end -}}
{{- if and .images.cloudflared (dig "connector" "image" "" $spec) -}}
{{- fail "gatewayClass.images.cloudflared and tunnelConfiguration.spec.connector.image are mutually exclusive: remove one of them" -}}
{{- end -}}
{{- if and .images.envoy (dig "connector" "envoy" "image" "" $spec) -}}
{{- fail "gatewayClass.images.envoy and tunnelConfiguration.spec.connector.envoy.image are mutually exclusive: remove one of them" -}}
{{- end -}}
{{- end -}}
{{- with .Values.metrics -}}
{{- if not .enabled -}}
{{- if .serviceMonitor.enabled -}}
{{- fail "metrics.serviceMonitor.enabled requires metrics.enabled: set it to true" -}}
{{- end -}}
{{- if .prometheusRule.enabled -}}
{{- fail "metrics.prometheusRule.enabled requires metrics.enabled: set it to true" -}}
{{- end -}}
{{- if .pprof -}}
{{- fail "metrics.pprof requires metrics.enabled: set it to true, because profiles use the same port" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
