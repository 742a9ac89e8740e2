package envoy

// SecretClientCertificate is the name of the secret with the certificate that Envoy
// presents to backends. A rotation changes its content and not its name, so that Envoy
// uses the new certificate for new connections and no cluster changes.
const SecretClientCertificate = "client-certificate"
