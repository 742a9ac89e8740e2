package controller

import (
	"errors"
	"testing"
)

func TestFailureEventContainsTheErrorOnce(t *testing.T) {
	err := errors.New("deployment infra/shared exists; delete it")
	for message, want := range map[string]string{
		"Cloudflare rejects the request.":                         "Cloudflare rejects the request. (deployment infra/shared exists; delete it)",
		"Deployment infra/shared exists; delete it.":              "Deployment infra/shared exists; delete it.",
		"Failed to x: deployment infra/shared exists; delete it.": "Failed to x: deployment infra/shared exists; delete it.",
	} {
		if got := describeFailure(message, err); got != want {
			t.Errorf("describeFailure(%q) = %q, want %q", message, got, want)
		}
	}
}
