// Package cluster gives the tests and the demo a real Kubernetes control
// plane: a kube-apiserver, a kube-controller-manager and an etcd built from
// source, once per machine, and started with the Gateway API's CRDs and ours.
//
// What an API server and its helpers do belongs here. What is put into it does
// not: objects, the controller under test and the simulator of the Cloudflare
// API are their users' business. It runs on Unix only.
package cluster
