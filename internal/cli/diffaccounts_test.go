package cli

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
)

// forbidden counts the Secrets that it refuses.
type forbidden struct {
	client.Reader
	asked int
}

var errForbidden = errors.New("forbidden")

func (f *forbidden) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	f.asked++
	return errForbidden
}

func TestAnAccountIsAskedOnce(t *testing.T) {
	objects := &forbidden{}
	o := diffOptions{enabled: true, cloudflare: config.Cloudflare{AccountID: "a", APITokenSecret: "n/s"}}
	open := o.accounts(objects)
	for range 2 {
		if _, err := open(t.Context(), o.account().ForSettings(nil)); err == nil {
			t.Error("it opens")
		}
	}
	if objects.asked != 1 {
		t.Errorf("the Secret is read %d times, want once", objects.asked)
	}
}
