package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestTetherEndsProgram closes the pipe as the death of the process would.
func TestTetherEndsProgram(t *testing.T) {
	binaries := t.TempDir()
	sleeper := []byte("#!/bin/sh\necho running\nexec sleep 600\n")
	if err := os.WriteFile(filepath.Join(binaries, "etcd"), sleeper, 0o700); err != nil {
		t.Fatal(err)
	}
	tether, err := newTether(binaries)
	if err != nil {
		t.Fatal(err)
	}
	program := exec.Command(tether.program("etcd"))
	output, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := output.Read(make([]byte, len("running\n"))); err != nil {
		t.Fatal(err)
	}
	if err := tether.cut(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait()
	if status := program.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("the program ended with %v, want it to be killed", program.ProcessState)
	}
}
