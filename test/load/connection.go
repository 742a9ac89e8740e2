package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/websocket"
)

// errOpen is returned for a WebSocket or a stream that could not be opened.
var errOpen = errors.New("not opened")

// keepOpen uses a WebSocket or a stream, and opens it again when it breaks. use returns when
// the load stops or the connection breaks, and calls used after each message.
func (l *Load) keepOpen(kind string, use func(used func()) error) {
	for l.ctx.Err() == nil {
		isOpen := false
		err := use(func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.result.Messages++; !isOpen {
				isOpen = true
				l.open++
			}
		})
		if isOpen {
			l.mu.Lock()
			l.open--
			l.mu.Unlock()
		}
		switch {
		case l.ctx.Err() != nil:
			return
		case errors.Is(err, errOpen):
			l.fail(unopened, kind, err)
		default:
			l.fail(broken, kind, err)
		}
		l.pause(reopenDelay)
	}
}

// useWebSocket sends a message at each beat, which the backend returns.
func (l *Load) useWebSocket(used func()) error {
	config, err := websocket.NewConfig("ws://"+l.o.Host+webSocketPath, "http://"+l.o.Host)
	if err != nil {
		return err
	}
	conn, err := l.connect()
	if err != nil {
		return fmt.Errorf("%w: %w", errOpen, err)
	}
	defer conn.Close() //nolint:errcheck // the result does not matter
	_ = conn.SetDeadline(time.Now().Add(timeout))
	socket, err := websocket.NewClient(config, conn)
	if err != nil {
		return fmt.Errorf("%w: %w", errOpen, err)
	}
	for {
		_ = conn.SetDeadline(time.Now().Add(timeout)) // fails only if the connection is closed
		if err := websocket.Message.Send(socket, "message"); err != nil {
			return err
		}
		var returned string
		if err := websocket.Message.Receive(socket, &returned); err != nil {
			return err
		}
		if returned != "message" {
			return fmt.Errorf("unexpected message %.100q", returned)
		}
		used()
		if !l.pause(beat) {
			return nil
		}
	}
}

// connect opens a connection to the server.
func (l *Load) connect() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(l.ctx, timeout)
	defer cancel()
	conn, err := l.o.Dial(ctx, "tcp", l.o.Address)
	if err != nil || l.o.TLS == nil {
		return conn, err
	}
	return tls.Client(conn, l.o.TLS), nil
}

// useStream reads the lines that the backend sends.
func (l *Load) useStream(used func()) error {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	silent := time.AfterFunc(timeout, cancel)
	defer silent.Stop()
	response, err := l.do(ctx, http.MethodGet, streamPath, "")
	if err != nil {
		return fmt.Errorf("%w: %w", errOpen, err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if lines.Text() != streamPath {
			return fmt.Errorf("unexpected line %.100q", lines.Text())
		}
		silent.Reset(timeout)
		used()
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errors.New("the stream ended")
}
