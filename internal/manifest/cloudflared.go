package manifest

import (
	"fmt"
	"slices"
)

// cloudflaredError returns the error about a document that is a configuration file of
// cloudflared, or nil. The keys are from the documentation of cloudflared's configuration
// file.
func cloudflaredError(place Place, content map[string]any) error {
	if place.Item != "" || content["apiVersion"] != nil || content["kind"] != nil {
		return nil
	}
	_, namesTunnel := content["tunnel"].(string)
	_, namesCredentials := content["credentials-file"].(string)
	rules, _ := content["ingress"].([]any)
	if !namesTunnel && !namesCredentials && !slices.ContainsFunc(rules, isIngressRule) {
		return nil
	}
	file := place.File
	if file == "stdin" {
		file = "-"
	}
	return fmt.Errorf("this is a cloudflared configuration, not a manifest; convert it with: kubectl tunnel-gateway convert -f %s", file)
}

// isIngressRule reports whether the value is a rule in a cloudflared configuration.
func isIngressRule(value any) bool {
	rule, _ := value.(map[string]any)
	_, hasService := rule["service"].(string)
	return hasService
}
