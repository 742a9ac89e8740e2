package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// visitor sends requests over one connection.
type visitor struct {
	client  *http.Client
	address string
}

func newVisitor(address string) *visitor {
	return &visitor{&http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}, Timeout: time.Minute}, address}
}

// visit returns the answer to a request for the hostname.
func (v *visitor) visit(ctx context.Context, hostname string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+v.address+"/", http.NoBody)
	if err != nil {
		return "", err
	}
	request.Host = hostname
	response, err := v.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s returned %d: %.200s", hostname, response.StatusCode, body)
	}
	return string(body), err
}

// sample is one request.
type sample struct {
	start time.Time
	took  time.Duration
}

// load is requests for random hostnames over several connections.
type load struct {
	Connections int
	Rate        int // requests per second; 0 sends the next request immediately
	Hostnames   int
	// Popular is the number of hostnames that get requests, spread over all; 0 means all.
	Popular int
}

// next returns the hostname for the next request.
func (l load) next() string {
	if l.Popular == 0 || l.Popular > l.Hostnames {
		return hostname(rand.IntN(l.Hostnames)) // #nosec G404 -- a sample
	}
	return hostname(rand.IntN(l.Popular) * (l.Hostnames / l.Popular)) // #nosec G404 -- a sample
}

// run sends requests until the context ends. It fails if an answer is not 200.
func (l load) run(ctx context.Context, address string) ([]sample, error) {
	var (
		all     []sample
		failure error
		mu      sync.Mutex
		running sync.WaitGroup
	)
	for c := range l.Connections {
		running.Go(func() {
			samples, err := l.connection(ctx, address, c)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, samples...)
			if failure == nil {
				failure = err
			}
		})
	}
	running.Wait()
	return all, failure
}

// connection sends the requests on the connection with this index. With a rate, a request
// that is late because the previous one was slow counts from the time at which it was
// due.
func (l load) connection(ctx context.Context, address string, index int) (samples []sample, err error) {
	v := newVisitor(address)
	defer v.client.CloseIdleConnections()
	var interval time.Duration
	due := time.Now()
	if l.Rate > 0 {
		interval = time.Duration(l.Connections) * time.Second / time.Duration(l.Rate)
		due = due.Add(interval * time.Duration(index) / time.Duration(l.Connections))
	}
	for {
		if l.Rate == 0 {
			due = time.Now()
		}
		select {
		case <-ctx.Done():
			return samples, nil
		case <-time.After(time.Until(due)):
		}
		_, err := v.visit(context.WithoutCancel(ctx), l.next())
		if err != nil {
			return samples, err
		}
		samples = append(samples, sample{due, time.Since(due)})
		due = due.Add(interval)
	}
}

// percentile returns the duration that the given share of the samples does not exceed.
func percentile(samples []sample, share float64) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.SortedFunc(slices.Values(samples), func(a, b sample) int { return int(a.took - b.took) })
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)].took
}
