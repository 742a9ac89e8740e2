package dns

import (
	"encoding/json"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// restoredRecord returns the body of the API request that restores an adopted record.
func restoredRecord(request Adoption, before provider.Record) string {
	body := struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		Content string `json:"content"`
		Proxied bool   `json:"proxied"`
		TTL     int    `json:"ttl"`
		Comment string `json:"comment"`
	}{request.Type, request.Name, request.Content, before.Proxied, max(before.TTL, provider.AutomaticTTL), before.Comment}
	encoded, err := json.Marshal(body)
	if err != nil {
		return "" // strings, numbers and booleans can be encoded
	}
	return string(encoded)
}

// quote returns the text as one word of a POSIX shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// capitalize returns the text with an initial capital.
func capitalize(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
