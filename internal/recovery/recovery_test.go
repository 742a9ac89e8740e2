package recovery_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/tunnel-gateway/tunnel-gateway/internal/recovery"
)

func TestCallReturnsAPanicAsALoggedError(t *testing.T) {
	var logged []string
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{}))
	err := recovery.Call(ctx, panicking)
	if err == nil || err.Error() != "panic: a bug [recovered]" {
		t.Errorf("got %v, want the panic", err)
	}
	if all := strings.Join(logged, "\n"); !strings.Contains(all, "a bug") || !strings.Contains(all, "recovery_test.panicking") {
		t.Errorf("the log contains no stack of the panic: %s", all)
	}
	if err := recovery.Call(context.Background(), func() error { return errRefused }); !errors.Is(err, errRefused) {
		t.Errorf("got %v, want the error of the function", err)
	}
}

var errRefused = errors.New("refused")

func panicking() error { panic("a bug") }
