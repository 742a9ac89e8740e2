package controller

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
)

// Scheme returns a scheme with the types that the controller reads and writes.
func Scheme() *runtime.Scheme {
	s := kinds.Scheme(kinds.All())
	utilruntime.Must(authorizationv1.AddToScheme(s))
	return s
}
