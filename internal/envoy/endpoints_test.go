package envoy

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// The API server accepts IPv4 addresses with leading zeros and in the form of IPv6. Envoy
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
	assignment, _ := Assign(EndpointsOf{Cluster: "c"}, []*discoveryv1.EndpointSlice{slice}, isReserved)
	for _, locality := range assignment.Endpoints {
		for _, e := range locality.LbEndpoints {
			got = append(got, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
		}
	}
	if len(got) != 2 || got[0] != "10.0.0.10" || got[1] != "10.0.0.5" {
		t.Errorf("addresses %q, want 10.0.0.10 and 10.0.0.5", got)
	}
}
