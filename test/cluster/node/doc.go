// Package node runs a test cluster's Pods (see package cluster) as processes on this
// machine. It replaces the kubelet, the scheduler and the network, without containers and
// without root. It creates a Node, binds every Pod to it, runs a program for each image,
// writes the Pods' status, serves their logs, forwards their ports, and connects the tests
// to Pods and Services.
//
// Processes share one file system and one network. They differ from containers:
//
//   - Instead of a container's command, the node runs the image's program, with the
//     Pod's arguments, environment and volumes (secret, configMap, projected and
//     emptyDir). It rewrites a path below a mountPath in an argument, in an
//     environment variable's value, and in a volume's files whose names end in .yaml.
//   - Each process listens on its own ports, which the image's environment
//     variables contain. [Node.Dial] and probes translate a Pod's address. A
//     process can connect to a Pod's or Service's address only if the node serves it
//     ([Options.ServeAddresses]); a Pod's address is then served even if the process
//     listens only on the loopback address.
//   - In a projected volume, such as every Pod gets for its ServiceAccount, the node
//     writes only the Secrets and ConfigMaps.
//   - An exec probe's command must begin with the image's program, and its variable
//     references are not expanded. While a probe's port does not accept
//     connections, the next attempt follows as soon as it does.
//   - Hooks, readiness gates, node selectors, taints and resources have no effect.
//   - The node does not support gRPC probes, init containers that are not sidecars, and
//     other kinds of volumes. The Pod's status reports this.
//
// A Pod waits while the Node is unschedulable (kubectl cordon).
//
// Sidecars, probes, the order in which containers start and stop, and volume files follow
// the kubelet. Only the backoff between restarts is shorter, and the node notices at once
// that a process has ended ([Node.SetRestartDelay]). When the grace period ends, all
// processes are killed at once.
//
// Only one node in a cluster may bind Pods. Others set [Options.OnlyNamed]. The nodes use
// the same addresses for their Pods, so only one may serve them.
package node
