package controller

import (
	"errors"
	"testing"
)

func TestTheEventOfAFailureContainsTheErrorOnce(t *testing.T) {
	err := errors.New("secret infra/shared exists; delete it")
	for message, want := range map[string]string{
		"Cloudflare rejects the API token.":                   "Cloudflare rejects the API token. (secret infra/shared exists; delete it)",
		"Secret infra/shared exists; delete it.":              "Secret infra/shared exists; delete it.",
		"Failed to x: secret infra/shared exists; delete it.": "Failed to x: secret infra/shared exists; delete it.",
	} {
		if got := describeFailure(message, err); got != want {
			t.Errorf("describeFailure(%q) = %q, want %q", message, got, want)
		}
	}
}
