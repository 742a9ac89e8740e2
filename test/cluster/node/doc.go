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
//     (secret, configMap, projected and emptyDir). It rewrites a path below a
//     mountPath in an argument, in the value of an environment variable, and in a
//     volume's files whose names end in .yaml.
//   - Each process listens on its own ports, which the image's environment
//     variables contain. [Node.Dial] and probes translate the address of a
//     Pod. A process can connect to the address of a Pod or a Service only if the
//     node serves it ([Options.ServeAddresses]); an address of a Pod is then served
//     even if the process listens only on the loopback address.
//   - Of a projected volume, such as every Pod gets for its ServiceAccount, the node
//     writes only the Secrets and ConfigMaps.
//   - The command of an exec probe must begin with the program of the image, and
//     its variable references are not expanded. While a probe's port does not accept
//     connections, the next attempt follows as soon as it does.
//   - Hooks, readiness gates, node selectors, taints and resources have no effect.
//   - The node does not support gRPC probes, init containers that are not sidecars, and
//     other kinds of volumes. The status of the Pod reports this.
//
// A Pod waits while the Node is unschedulable (kubectl cordon).
//
// Sidecars, probes, the order of starting and stopping, and the files of volumes
// follow the kubelet; only the backoff between restarts is shorter, and the node notices the
// end of a process at once ([Node.SetRestartDelay]). When the grace period ends, all
// processes are killed at once.
//
// Only one node of a cluster may bind Pods. Others set [Options.OnlyNamed]. The nodes use
// the same addresses for their Pods, so only one may serve them.
package node
