package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

const (
	// shortestWait and longestWait are between two attempts to connect; it doubles
	// from the one to the other.
	shortestWait = 50 * time.Millisecond
	longestWait  = time.Second
	// patience is how long the edge has to take the farewell.
	patience = 5 * time.Second
	// longestRefusal is how many bytes of a refusal are read.
	longestRefusal = 1 << 10
)

// connector is one process of the connector, under an id of its own.
type connector struct {
	settings
	id        string
	client    *http.Client
	connected atomic.Bool
}

func newConnector(s settings) *connector {
	// One connection per attempt, and never through a proxy.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return &connector{settings: s, id: uuid.NewString(), client: client}
}

// errCutOff is the end of a connection in good order that nobody here wanted.
var errCutOff = errors.New("the edge ended the connection")

// run connects, again and again, until the context ends.
func (c *connector) run(ctx context.Context) {
	wait := shortestWait
	for ctx.Err() == nil {
		connected, err := c.hold(ctx)
		if ctx.Err() != nil {
			if connected && err != nil {
				log.Printf("no farewell: %v", err)
			}
			break
		}
		if connected {
			wait = shortestWait
		}
		log.Printf("not connected, next attempt in %s: %v", wait, err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, longestWait)
	}
	log.Print("ended")
}

// hold connects, and stays connected until the connection ends or the context
// does; then it says goodbye, and has an error when the edge does not answer. It
// reports whether it was connected at all.
func (c *connector) hold(ctx context.Context) (connected bool, err error) {
	body, farewell := io.Pipe()
	defer func() { _ = farewell.Close() }()
	connection, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	defer context.AfterFunc(ctx, func() {
		_ = farewell.Close()
		time.AfterFunc(patience, cut)
	})()
	to := c.edge.JoinPath("connect").String()
	request, err := http.NewRequestWithContext(connection, http.MethodPost, to, body) // #nosec G704 -- whoever starts it says where to
	if err != nil {
		return false, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Connector-Id", c.id)
	answer, err := c.client.Do(request) // #nosec G704 -- as above
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, longestRefusal)) // what there is of it
		return false, fmt.Errorf("refused with %d: %s", answer.StatusCode, strings.TrimSpace(string(text)))
	}
	c.connected.Store(true)
	defer c.connected.Store(false)
	log.Printf("connected as %s", c.id) // #nosec G706 -- a UUID made here
	_, err = io.Copy(io.Discard, answer.Body)
	if err == nil && ctx.Err() == nil {
		err = errCutOff
	}
	return true, err
}
