package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

const (
	teamName = "demo"
	// protectedHostname is the hostname of the platform team's listener.
	protectedHostname = "shared.example.com"
	// employee is a user whom the policy employees allows.
	employee = "ada@example.com"
)

// policyID is the ID of the policy employees at Cloudflare.
const policyID = "5f0c1d9e-employees"

// newApplications returns the demo's account without applications, and with the policy
// employees.
func newApplications() *access.Database {
	database := access.New(access.Options{TeamName: teamName})
	database.AddPolicy(accountID, access.Policy{
		ID: policyID, Name: "Employees", Decision: "allow",
		Include: []json.RawMessage{json.RawMessage(`{"email_domain":{"domain":"example.com"}}`)},
	})
	return database
}

// newAccess returns the settings of the demo's GatewayClasses for applications. All classes
// of an account need the same. The delay is short, so that a hostname whose AccessPolicy is
// deleted opens while a user watches.
func newAccess() *v1alpha1.AccessApplications {
	return &v1alpha1.AccessApplications{
		Applications: new(v1alpha1.ApplicationsManaged), TeamName: new(teamName), OpeningDelay: new(v1alpha1.Duration("5s")),
		Policies: []v1alpha1.CataloguePolicy{{Name: "employees", ID: policyID}},
	}
}

// checkAccess protects one hostname with an AccessPolicy, and sends requests without a login
// and as an employee, through the edge and from behind it.
func (d *demo) checkAccess(ctx context.Context) error {
	printStep("protecting %s with an AccessPolicy", protectedHostname)
	policy := &v1alpha1.AccessPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "employees"},
		Spec: v1alpha1.AccessPolicySpec{
			TargetRefs: []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{
				LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Group: gatewayv1.GroupName, Kind: "Gateway", Name: "shared"},
				SectionName:                new(gatewayv1.SectionName("shared")),
			}},
			Policies: []v1alpha1.PolicyName{"employees"},
		},
	}
	if err := d.client.Create(ctx, policy); err != nil {
		return err
	}
	if err := d.waitUntilProtected(ctx, policy); err != nil {
		return err
	}
	if err := d.printApplications(); err != nil {
		return err
	}
	return d.checkLogin(ctx)
}

// waitUntilProtected waits until the policy is programmed for each Gateway.
func (d *demo) waitUntilProtected(ctx context.Context, policy *v1alpha1.AccessPolicy) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := d.client.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
			return false, err
		}
		ancestors := policy.Status.Ancestors
		return len(ancestors) > 0 && !slices.ContainsFunc(ancestors, func(a gatewayv1.PolicyAncestorStatus) bool {
			return !conditions.TypeProgrammed.IsTrue(a.Conditions)
		}), nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s is protected: %w", protectedHostname, err)
	}
	return nil
}

// printApplications prints the applications that the controller has created.
func (d *demo) printApplications() error {
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprint(out, "\nThe controller has created these applications of Cloudflare Access:\n\nHOSTNAME\tPOLICIES\tTAGS\n")
	for _, app := range d.access.Applications(accountID) {
		var policies []string
		for _, p := range app.Policies {
			policies = append(policies, p.Name)
		}
		fmt.Fprintf(out, "%s\t%s\t%s\n", strings.Join(app.Domains, ", "), strings.Join(policies, ", "), strings.Join(app.Tags, ", "))
	}
	return out.Flush()
}

// checkLogin sends requests for the protected hostname, and fails unless the edge asks for a
// login, and the connector for the token.
func (d *demo) checkLogin(ctx context.Context) error {
	session, err := d.edge.Login(accountID, protectedHostname, employee)
	if err != nil {
		return err
	}
	id, err := d.tunnelOf(ctx, "platform", "shared")
	if err != nil {
		return err
	}
	edge, connector := d.edge.Visitors(), d.edge.Tunnel(id)
	out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprint(out, "\nREQUEST FOR "+protectedHostname+"\tANSWER\tRESULT\n")
	failed := 0
	for _, r := range []struct {
		name          string
		handler       http.Handler
		header, value string
		want          int
	}{
		{"through the edge, without a login", edge, "", "", http.StatusFound},
		{"through the edge, after " + employee + " has logged in", edge, "Cookie", session.Cookie(), http.StatusOK},
		{"behind the edge, without a token", connector, "", "", http.StatusForbidden},
		{"behind the edge, with a token of another application", connector, assertion, simulator.Claims{Team: teamName, Audience: []string{"other"}}.Sign(), http.StatusForbidden},
	} {
		answer, result := visit(ctx, r.handler, r.header, r.value), "ok"
		if answer.Code != r.want {
			failed++
			result = fmt.Sprintf("FAILED, want %d", r.want)
		}
		fmt.Fprintf(out, "%s\t%d %s\t%s\n", r.name, answer.Code, shown(answer), result)
	}
	if err := out.Flush(); err != nil || failed == 0 {
		return err
	}
	return fmt.Errorf("%d requests for the protected hostname failed", failed)
}

// assertion is the header with which the edge sends a token to the connectors.
const assertion = "Cf-Access-Jwt-Assertion"

// visit sends a request for the protected hostname to the handler.
func visit(ctx context.Context, handler http.Handler, header, value string) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://"+protectedHostname+"/", http.NoBody)
	if header != "" {
		request.Header.Set(header, value)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer
}

// shown returns where an answer leads, or its text.
func shown(answer *httptest.ResponseRecorder) string {
	if location := answer.Header().Get("Location"); location != "" {
		return location
	}
	return strings.TrimSpace(answer.Body.String())
}

// tunnelOf returns the ID of the Gateway's tunnel.
func (d *demo) tunnelOf(ctx context.Context, namespace, name string) (string, error) {
	g := &gatewayv1.Gateway{}
	if err := d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, g); err != nil {
		return "", err
	}
	for _, address := range g.Status.Addresses {
		if id, ok := strings.CutSuffix(address.Value, ".cfargotunnel.com"); ok {
			return id, nil
		}
	}
	return "", fmt.Errorf("the Gateway %s/%s has no tunnel address", namespace, name)
}
