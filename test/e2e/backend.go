package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tunnel-gateway/tunnel-gateway/test/load"
)

// The backend's paths, in addition to the paths in [load.Backend].
const (
	echoPath   = "/echo"
	eventsPath = "/events"
	uploadPath = "/upload"
)

// The backend's gRPC methods.
const (
	callMethod   = "/e2e.Echo/Call"   // returns the message, and the number of messages in the trailer
	streamMethod = "/e2e.Echo/Stream" // returns each message at once
	failMethod   = "/e2e.Echo/Fail"   // returns failure
)

// failure is the status of [failMethod].
var failure = status.Error(codes.DataLoss, "100% lost")

// backendHeader names the backend in each response.
const backendHeader = "E2e-Backend"

// echo describes a request as the backend got it.
type echo struct {
	Scheme  string   // X-Forwarded-Proto
	Proto   string   // the protocol, such as "HTTP/1.1"
	Headers []string // the names, sorted
}

// upload describes a request body that the backend got.
type upload struct {
	Length  int64  // the Content-Length, or -1
	Size    int64  // in bytes
	Content string // SHA-256, in hexadecimal
}

// newBackend returns the handler for the backend with the name.
func newBackend(name string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(echoPath, handleEcho)
	mux.HandleFunc(eventsPath, handleEvents)
	mux.HandleFunc(uploadPath, handleUpload)
	mux.Handle("/", load.Backend())
	calls := grpc.NewServer(grpc.UnknownServiceHandler(handleCall))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && r.Header.Get("Content-Type") == "application/grpc" {
			calls.ServeHTTP(w, r)
			return
		}
		w.Header().Set(backendHeader, name)
		mux.ServeHTTP(w, r)
	})
}

func handleEcho(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(echo{r.Header.Get("X-Forwarded-Proto"), r.Proto, slices.Sorted(maps.Keys(r.Header))})
}

// handleEvents sends the number of server-sent events in the query, one per interval. Each
// contains its number and the time, in nanoseconds since 1970.
func handleEvents(w http.ResponseWriter, r *http.Request) {
	count, err := strconv.Atoi(r.FormValue("count"))
	if err != nil {
		http.Error(w, "count must be a number", http.StatusBadRequest)
		return
	}
	interval, err := time.ParseDuration(r.FormValue("interval"))
	if err != nil || interval <= 0 {
		http.Error(w, "interval must be a duration", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for i := range count {
		_, _ = fmt.Fprintf(w, "data: %d %d\n\n", i, time.Now().UnixNano())
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
	}
}

func handleUpload(w http.ResponseWriter, r *http.Request) {
	sum := sha256.New()
	size, err := io.Copy(sum, r.Body)
	if err != nil {
		return // the visitor has disconnected
	}
	_ = json.NewEncoder(w).Encode(upload{r.ContentLength, size, hex.EncodeToString(sum.Sum(nil))})
}

func handleCall(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	if method == failMethod {
		return failure
	}
	for count := 0; ; count++ {
		message := &wrapperspb.StringValue{}
		if err := stream.RecvMsg(message); errors.Is(err, io.EOF) {
			stream.SetTrailer(metadata.Pairs("count", strconv.Itoa(count)))
			return nil
		} else if err != nil {
			return err
		}
		if err := stream.SendMsg(message); err != nil {
			return err
		}
	}
}
