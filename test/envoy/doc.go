// Package envoy sends requests to the real Envoy, which serves the routes in testdata,
// and compares what arrives at the backends and what the client gets with tables. Each
// table is beside the routes that it tests: paths_test.go has the requests for the routes
// in testdata/paths.yaml, and so on.
//
// To add a case, add a route to a file in testdata, and requests to the table. The
// requests in all tables go to one Envoy, so that each route needs its own hostname or
// path.
//
// random_test.go compares Envoy's responses to random requests with the routing tables
// for random clusters.
package envoy
