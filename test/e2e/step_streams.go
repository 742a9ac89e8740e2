package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"golang.org/x/net/websocket"
)

// maxDelay is the time in which a message arrives.
const maxDelay = 5 * time.Second

// useWebSocket exchanges messages over a WebSocket.
func (s *scenario) useWebSocket(ctx context.Context) (string, error) {
	const messages = 10
	host := s.host(webHost)
	config, err := websocket.NewConfig("wss://"+host+"/websocket", "https://"+host)
	if err != nil {
		return "", err
	}
	conn, err := s.visitors.dial(ctx, "tcp", host+":443")
	if err != nil {
		return "", err
	}
	secure := tls.Client(conn, s.visitors.tls(host))
	defer secure.Close() //nolint:errcheck // it has no more data
	_ = secure.SetDeadline(time.Now().Add(maxDelay))
	socket, err := websocket.NewClient(config, secure)
	if err != nil {
		s.observe("opening", "failed")
		return "", fmt.Errorf("open the WebSocket: %w", err)
	}
	s.observe("opening", resultOK)
	for i := range messages {
		_ = secure.SetDeadline(time.Now().Add(maxDelay)) // fails only if the connection is closed
		want, got := fmt.Sprintf("message %d", i), ""
		if err := errors.Join(websocket.Message.Send(socket, want), websocket.Message.Receive(socket, &got)); err != nil {
			return "", fmt.Errorf("%s: %w", want, err)
		}
		if got != want {
			return "", fmt.Errorf("got %.100q, want %q", got, want)
		}
	}
	return fmt.Sprintf("%d messages in both directions", messages), nil
}

// receiveEvents receives server-sent events, and checks that each arrives when it was sent.
func (s *scenario) receiveEvents(ctx context.Context) (string, error) {
	interval := min(time.Second, s.events/10)
	count := int(s.events / interval)
	ctx, cancel := context.WithTimeout(ctx, 2*s.events+maxDelay)
	defer cancel()
	client := s.visitors.client()
	defer client.CloseIdleConnections()
	url := fmt.Sprintf("https://%s%s?count=%d&interval=%s", s.host(webHost), eventsPath, count, interval)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d", response.StatusCode)
	}
	s.observe("headers of the response", headerNames(response.Header)...)
	late, err := readEvents(response.Body, count)
	if err != nil {
		return "", err
	}
	// A proxy that collects a response delays its beginning until the stream ends.
	if limit := min(maxDelay, s.events/2); late > limit {
		s.observe("events", "late")
		return "", fmt.Errorf("an event arrived %s late", late.Round(time.Millisecond))
	}
	s.observe("events", "at once")
	return fmt.Sprintf("%d events in %s, at most %s late", count, s.events, late.Round(time.Millisecond)), nil
}

// readEvents reads the events from [handleEvents]. It returns how late an event was at most.
func readEvents(body io.Reader, count int) (late time.Duration, err error) {
	lines := bufio.NewScanner(body)
	next := 0
	for lines.Scan() {
		if lines.Text() == "" {
			continue
		}
		var number int
		var sent int64
		if _, err := fmt.Sscanf(lines.Text(), "data: %d %d", &number, &sent); err != nil || number != next {
			return 0, fmt.Errorf("got %.100q, want event %d", lines.Text(), next)
		}
		late = max(late, time.Since(time.Unix(0, sent)))
		next++
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("after %d of %d events: %w", next, count, err)
	}
	if next < count {
		return 0, fmt.Errorf("the stream ended after %d of %d events", next, count)
	}
	return late, nil
}

// uploadFile sends a file, and checks that the backend got it.
func (s *scenario) uploadFile(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	sum := sha256.New()
	content := io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{}), s.upload), sum)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+s.host(webHost)+uploadPath, content)
	if err != nil {
		return "", err
	}
	request.ContentLength = s.upload
	client := s.visitors.client()
	defer client.CloseIdleConnections()
	start := time.Now()
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	s.observe("status", fmt.Sprint(response.StatusCode))
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil || response.StatusCode != http.StatusOK {
		return "", errors.Join(err, errors.New(answer{status: response.StatusCode, body: string(body)}.String()))
	}
	var got upload
	if err := json.Unmarshal(body, &got); err != nil {
		return "", fmt.Errorf("the answer is not the backend's: %w", err)
	}
	if got.Size != s.upload || got.Content != hex.EncodeToString(sum.Sum(nil)) {
		return "", fmt.Errorf("the backend got %d bytes with the SHA-256 %s, want %d with %x", got.Size, got.Content, s.upload, sum.Sum(nil))
	}
	framing := "Content-Length"
	if got.Length < 0 {
		framing = "chunked"
	}
	s.observe("framing at the backend", framing)
	return fmt.Sprintf("%d MB in %s", s.upload/megabyte, time.Since(start).Round(10*time.Millisecond)), nil
}

// megabyte is Cloudflare's unit for the limit of uploads.
const megabyte = 1_000_000
