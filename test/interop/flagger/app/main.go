// Command app is the application that Flagger releases in the tests. It responds to every
// request with its version, which is in the environment variable VERSION, and on the path
// /received with the number of requests so far. If FAILS is set, every second request gets
// the status 500. DELAY is how long a response takes.
//
// After SIGTERM, it serves for a few seconds, in which proxies still send requests, and
// asks them to close their connections, as an application on Kubernetes should: a request
// that arrives while a server closes an idle connection is lost.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

const drainTime = 3 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	handler := newHandler(ctx, os.Getenv("VERSION"))
	server := &http.Server{Addr: "127.0.0.1:" + os.Getenv("APP_PORT"), Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { log.Print(server.ListenAndServe()) }()
	<-ctx.Done()
	time.Sleep(drainTime)
	if err := server.Shutdown(context.Background()); err != nil {
		log.Print(err)
	}
}

// newHandler returns the handler for a server that stops when the context ends.
func newHandler(ctx context.Context, version string) http.Handler {
	var received atomic.Int64
	mux := http.NewServeMux()
	delay, _ := time.ParseDuration(os.Getenv("DELAY")) // 0 if it is not set
	fails := os.Getenv("FAILS") != ""
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		number := received.Add(1)
		time.Sleep(delay)
		if fails && number%2 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		fmt.Fprint(w, version)
	})
	mux.HandleFunc("/received", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, received.Load()) })
	return mux
}
