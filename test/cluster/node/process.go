package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// After a process has ended, the node waits up to outputTimeout for the rest of its
// output.
const outputTimeout = time.Second

// process is a container's process. It leads a process group with its child processes and
// the shell that watches this process. The group is killed when the process ends.
type process struct {
	command    *exec.Cmd
	output     *os.File
	outputRead chan struct{} // closed when the output was read completely
	done       chan struct{} // closed when the process has ended
}

// variables returns the process's environment.
func (s *processSpec) variables() []string {
	return append([]string{"PATH=" + os.Getenv("PATH")}, s.environment...)
}

// startProcess starts a process. Its standard output and its standard error go to
// the log in the order in which it writes them.
func startProcess(spec *processSpec, log *outputLog) (*process, error) {
	output, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	command := exec.Command(spec.command[0], spec.command[1:]...)
	command.Dir, command.Env = spec.dir, spec.variables()
	command.Stdout, command.Stderr = input, input
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = command.Start()
	_ = input.Close() // the process has its own copy
	if err != nil {
		return nil, errors.Join(err, output.Close())
	}
	p := &process{command: command, output: output, outputRead: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(p.outputRead)
		log.readFrom(output)
	}()
	return p, nil
}

// wait waits until the process has ended, kills its process group, and waits for the rest
// of the output.
func (p *process) wait() {
	defer close(p.done)
	_ = p.command.Wait() // ProcessState has the result
	p.kill()
	select {
	case <-p.outputRead:
	case <-time.After(outputTimeout): // a child process that left the group has the pipe open
	}
	_ = p.output.Close()
}

// terminate sends SIGTERM to the process.
func (p *process) terminate() { _ = p.command.Process.Signal(syscall.SIGTERM) }

// kill kills the process group, if it still exists.
func (p *process) kill() { _ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) }

// id returns a container ID that contains the process ID.
func (p *process) id() string { return fmt.Sprintf("process://%d", p.command.Process.Pid) }

// exit returns an ended process's exit code and signal. As in a shell, the exit code for
// a signal is 128 plus its number.
func (p *process) exit() (code, signal int32) {
	status := p.command.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int32(status.Signal()), int32(status.Signal()) //nolint:gosec // G115: signals are below 128
	}
	return int32(status.ExitStatus()), 0 //nolint:gosec // G115: an exit status has 8 bits
}
