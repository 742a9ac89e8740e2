// Package node runs the Pods of a test cluster (see package cluster) as processes
// of this machine. It replaces the kubelet, the scheduler and the network, without
// containers and without root. It creates a Node, binds every Pod to it, runs a
// program for each image, writes the status of the Pods, serves their logs, and
// connects the tests to Pods and Services.
//
// Processes share one file system and one network. They differ from containers:
//
//   - The node does not run the command of a container but the program of its
//     image, with the arguments, the environment and the volumes of the Pod
//     (secret, configMap and emptyDir). It rewrites a path below a mountPath in an
//     argument or in the value of an environment variable.
//   - Each process listens on its own ports, which the image's environment
//     variables contain. Only [Node.Dial] and probes translate the address of a
//     Pod. A process cannot connect to the address of a Pod.
//   - Projected volumes, which every Pod gets for its ServiceAccount, are empty
//     directories.
//   - Only readiness probes with httpGet or exec are executed. The command of an
//     exec probe must begin with the program of the image, and its variable
//     references are not expanded. Hooks and readiness gates have no effect. The status of a Pod with init containers or with another
//     kind of volume reports that the node does not support them. Node selectors,
//     taints and resources are ignored.
//
// A cluster can have only one node that binds Pods. A second node runs only the
// Pods that name it in nodeName.
package node
