package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/test/netns"
)

// bedVariable is the environment variable with a bed's options, as JSON. A program with
// this variable runs the bed: it reads requests from its standard input, and writes a response
// to each.
const bedVariable = "BENCH_BED"

// The measurements that a bed offers.
const (
	measureStart    = "start"
	measureMemory   = "memory"
	measureRequests = "requests"
	measureChanges  = "changes"
	measureVisits   = "visits"
	measureRestart  = "restart"
)

// request asks a bed for a measurement.
type request struct {
	Measure  string
	Load     load
	Duration time.Duration
	Changes  int
	Profile  string
}

// response is the result of a measurement, or an error.
type response struct {
	Error  string
	Result json.RawMessage
}

// bedProcess is a bed in a process of its own.
type bedProcess struct {
	options bedOptions
	command *exec.Cmd
	input   io.WriteCloser
	output  *json.Decoder
}

// startBedProcess starts a bed, and returns when it serves every hostname.
func startBedProcess(ctx context.Context, o bedOptions) (*bedProcess, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	p := &bedProcess{options: o, command: exec.Command(program)} // #nosec G204 -- this program
	p.command.Env, p.command.Stderr = append(os.Environ(), bedVariable+"="+string(settings)), os.Stderr
	// A signal from the terminal reaches only the parent process, which stops the beds.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.input, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.output = json.NewDecoder(output)
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	if err := p.measure(ctx, request{Measure: measureStart}, nil); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// measure sends a request to the bed and decodes the result.
func (p *bedProcess) measure(ctx context.Context, r request, result any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := json.NewEncoder(p.input).Encode(r); err != nil {
		return err
	}
	received := make(chan error, 1)
	var answer response
	go func() { received <- p.output.Decode(&answer) }()
	select {
	case <-ctx.Done():
		return errors.Join(ctx.Err(), p.command.Process.Signal(syscall.SIGTERM))
	case err := <-received:
		if err != nil {
			return fmt.Errorf("the bed has ended: %w", err)
		}
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer.Result, result)
}

// stop ends the bed, which stops all its programs.
func (p *bedProcess) stop() error {
	return errors.Join(p.input.Close(), p.command.Wait())
}

// runBed runs the bed with the options until its standard input ends, and returns the exit
// status.
func runBed(settings string) int {
	var o bedOptions
	if err := json.Unmarshal([]byte(settings), &o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return netns.Run(nil, func() int {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if err := serveBed(ctx, o); err != nil {
			fmt.Fprintln(os.Stderr, "bench: stop the bed:", err)
			return 1
		}
		return 0
	})
}

// serveBed responds to requests until the input or the context ends, and stops the bed.
func serveBed(ctx context.Context, o bedOptions) error {
	b := &bed{bedOptions: o, addresses: map[string]string{}}
	requests, ended := make(chan request), make(chan struct{})
	defer close(ended)
	go func() {
		defer close(requests)
		for input := json.NewDecoder(os.Stdin); ; {
			var r request
			if input.Decode(&r) != nil {
				return
			}
			select {
			case requests <- r:
			case <-ended:
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return b.stop()
		case r, ok := <-requests:
			if !ok {
				return b.stop()
			}
			if err := json.NewEncoder(os.Stdout).Encode(b.respond(ctx, r)); err != nil {
				return errors.Join(err, b.stop())
			}
		}
	}
}

// respond does what the request asks for.
func (b *bed) respond(ctx context.Context, r request) response {
	measures := map[string]func(context.Context, request) (any, error){
		measureStart:    func(ctx context.Context, _ request) (any, error) { return nil, b.start(ctx) },
		measureMemory:   func(context.Context, request) (any, error) { return b.memory() },
		measureRequests: b.measureRequests,
		measureChanges:  b.measureChanges,
		measureVisits:   func(ctx context.Context, _ request) (any, error) { return nil, b.visitServices(ctx) },
		measureRestart:  func(ctx context.Context, _ request) (any, error) { return b.restart(ctx) },
	}
	result, err := measures[r.Measure](ctx, r)
	if err != nil {
		return response{Error: fmt.Sprintf("%s: %v", r.Measure, err)}
	}
	text, err := json.Marshal(result)
	if err != nil {
		return response{Error: err.Error()}
	}
	return response{Result: text}
}
