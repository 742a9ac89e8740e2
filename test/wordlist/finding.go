package main

import "fmt"

// finding is a fault in a file, or in the whole file if line is 0.
type finding struct {
	path    string
	line    int
	message string
}

func (f finding) String() string {
	if f.line == 0 {
		return fmt.Sprintf("%s: %s", f.path, f.message)
	}
	return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.message)
}
