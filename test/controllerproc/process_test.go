package controllerproc_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/childproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

// runAsParent is the environment variable that makes the test binary run a program and
// wait. Its value is the path to the program.
const runAsParent = "RUN_AS_PARENT"

func TestMain(m *testing.M) {
	if program := os.Getenv(runAsParent); program != "" {
		command := exec.Command(program) // #nosec G702 -- the test sets the path
		command.Stdout = os.Stdout
		if _, err := controllerproc.Run(command); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		select {}
	}
	os.Exit(m.Run())
}

// script writes a shell script and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := childproc.WriteProgram(path, []byte("#!/bin/sh\n"+text)); err != nil {
		t.Fatal(err)
	}
	return path
}

// run starts the script and returns when the script has printed that it is ready.
func run(t *testing.T, text string) *controllerproc.Process {
	t.Helper()
	output, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close() //nolint:errcheck // the pipe is only read
	command := exec.Command(script(t, text))
	command.Stdout = input
	p, err := controllerproc.Run(command)
	_ = input.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	if _, err := output.Read(make([]byte, len(readyLine))); err != nil {
		t.Fatalf("the program did not print that it is ready: %v", err)
	}
	return p
}

const (
	readyLine = "ready\n"
	ready     = "echo " + readyLine
	loop      = "while :; do sleep 0.01; done\n"
)

func TestStopReportsTheExitStatus(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ script, want string }{
		"exits with 0":        {"trap 'exit 0' TERM\n" + ready + loop, ""},
		"exits with 66":       {"trap 'exit 66' TERM\n" + ready + loop, "exit status 66"},
		"ended by SIGTERM":    {ready + loop, ""},
		"crashed before Stop": {ready + "kill -SEGV $$\n", "segmentation fault"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := run(t, test.script)
			if strings.Contains(name, "crashed") {
				<-p.Exited()
			}
			for range 2 { // the second call finds an ended program
				err := p.Stop()
				if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("got error %v, want %q", err, test.want)
				}
			}
			select {
			case <-p.Exited():
			default:
				t.Error("the program has not ended")
			}
		})
	}
}

func TestKilledProgramStopsWithoutAnError(t *testing.T) {
	t.Parallel()
	p := run(t, "trap '' TERM\n"+ready+loop)
	p.Kill()
	<-p.Exited()
	if err := p.Stop(); err != nil {
		t.Errorf("Stop after Kill: %v", err)
	}
}

func TestMissingProgramIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := controllerproc.Run(exec.Command(filepath.Join(t.TempDir(), "none"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got error %v, want %v", err, fs.ErrNotExist)
	}
}

func TestStopRemovesTheTemporaryDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	p := run(t, "trap 'exit 0' TERM\n"+ready+loop)
	pattern := filepath.Join(dir, "tunnel-gateway-program-*")
	if before, _ := filepath.Glob(pattern); len(before) != 1 {
		t.Errorf("while the program runs: %v, want one directory", before)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if after, _ := filepath.Glob(pattern); len(after) > 0 {
		t.Errorf("after Stop: %v, want no directory", after)
	}
}

func TestProgramIsKilledWhenItsParentDies(t *testing.T) {
	t.Parallel()
	output, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()               //nolint:errcheck // the pipe is only read
	parent := exec.Command(os.Args[0]) // #nosec G702 -- the test binary
	parent.Env = append(os.Environ(), runAsParent+"="+script(t, ready+loop))
	parent.Stdout = input
	err = parent.Start()
	_ = input.Close()
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, len(readyLine))
	if _, err := output.Read(line); err != nil || string(line) != readyLine {
		t.Fatalf("the program printed %q, error %v", line, err)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	if _, err := io.ReadAll(output); err != nil { // returns when every writer has ended
		t.Error(err)
	}
}
