package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// process is a program in this network namespace.
type process string // its directory in /proc

// findProcess returns the process in this network namespace that runs the program.
func findProcess(program string) (process, error) {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return "", err
	}
	directories, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return "", err
	}
	for _, directory := range directories {
		// Processes end at any time, so errors mean another program.
		path, _ := os.Readlink(filepath.Join(directory, "exe"))
		space, _ := os.Readlink(filepath.Join(directory, "ns", "net"))
		if path == program && space == own {
			return process(directory), nil
		}
	}
	return "", fmt.Errorf("no process runs %s", program)
}

// memory returns the resident memory in MiB.
func (p process) memory() (float64, error) {
	status, err := os.ReadFile(filepath.Join(string(p), "status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kilobytes, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
			return kilobytes / 1024, err
		}
	}
	return 0, errors.New("the process has ended")
}

// cpu returns the processor time that the process's threads have used.
func (p process) cpu() (time.Duration, error) {
	threads, err := filepath.Glob(filepath.Join(string(p), "task", "*", "schedstat"))
	if err == nil && len(threads) == 0 {
		err = errors.New("the process has ended")
	}
	if err != nil {
		return 0, err
	}
	total := time.Duration(0)
	for _, thread := range threads {
		text, err := os.ReadFile(thread) // #nosec G304 -- in /proc
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return 0, err
		}
		used, _, _ := strings.Cut(string(text), " ")
		nanoseconds, err := strconv.ParseInt(used, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("unexpected content of %s: %w", thread, err)
		}
		total += time.Duration(nanoseconds)
	}
	return total, nil
}
