package xds

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

func (s *Server) Await(context.Context, types.NamespacedName) {}
