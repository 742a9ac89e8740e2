//go:build !linux

package netns

import "errors"

var errUnsupported = errors.New("network namespaces exist only on Linux")

func runInNamespace() (int, error) { return 0, errUnsupported }

func enter() bool { return false }

// Isolate returns an error: network namespaces exist only on Linux.
func Isolate() error { return errUnsupported }
