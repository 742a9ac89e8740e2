package controller

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// liveReadTimeout limits a read from the API server.
const liveReadTimeout = 15 * time.Second

// liveReader reads from the API server. It limits how long each read takes, so that an
// API server that does not respond cannot occupy every worker forever.
type liveReader struct{ client.Reader }

// Get implements client.Reader.
func (r liveReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	ctx, cancel := context.WithTimeout(ctx, liveReadTimeout)
	defer cancel()
	return r.Reader.Get(ctx, key, object, options...)
}

// List implements client.Reader.
func (r liveReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, liveReadTimeout)
	defer cancel()
	return r.Reader.List(ctx, list, options...)
}
