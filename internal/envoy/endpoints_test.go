package envoy

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// The API server accepts IPv4 addresses with leading zeros and in IPv6 form. Envoy
// rejects the former, and both must not hide a reserved address.
func TestAddressesAreCanonical(t *testing.T) {
	slice := &discoveryv1.EndpointSlice{
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Port: ptr.To[int32](80)}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"010.0.0.5"}}, {Addresses: []string{"::ffff:10.0.0.6"}},
			{Addresses: []string{"10.0.0.010"}}, {Addresses: []string{"not an address"}},
		},
	}
	isReserved := func(ip string) bool { return ip == "10.0.0.6" }
	var got []string
	assignments, _ := Assign([]EndpointsOf{{Cluster: "c"}}, []*discoveryv1.EndpointSlice{slice}, isReserved)
	for _, locality := range assignments["c"].Endpoints {
		for _, e := range locality.LbEndpoints {
			got = append(got, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
		}
	}
	if len(got) != 2 || got[0] != "10.0.0.10" || got[1] != "10.0.0.5" {
		t.Errorf("addresses %q, want 10.0.0.10 and 10.0.0.5", got)
	}
}

// endpointSlice returns an EndpointSlice for the Service port "web" with the number 8080.
func endpointSlice(changes ...func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("web"), Port: ptr.To[int32](8080)}},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

// endpoint adds an endpoint. A condition that is nil is not set.
func endpoint(ip string, ready, serving, terminating *bool) func(*discoveryv1.EndpointSlice) {
	return func(s *discoveryv1.EndpointSlice) {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: ready, Serving: serving, Terminating: terminating},
		})
	}
}

func isReady(ip string) func(*discoveryv1.EndpointSlice) {
	return endpoint(ip, ptr.To(true), ptr.To(true), ptr.To(false))
}

func isTerminating(ip string) func(*discoveryv1.EndpointSlice) {
	return endpoint(ip, ptr.To(false), ptr.To(true), ptr.To(true))
}

