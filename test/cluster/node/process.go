package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// outputTimeout is how long output is waited for when the process has ended.
const outputTimeout = time.Second

// process is a container that runs. It leads a process group, which ends with
// it: what it has started, and the shell that ties it to this process.
type process struct {
	command    *exec.Cmd
	output     *os.File
	outputRead chan struct{} // closed when the output is read to its end
	done       chan struct{} // closed when the process has ended
}

// startProcess starts what was prepared. Its standard output and error go to
// the log, in the order in which it writes them.
func startProcess(l *processSpec, log *outputLog) (*process, error) {
	output, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	command := exec.Command(l.command[0], l.command[1:]...)
	command.Dir, command.Env = l.dir, append([]string{"PATH=" + os.Getenv("PATH")}, l.environment...)
	command.Stdout, command.Stderr = input, input
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = command.Start()
	_ = input.Close() // the process has its own
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

// wait returns when the process and its group have ended.
func (p *process) wait() {
	defer close(p.done)
	_ = p.command.Wait() // its state says as much
	p.kill()
	select {
	case <-p.outputRead:
	case <-time.After(outputTimeout): // a process that has left the group has the pipe
	}
	_ = p.output.Close()
}

// terminate asks the process to end.
func (p *process) terminate() { _ = p.command.Process.Signal(syscall.SIGTERM) }

// kill ends the process group, if there is one left.
func (p *process) kill() { _ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) }

// id is a container ID that tells the number of the process.
func (p *process) id() string { return fmt.Sprintf("process://%d", p.command.Process.Pid) }

// exit returns how an ended process has: shells count from 128 for a signal.
func (p *process) exit() (code, signal int32) {
	status := p.command.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int32(status.Signal()), int32(status.Signal()) //nolint:gosec // G115: signals are below 128
	}
	return int32(status.ExitStatus()), 0 //nolint:gosec // G115: it has 8 bits
}
