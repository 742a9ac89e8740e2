// Package recovery converts panics to errors in goroutines that controller-runtime does
// not protect. An unrecovered panic ends the process and thus stops every Gateway.
package recovery

import (
	"context"
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Call calls f and returns its error. If f panics, Call logs the panic with its stack,
// like controller-runtime does for a reconcile, and returns it as an error.
func Call(ctx context.Context, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			for _, handle := range utilruntime.PanicHandlers {
				handle(ctx, r)
			}
			err = fmt.Errorf("panic: %v [recovered]", r)
		}
	}()
	return f()
}
