package childproc_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/childproc"
)

// TestTetherEndsPrograms closes the pipe as the death of the process would.
// The programs have the same name, as two in different directories may.
func TestTetherEndsPrograms(t *testing.T) {
	tied, err := childproc.New("test")
	if err != nil {
		t.Fatal(err)
	}
	programs := []*exec.Cmd{start(t, tied, "one"), start(t, tied, "two")}
	if err := tied.Close(); err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		_ = program.Wait()
		if status := program.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
			t.Errorf("%s ended with %v, want it to be killed", program, program.ProcessState)
		}
	}
	if _, err := os.Stat(tied.Files()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the files: got %v, want that they are gone", err)
	}
}

// TestTiedProgramIsNotBusy runs tied programs while other goroutines fork.
func TestTiedProgramIsNotBusy(t *testing.T) {
	const tiers, ties = 8, 40
	program, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	tied, err := childproc.New("test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tied.Close() })
	var tying sync.Mutex // Tie is not called twice at the same time
	var group sync.WaitGroup
	for range tiers {
		group.Go(func() {
			for range ties {
				tying.Lock()
				path, err := tied.Wrap(program)
				tying.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				// With --help, the shell that watches this process is not started.
				if err := exec.Command(path, "--help").Run(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// start runs a program that says its arguments and then sleeps.
func start(t *testing.T, tied *childproc.Group, says string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sleeper")
	if err := childproc.WriteProgram(path, []byte("#!/bin/sh\necho \"$@\"\nexec sleep 600\n")); err != nil {
		t.Fatal(err)
	}
	path, err := tied.Wrap(path)
	if err != nil {
		t.Fatal(err)
	}
	program := exec.Command(path, says)
	output, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(says))
	if _, err := output.Read(got); err != nil || string(got) != says {
		t.Fatalf("the program said %q (%v), want %q", got, err, says)
	}
	return program
}
