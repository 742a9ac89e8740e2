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

// asStarter makes the test's own binary one that runs a program and waits.
const asStarter = "RUN_AS_STARTER"

func TestMain(m *testing.M) {
	if program := os.Getenv(asStarter); program != "" {
		command := exec.Command(program) // #nosec G702 -- named by this very program
		command.Stdout = os.Stdout
		if _, err := controllerproc.Run(command); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		select {}
	}
	os.Exit(m.Run())
}

// script writes a program of the shell.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := childproc.WriteProgram(path, []byte("#!/bin/sh\n"+text)); err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs the script, and returns once it has said that it is ready.
func run(t *testing.T, text string) *controllerproc.Process {
	t.Helper()
	output, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close() //nolint:errcheck // it was only read
	command := exec.Command(script(t, text))
	command.Stdout = input
	p, err := controllerproc.Run(command)
	_ = input.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	if _, err := output.Read(make([]byte, len(readyLine))); err != nil {
		t.Fatalf("it did not get ready: %v", err)
	}
	return p
}

const (
	readyLine   = "ready\n"
	ready       = "echo " + readyLine
	untilItEnds = "while :; do sleep 0.01; done\n"
)

func TestStop(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ script, want string }{
		"in good order":       {"trap 'exit 0' TERM\n" + ready + untilItEnds, ""},
		"with another status": {"trap 'exit 66' TERM\n" + ready + untilItEnds, "exit status 66"},
		"while it starts":     {ready + untilItEnds, ""},
		"when it has crashed": {ready + "kill -SEGV $$\n", "segmentation fault"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := run(t, test.script)
			if strings.Contains(name, "crashed") {
				<-p.Exited()
			}
			for range 2 { // the second time it has ended
				err := p.Stop()
				if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("got the error %v, want %q", err, test.want)
				}
			}
			select {
			case <-p.Exited():
			default:
				t.Error("it has not ended")
			}
		})
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	p := run(t, "trap '' TERM\n"+ready+untilItEnds)
	p.Kill()
	<-p.Exited()
	if err := p.Stop(); err != nil {
		t.Errorf("stopping what was killed: %v", err)
	}
}

func TestProgramThatIsMissing(t *testing.T) {
	t.Parallel()
	if _, err := controllerproc.Run(exec.Command(filepath.Join(t.TempDir(), "none"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got the error %v, want that there is no such file", err)
	}
}

func TestNoFilesAreLeft(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	p := run(t, "trap 'exit 0' TERM\n"+ready+untilItEnds)
	tied := filepath.Join(dir, "tunnel-gateway-program-*")
	if before, _ := filepath.Glob(tied); len(before) != 1 {
		t.Errorf("while it runs: %v, want one directory", before)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if after, _ := filepath.Glob(tied); len(after) > 0 {
		t.Errorf("when it has ended: %v, want nothing", after)
	}
}

// TestProgramDiesWithItsStarter kills what has run it.
func TestProgramDiesWithItsStarter(t *testing.T) {
	t.Parallel()
	output, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()                //nolint:errcheck // it was only read
	starter := exec.Command(os.Args[0]) // #nosec G702 -- this very program
	starter.Env = append(os.Environ(), asStarter+"="+script(t, ready+untilItEnds))
	starter.Stdout = input
	err = starter.Start()
	_ = input.Close()
	if err != nil {
		t.Fatal(err)
	}
	said := make([]byte, len(readyLine))
	if _, err := output.Read(said); err != nil || string(said) != readyLine {
		t.Fatalf("it said %q (%v)", said, err)
	}
	_ = starter.Process.Kill()
	_ = starter.Wait()
	if _, err := io.ReadAll(output); err != nil { // until the last who writes is gone
		t.Error(err)
	}
}
