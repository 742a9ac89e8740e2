package cloudflare

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// counting is a transport that counts the requests and responds to them.
type counting int

func (c *counting) RoundTrip(*http.Request) (*http.Response, error) {
	*c++
	return jsonResponse(http.StatusOK, `{"success":true,"result":[]}`), nil
}

func (c *counting) open(t *testing.T, client *Client, account, token string) *Provider {
	t.Helper()
	return open(t, client, Options{AccountID: account, APIToken: token, Transport: c})
}

// drain lists tunnels until the budget rejects a call, and returns how often it listed
// them.
func drain(t *testing.T, p *Provider) (lists int) {
	t.Helper()
	for {
		_, err := p.Tunnels(provider.WithPriority(t.Context(), provider.PriorityStart))
		if _, limited := provider.RetryAfter(err); limited {
			return lists
		}
		if err != nil {
			t.Fatal(err)
		}
		lists++
	}
}

func TestProvidersWithOneTokenShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var client Client
		var requests counting
		if drain(t, requests.open(t, &client, account, "token")) == 0 {
			t.Fatal("a full budget permits no request")
		}
		requests = 0
		if drain(t, requests.open(t, &client, "another-account", "token")); requests > 0 {
			t.Errorf("%d requests of a second provider with an empty budget, want none", requests)
		}
		if drain(t, requests.open(t, &client, account, "another-token")) == 0 {
			t.Error("two tokens share a budget")
		}
		if drain(t, requests.open(t, &Client{}, account, "token")) == 0 {
			t.Error("two Clients share a budget")
		}
	})
}

func TestClientForgetsUnusedBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var client Client
		var requests counting
		// When the account is opened again, as after its Secret changes, the budget stays
		// blocked.
		drain(t, requests.open(t, &client, account, "used"))
		client.budget(hashOf("used")).block(provider.MaxRetryAfter)
		drain(t, requests.open(t, &client, account, "unused"))
		advance(provider.MaxRetryAfter - time.Second)
		requests = 0
		if drain(t, requests.open(t, &client, account, "used")); requests > 0 {
			t.Errorf("%d requests during a block, want none", requests)
		}
		for range 2 {
			advance(budgetLifetime - provider.MaxRetryAfter)
			drain(t, requests.open(t, &client, account, "used"))
		}
		if _, found := client.budgets[hashOf("unused")]; found || len(client.budgets) != 1 {
			t.Errorf("%d budgets after the lifetime of one of two, want 1", len(client.budgets))
		}
	})
}

// A call in progress ends before its budget does, and so does the block that it can cause.
func TestBudgetsOutliveCallsAndBlocks(t *testing.T) {
	if end := provider.CallTimeout + provider.MaxRetryAfter + requestBurst*requestInterval; end > budgetLifetime {
		t.Errorf("a call can affect its budget for %s, longer than its lifetime of %s", end, budgetLifetime)
	}
}
