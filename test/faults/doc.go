// Package faults tests the controller's binary while Cloudflare, the API server, etcd, the leader
// and users fail it. A visitor asks for hostnames that never change, through both data planes. No
// answer may be wrong. After each fault the configurations, records, applications and statuses
// are what plan computes from the cluster.
//
// Without flags, each fault happens once. With -long, the faults repeat in a random order for
// this time; -seed repeats an order.
package faults
