// Package cluster runs a real Kubernetes control plane for the tests and the demo. It
// starts kube-apiserver, kube-controller-manager and etcd, which package binaries
// provides, and installs the Gateway API CRDs and this project's CRDs.
//
// The package creates no objects for the tests, and starts neither the controller nor the
// Cloudflare simulator. It works on Unix only.
package cluster
