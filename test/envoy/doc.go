// Package envoy sends requests to the real Envoy, which serves the routes in testdata, and
// compares what arrives at the backends and what the client gets with tables. Each table is
// beside the row of the Gateway API that it tests: paths_test.go has the requests for the
// routes in testdata/paths.yaml, and so on.
//
// To add a case, add a route to a file in testdata, and requests to the table. The requests
// of all tables go to one Envoy, so that each route needs a hostname or a path of its own.
//
// random_test.go compares the answers to random requests with the routing tables of random clusters.
package envoy
