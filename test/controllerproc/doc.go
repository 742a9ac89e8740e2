// Package controllerproc builds the controller and runs it beside its tests, as they
// and the demo do: on a control plane and with a Cloudflare of their own. What
// is said of a program holds for others than the controller too.
//
// It knows no test framework. Whatever the controller is asked to do, and what
// must come of it, does not belong here.
package controllerproc
