package cli

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
)

// forbiddenReader denies access to all objects and counts the requests.
type forbiddenReader struct {
	client.Reader
	requests int
}

var errForbidden = errors.New("forbidden")

func (f *forbiddenReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	f.requests++
	return errForbidden
}

func TestDiffReadsASecretOncePerAccount(t *testing.T) {
	objects := &forbiddenReader{}
	o := diffOptions{enabled: true, cloudflare: config.Cloudflare{AccountID: "a", APITokenSecret: "n/s"}}
	open := o.openAccounts(objects)
	for range 2 {
		if _, err := open(t.Context(), o.account().ForSettings(nil)); err == nil {
			t.Error("opening the account succeeds without its Secret")
		}
	}
	if objects.requests != 1 {
		t.Errorf("the Secret was read %d times, want once", objects.requests)
	}
}
