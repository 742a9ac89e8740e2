//go:build !linux

package netns

import "errors"

func runInNamespace() (int, error) { return 0, errors.New("network namespaces exist only on Linux") }

func enter() bool { return false }
