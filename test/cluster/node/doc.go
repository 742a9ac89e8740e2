// Package node runs the Pods of a cluster of package cluster as processes of
// this machine, for tests. It is the kubelet, the scheduler and the network in
// one, without containers and without root: it makes a Node, binds every Pod to
// it, stands in a program for every image that it is told of, writes truthful
// statuses, serves the logs, and connects its user to Pods and Services.
//
// Processes share one file system and one network, so some things differ from a
// container:
//
//   - A container's command is not run: the image says what is. Its arguments,
//     environment and volumes (secret, configMap and emptyDir) are the Pod's. A
//     path below a mountPath is rewritten where it stands in an argument or in
//     the value of an environment variable.
//   - Each process listens on ports of its own, which the image's variables tell
//     it. Only [Node.Dial] and probes translate a Pod's address; processes
//     cannot connect to one.
//   - Volumes of kind projected, as every Pod gets for its ServiceAccount, are
//     empty directories.
//   - Of the probes, httpGet readiness alone is executed. Init containers,
//     hooks and readiness gates do not exist; a Pod that needs another kind of
//     volume or init containers says so in its status. Node selectors, taints
//     and resources are ignored.
//
// What the images are, and what runs in the cluster, belongs to its users. There
// can be one node for unbound Pods in a cluster; another one gets only the Pods
// that name it.
package node
