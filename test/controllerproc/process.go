package controllerproc

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/childproc"
)

// stopTimeout is how long a program may take to end in good order.
const stopTimeout = 20 * time.Second

// Process is a program that was started. Its methods may be called in any
// goroutine, and several times.
type Process struct {
	command *exec.Cmd
	killed  atomic.Bool
	exited  chan struct{}
	err     error // how it has ended, once exited is closed
}

// Run runs the command, which was not started yet, in a process group of its
// own. The caller stops it; should the calling process die before, whatever the
// reason, the program is killed.
func Run(command *exec.Cmd) (*Process, error) {
	tied, err := wrap(command)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", command.Args[0], err)
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, tied.Close())
	}
	p := &Process{command: command, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		err := exitError(command.Wait())
		// The shell that ties it is left of its group, and would kill whoever has
		// its number by then.
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		p.err = errors.Join(err, tied.Close())
	}()
	return p, nil
}

// wrap makes the command run its program tied to this process.
func wrap(command *exec.Cmd) (*childproc.Group, error) {
	path, err := exec.LookPath(command.Path) // what is tied would be missed too late
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	tied, err := childproc.New(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	if command.Path, err = tied.Wrap(path); err != nil {
		return nil, errors.Join(err, tied.Close())
	}
	return tied, nil
}

// exitError is the error of a program that has not ended in good order. One that
// is told to end while it starts does not hear the signal yet, and dies of it.
func exitError(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGTERM {
		return nil
	}
	return err
}

// Exited is closed when the program has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Stop ends the program as a rollout would, with SIGTERM, and waits for it. It
// is an error if the program has to be killed, or has ended with another status
// than 0, now or before: the race detector tells of races that way. It is none
// if [Process.Kill] has ended it.
func (p *Process) Stop() error {
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		p.Kill()
		return fmt.Errorf("%s was killed, since it did not end in %s", p.command.Args[0], stopTimeout)
	}
	if p.err != nil && !p.killed.Load() {
		return fmt.Errorf("%s: %w", p.command.Args[0], p.err)
	}
	return nil
}

// Kill ends the program on the spot, and waits for it.
func (p *Process) Kill() {
	p.killed.Store(true)
	_ = p.command.Process.Kill() // it may have ended
	<-p.exited
}
