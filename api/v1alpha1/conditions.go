package v1alpha1

// The types of the conditions of a Tunnel.
const (
	// TunnelReady is True when the tunnel serves its Gateway as desired.
	TunnelReady = "Ready"
	// TunnelCredentialsValid is True when Cloudflare accepts the API token.
	TunnelCredentialsValid = "CredentialsValid"
	// TunnelConfigurationApplied is True when the desired configuration is in
	// effect.
	TunnelConfigurationApplied = "ConfigurationApplied"
	// TunnelConnectorsReady is True when the connectors are connected.
	TunnelConnectorsReady = "ConnectorsReady"
	// TunnelDataPlaneApplied is True when the data plane of the settings serves the Gateway.
	TunnelDataPlaneApplied = "DataPlaneApplied"
)
