package probe

import (
	"context"
	"net/http"
	"net/url"
)

// Request is a request of a visitor.
type Request struct {
	URL *url.URL
	// Method is GET if it is empty.
	Method string
	// Header is sent only to the URL's host, and only by https.
	Header http.Header
	// GRPC makes it a call of a gRPC method without a message: HTTP/2, POST, and
	// "content-type: application/grpc". A server rejects it before it calls the method.
	GRPC bool
}

// Send sends the request once, and returns the answer. It follows no redirect.
func Send(ctx context.Context, n Network, r Request) Answer {
	return Answer{}
}
