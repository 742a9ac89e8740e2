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
	// minBackoff and maxBackoff limit the wait between two attempts to connect. The
	// wait doubles after each failed attempt.
	minBackoff = 50 * time.Millisecond
	maxBackoff = time.Second
	// minUnregister is how long the connector waits at least for the edge when it
	// unregisters, even with a shorter grace period.
	minUnregister = time.Second
	// maxErrorSize limits an error text from the edge, in bytes.
	maxErrorSize = 1 << 10
)

// connector is one connector with its own ID.
type connector struct {
	settings
	id        string
	client    *http.Client
	connected atomic.Bool
}

func newConnector(s settings) *connector {
	// Each attempt uses a new connection, and no proxy.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return &connector{settings: s, id: uuid.NewString(), client: client}
}

// errDisconnected reports that the edge closed the connection.
var errDisconnected = errors.New("the edge closed the connection")

// run connects, and reconnects whenever the connection ends, until the context is
// canceled.
func (c *connector) run(ctx context.Context) {
	wait := minBackoff
	for ctx.Err() == nil {
		connected, err := c.connectOnce(ctx)
		if ctx.Err() != nil {
			if connected && err != nil {
				log.Printf("failed to unregister: %v", err)
			}
			break
		}
		if connected {
			wait = minBackoff
		}
		log.Printf("not connected, retrying in %s: %v", wait, err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, maxBackoff)
	}
	log.Print("stopped")
}

// errGracePeriod reports that requests were in flight when the grace period ended.
var errGracePeriod = errors.New("requests were in flight at the end of the grace period")

// connectOnce connects and stays connected until the edge closes the connection or
// the context is canceled. When the context is canceled, it unregisters, and
// returns an error if the edge does not confirm within the grace period that the
// requests in flight have ended. connected reports whether the edge accepted the
// connector.
func (c *connector) connectOnce(ctx context.Context) (connected bool, err error) {
	body, writer := io.Pipe() // closing the writer unregisters
	defer func() { _ = writer.Close() }()
	connection, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)
	defer context.AfterFunc(ctx, func() {
		c.connected.Store(false)
		_ = writer.Close()
		time.AfterFunc(max(c.grace, minUnregister), func() { abort(errGracePeriod) })
	})()
	url := c.edge.JoinPath("connect").String()
	request, err := http.NewRequestWithContext(connection, http.MethodPost, url, body) // #nosec G704 -- the environment sets the URL
	if err != nil {
		return false, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Connector-Id", c.id)
	if c.host != "" {
		request.Header.Set("Connector-Host", c.host)
	}
	response, err := c.client.Do(request) // #nosec G704 -- as above
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorSize)) // a partial text is enough
		return false, fmt.Errorf("refused with %d: %s", response.StatusCode, strings.TrimSpace(string(text)))
	}
	c.connected.Store(true)
	defer c.connected.Store(false)
	if ctx.Err() != nil { // it may have been canceled before the value was set
		c.connected.Store(false)
	}
	log.Printf("connected as %s", c.id) // #nosec G706 -- newConnector generated the UUID
	_, err = io.Copy(io.Discard, response.Body)
	if err == nil && ctx.Err() == nil {
		err = errDisconnected
	}
	return true, err
}