// Envoy connects to the ready endpoints, and without any, to the endpoints that serve
// while they terminate. A Service owner cannot lead it to other addresses.
func TestEnvoyConnectsToTheEndpointsOfTheService(t *testing.T) {
	port := func(change func(*discoveryv1.EndpointPort)) func(*discoveryv1.EndpointSlice) {
		return func(s *discoveryv1.EndpointSlice) { change(&s.Ports[0]) }
	}
	ofType := func(kind discoveryv1.AddressType) func(*discoveryv1.EndpointSlice) {
		return func(s *discoveryv1.EndpointSlice) { s.AddressType = kind }
	}
	type slices = []*discoveryv1.EndpointSlice
	for name, test := range map[string]struct {
		slices slices
		family corev1.IPFamily
		want   string
	}{
		"no slice":                        {nil, "", ""},
		"ready endpoints, in order":       {slices{endpointSlice(isReady("10.0.0.2")), endpointSlice(isReady("10.0.0.1"))}, "", "10.0.0.1:8080 10.0.0.2:8080"},
		"the same endpoint in two slices": {slices{endpointSlice(isReady("10.0.0.1")), endpointSlice(isReady("10.0.0.1"))}, "", "10.0.0.1:8080"},
		"an endpoint without conditions":  {slices{endpointSlice(endpoint("10.0.0.1", nil, nil, nil))}, "", "10.0.0.1:8080"},
		"an endpoint that is not ready":   {slices{endpointSlice(endpoint("10.0.0.1", ptr.To(false), ptr.To(false), ptr.To(false)))}, "", ""},
		"an endpoint that serves without being ready": {
			slices{endpointSlice(endpoint("10.0.0.1", ptr.To(false), ptr.To(true), ptr.To(false)))}, "", "",
		},
		"a ready and a terminating endpoint": {slices{endpointSlice(isTerminating("10.0.0.1"), isReady("10.0.0.2"))}, "", "10.0.0.2:8080"},
		"only terminating endpoints":         {slices{endpointSlice(isTerminating("10.0.0.1")), endpointSlice(isTerminating("10.0.0.2"))}, "", "10.0.0.1:8080 10.0.0.2:8080"},
		"an endpoint that terminates and no longer serves": {
			slices{endpointSlice(endpoint("10.0.0.1", ptr.To(false), ptr.To(false), ptr.To(true)))}, "", "",
		},
		"another port":                      {slices{endpointSlice(isReady("10.0.0.1"), port(func(p *discoveryv1.EndpointPort) { p.Name = ptr.To("admin") }))}, "", ""},
		"an unnamed port":                   {slices{endpointSlice(isReady("10.0.0.1"), port(func(p *discoveryv1.EndpointPort) { p.Name = nil }))}, "", ""},
		"no port number":                    {slices{endpointSlice(isReady("10.0.0.1"), port(func(p *discoveryv1.EndpointPort) { p.Port = nil }))}, "", ""},
		"another protocol":                  {slices{endpointSlice(isReady("10.0.0.1"), port(func(p *discoveryv1.EndpointPort) { p.Protocol = ptr.To(corev1.ProtocolUDP) }))}, "", ""},
		"a port number above 65535":         {slices{endpointSlice(isReady("10.0.0.1"), port(func(p *discoveryv1.EndpointPort) { p.Port = ptr.To[int32](70000) }))}, "", ""},
		"a negative port number":            {slices{endpointSlice(isReady("10.0.0.1"), port(func(p *discoveryv1.EndpointPort) { p.Port = ptr.To[int32](-1) }))}, "", ""},
		"port number 0":                     {slices{endpointSlice(isReady("10.0.0.1"), port(func(p *discoveryv1.EndpointPort) { p.Port = ptr.To[int32](0) }))}, "", ""},
		"no ports":                          {slices{endpointSlice(isReady("10.0.0.1"), func(s *discoveryv1.EndpointSlice) { s.Ports = nil })}, "", ""},
		"the other family":                  {slices{endpointSlice(isReady("10.0.0.1")), endpointSlice(ofType(discoveryv1.AddressTypeIPv6), isReady("2001:db8::1"))}, corev1.IPv4Protocol, "10.0.0.1:8080"},
		"IPv6 first":                        {slices{endpointSlice(isReady("10.0.0.1")), endpointSlice(ofType(discoveryv1.AddressTypeIPv6), isReady("2001:db8::1"))}, corev1.IPv6Protocol, "2001:db8::1:8080"},
		"DNS names":                         {slices{endpointSlice(ofType(discoveryv1.AddressTypeFQDN), isReady("metadata.internal"))}, "", ""},
		"addresses of DNS names":            {slices{endpointSlice(ofType(discoveryv1.AddressTypeFQDN), isReady("10.0.0.1"))}, "", ""},
		"a connector's pod":                 {slices{endpointSlice(isReady("10.0.9.9"), isReady("10.0.0.1"))}, "", "10.0.0.1:8080"},
		"only a connector's pod":            {slices{endpointSlice(isReady("10.0.9.9")), endpointSlice(isTerminating("10.0.0.1"))}, "", "10.0.0.1:8080"},
		"loopback":                          {slices{endpointSlice(isReady("127.0.0.1"), isReady("10.0.0.1"))}, "", "10.0.0.1:8080"},
		"link-local":                        {slices{endpointSlice(isReady("::ffff:169.254.169.254"), isReady("10.0.0.1"))}, "", "10.0.0.1:8080"},
		"multicast and unspecified":         {slices{endpointSlice(isReady("224.0.0.1"), isReady("0.0.0.0"))}, "", ""},
		"a connector's pod that terminates": {slices{endpointSlice(isTerminating("10.0.9.9"))}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			isConnector := func(ip string) bool { return ip == "10.0.9.9" }
			assignments, _ := Assign([]EndpointsOf{{Cluster: "c", PortName: "web", Family: test.family}}, test.slices, isConnector)
			assignment := assignments["c"]
			var got []string
			for _, locality := range assignment.Endpoints {
				for _, e := range locality.LbEndpoints {
					address := e.GetEndpoint().GetAddress().GetSocketAddress()
					got = append(got, fmt.Sprintf("%s:%d", address.GetAddress(), address.GetPortValue()))
				}
			}
			if all := strings.Join(got, " "); all != test.want || assignment.ClusterName != "c" {
				t.Errorf("cluster %s has the endpoints %q, want %q", assignment.ClusterName, all, test.want)
			}
		})
	}
}

// The numbers of Services and pods in docs/performance.md fit the limits.
func TestMeasuredEndpointsFitTheLimits(t *testing.T) {
	for _, test := range []struct{ namespaces, services, pods int }{{1, 5000, 3}, {1, 100, 100}, {5, 500, 100}} {
		all := make([]EndpointsOf, test.services)
		for i := range all {
			all[i].Service.Namespace = fmt.Sprint(i % test.namespaces)
		}
		limitEndpoints(all)
		if all[0].Limit < test.pods {
			t.Errorf("%d Services in %d namespaces have a limit of %d endpoints each, want at least %d", test.services, test.namespaces, all[0].Limit, test.pods)
		}
	}
}
