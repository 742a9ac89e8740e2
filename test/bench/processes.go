package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// ticks returns the processor time that the process has used, in hundredths of a second.
func (p process) ticks() (int, error) {
	stat, err := os.ReadFile(filepath.Join(string(p), "stat"))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(stat), ") ") // the program name is in parentheses
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0, fmt.Errorf("unexpected content of %s/stat", p)
	}
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[12])
	return user + system, err
}
