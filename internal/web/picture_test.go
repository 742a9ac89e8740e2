package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

const pictureManifests = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cloudflare-tunnel}
spec: {controllerName: tunnelgateway.dev/controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  listeners: [{name: shop, port: 80, protocol: HTTP, hostname: shop.example.com}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: infra}
spec:
  parentRefs: [{name: shared}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: infra}, spec: {ports: [{port: 80}]}}
`

// pictureEdges returns "label -> label" for each edge in the table of a picture.
func pictureEdges(main node) []string {
	var edges []string
	for _, row := range main.all("tr") {
		for _, span := range row.all("span") {
			if to := span.attribute("data-to"); to != "" {
				edges = append(edges, row.attribute("data-node")+"-> "+to)
			}
		}
	}
	return edges
}

func TestPictureLeadsFromTheGatewayToTheService(t *testing.T) {
	p := planOf(t, pictureManifests)
	want := []string{
		"Gateway infra shared -> Hostname  shop.example.com infra/shared",
		"Hostname  shop.example.com infra/shared-> HTTPRoute infra shop ",
		"HTTPRoute infra shop -> Service infra web ",
	}
	for _, path := range []string{"/picture?gateway=infra%2Fshared&hostname=shop.example.com", "/picture?hostname=SHOP.example.com", "/picture?namespace=infra"} {
		main := open(t, p, path, http.StatusOK)
		if got := pictureEdges(main); !slices.Equal(got, want) {
			t.Errorf("%s: got the edges\n%s\nwant\n%s", path, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, row := range main.all("tr")[1:] {
			link := row.one("a").attribute("href")
			open(t, p, link, http.StatusOK)
		}
	}
}

func TestPictureAsksForAChoice(t *testing.T) {
	main := open(t, planOf(t, pictureManifests), "/picture", http.StatusOK)
	if !strings.Contains(main.text(), "Choose a hostname or a namespace.") || len(main.all("table")) > 0 {
		t.Errorf("got %s", main.text())
	}
}

func TestPictureOfAnUnknownHostnameSuggestsOthers(t *testing.T) {
	main := open(t, planOf(t, pictureManifests), "/picture?hostname=shops.example.com", http.StatusNotFound)
	for _, want := range []string{"No hostname or route has the hostname shops.example.com.", "shop.example.com on infra/shared"} {
		if !strings.Contains(main.text(), want) {
			t.Errorf("the page does not say %q: %s", want, main.text())
		}
	}
	main = open(t, planOf(t, pictureManifests), "/picture?namespace=none&gateway=infra%2Fshared", http.StatusNotFound)
	if want := "No hostname or route concerns the namespace none on Gateway infra/shared."; !strings.Contains(main.text(), want) {
		t.Errorf("the page does not say %q: %s", want, main.text())
	}
}
