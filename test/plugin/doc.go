// Package plugin tests the archives of the kubectl plugin: krew installs them, and the real
// kubectl runs what is in them.
package plugin
