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

// TestCloseKillsTheProgramsAndRemovesTheirFiles closes the pipe, as the kernel does
// when the process ends. The two programs have the same name.
func TestCloseKillsTheProgramsAndRemovesTheirFiles(t *testing.T) {
	group, err := childproc.New("test")
	if err != nil {
		t.Fatal(err)
	}
	programs := []*exec.Cmd{start(t, group, "one"), start(t, group, "two")}
	if err := group.Close(); err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		_ = program.Wait()
		if status := program.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
			t.Errorf("%s exited with %v, want SIGKILL", program, program.ProcessState)
		}
	}
	if _, err := os.Stat(group.Files()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat the directory of the files: got %v, want %v", err, fs.ErrNotExist)
	}
}

// TestWrappedProgramCanBeRunImmediately runs programs while other goroutines fork.
func TestWrappedProgramCanBeRunImmediately(t *testing.T) {
	const goroutines, runs = 8, 40
	program, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	group, err := childproc.New("test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = group.Close() })
	var mu sync.Mutex // Wrap is not safe for concurrent use
	var done sync.WaitGroup
	for range goroutines {
		done.Go(func() {
			for range runs {
				mu.Lock()
				path, err := group.Wrap(program)
				mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				// With --help, the program runs without the shell that watches this process.
				if err := exec.Command(path, "--help").Run(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
}

// start starts a program that prints its argument and then sleeps.
func start(t *testing.T, group *childproc.Group, argument string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sleeper")
	if err := childproc.WriteProgram(path, []byte("#!/bin/sh\necho \"$@\"\nexec sleep 600\n")); err != nil {
		t.Fatal(err)
	}
	path, err := group.Wrap(path)
	if err != nil {
		t.Fatal(err)
	}
	program := exec.Command(path, argument)
	output, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(argument))
	if _, err := output.Read(got); err != nil || string(got) != argument {
		t.Fatalf("the program printed %q, error %v, want %q", got, err, argument)
	}
	return program
}
