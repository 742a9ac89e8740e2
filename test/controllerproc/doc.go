// Package controllerproc builds the controller and runs it as a process, for the
// tests and the demo. Each of them has its own control plane and its own Cloudflare
// simulator. [Run] also runs programs other than the controller.
//
// The package uses no test framework and creates no objects.
package controllerproc
