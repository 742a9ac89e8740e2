package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
)

// statusNoRecord is what Cloudflare returns for a hostname without a DNS record.
const statusNoRecord = 530

// requests are the requests that the demo sends, with the expected status and the
// Service that must answer. service is empty if no Service must answer.
var requests = []struct {
	host, path string
	status     int
	service    string
}{
	{"shared.example.com", "/", http.StatusOK, "home.platform"},
	{"team-a.example.com", "/", http.StatusOK, "web.team-a"},
	{"team-a.example.com", "/api/orders", http.StatusOK, "api.team-a"},
	{"team-a.example.com", "/apiary", http.StatusOK, "web.team-a"},
	{"shop.team-b.example.com", "/", http.StatusOK, "shop.team-b"},
	{"blog.team-b.example.com", "/", statusNoRecord, ""},
	{"unknown.example.com", "/", statusNoRecord, ""},
}

// checkRequests sends the requests through the tunnel and prints the responses. It fails
// if a response is not the expected one.
func checkRequests(ctx context.Context, address string) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(out, "\nREQUEST\tANSWER\tRESULT")
	failed := 0
	for _, want := range requests {
		status, body, err := get(ctx, address+want.path, want.host)
		if err != nil {
			return err
		}
		result := "ok"
		if status != want.status || !strings.HasPrefix(body, want.service) {
			failed++
			result = fmt.Sprintf("FAILED, want %d from %q", want.status, want.service)
		}
		fmt.Fprintf(out, "%s%s\t%d %s\t%s\n", want.host, want.path, status, strings.TrimSpace(body), result)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d requests failed", failed, len(requests))
	}
	fmt.Printf("\nAll %d requests returned the expected answer.\n", len(requests))
	return nil
}

func get(ctx context.Context, url, host string) (int, string, error) {
	return send(ctx, url, host, nil)
}

func send(ctx context.Context, url, host string, header http.Header) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	request.Host = host
	maps.Copy(request.Header, header)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	return response.StatusCode, string(body), err
}
