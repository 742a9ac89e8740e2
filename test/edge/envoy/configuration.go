package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Names in a deployed Envoy's configuration.
const (
	// xdsCluster names the cluster that is the controller.
	xdsCluster = "xds"
	// programSizeLimit is the limit above which Envoy rejects expressions.
	programSizeLimit = "re2.max_program_size.error_level"
)

// replacements are the values that differ between a Pod and this machine.
type replacements struct {
	ports   map[int]int // of the listeners
	pod     *pod        // nil if Envoy shares the machine's network
	xdsHost string
	xdsPort int
	caFile  string
	// settings are the settings for the static listeners.
	settings v1alpha1.EnvoyProxy
	// maxProgramSize replaces the limit on expressions, unless it is 0.
	maxProgramSize uint64
}

func newReplacements(getenv func(string) string) (replacements, error) {
	r := replacements{ports: map[int]int{}, caFile: getenv("CA_FILE")}
	for port, variable := range map[int]string{envoy.PortOpen: "OPEN_PORT", envoy.PortProtected: "PROTECTED_PORT", envoy.PortReady: "READY_PORT"} {
		number, err := strconv.ParseUint(getenv(variable), 10, 16)
		if err != nil {
			return r, fmt.Errorf("%s: %w", variable, err)
		}
		r.ports[port] = int(number)
	}
	if ports := getenv("OUTBOUND_PORTS"); ports != "" {
		outbound, err := parsePorts(ports)
		if err != nil {
			return r, err
		}
		r.pod = &pod{inbound: r.ports, outbound: outbound}
	}
	host, port, err := net.SplitHostPort(getenv("XDS_ADDRESS"))
	if err != nil {
		return r, fmt.Errorf("XDS_ADDRESS: %w", err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return r, fmt.Errorf("XDS_ADDRESS: %w", err)
	}
	r.xdsHost, r.xdsPort = host, int(number)
	if r.caFile == "" {
		return r, errors.New("CA_FILE is required")
	}
	if settings := getenv("SETTINGS"); settings != "" {
		if err := json.Unmarshal([]byte(settings), &r.settings); err != nil {
			return r, fmt.Errorf("SETTINGS: %w", err)
		}
	}
	if limit := getenv("MAX_PROGRAM_SIZE"); limit != "" {
		if r.maxProgramSize, err = strconv.ParseUint(limit, 10, 32); err != nil {
			return r, fmt.Errorf("MAX_PROGRAM_SIZE: %w", err)
		}
	}
	return r, nil
}

// adapt returns the configuration, which is JSON, with the replacements. A listener with
// an unknown port is an error.
func (r replacements) adapt(configuration []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(configuration))
	decoder.UseNumber()
	var root object
	if err := decoder.Decode(&root); err != nil {
		return nil, err
	}
	if err := r.adaptListeners(root); err != nil {
		return nil, err
	}
	static := root.object("staticResources")
	for _, cluster := range static.objects("clusters") {
		if cluster["name"] != xdsCluster {
			continue
		}
		for _, address := range socketAddresses(cluster) {
			address["address"], address["portValue"] = r.xdsHost, r.xdsPort
		}
	}
	for _, secret := range static.objects("secrets") {
		if ca := secret.object("validationContext").object("trustedCa"); ca["filename"] == envoy.CAPath {
			ca["filename"] = r.caFile
		}
	}
	if r.maxProgramSize > 0 {
		for _, layer := range root.object("layeredRuntime").objects("layers") {
			layer.object("staticLayer")[programSizeLimit] = r.maxProgramSize
		}
	}
	return json.Marshal(root)
}

// staticListeners returns the listeners that Envoy would get from the controller. The
// Envoys in several Pods cannot bind the same ports on one machine, and a listener from
// the controller does not replace a static one with its name: Envoy acknowledges it
// without effect.
func (r replacements) staticListeners() ([]any, error) {
	var all []any
	for _, listener := range envoy.Listeners(envoy.ReadyOptions{Metrics: true}, routing.NewTelemetry(&r.settings)) {
		text, err := protojson.Marshal(listener)
		if err != nil {
			return nil, err
		}
		var decoded map[string]any
		if err := json.Unmarshal(text, &decoded); err != nil {
			return nil, err
		}
		all = append(all, decoded)
	}
	return all, nil
}

// adaptListeners replaces the ports of the static listeners.
func (r replacements) adaptListeners(root object) error {
	if r.pod != nil {
		return nil
	}
	static := root.object("staticResources")
	if root.object("dynamicResources")["ldsConfig"] != nil {
		listeners, err := r.staticListeners()
		if err != nil {
			return err
		}
		static["listeners"] = listeners
	}
	for _, listener := range static.objects("listeners") {
		if err := r.adaptListener(listener); err != nil {
			return err
		}
	}
	return nil
}

func (r replacements) adaptListener(listener object) error {
	address := listener.object("address").object("socketAddress")
	port, err := strconv.Atoi(fmt.Sprint(address["portValue"]))
	replacement, ok := r.ports[port]
	if err != nil || !ok {
		return fmt.Errorf("the listener %v has the unknown port %v", listener["name"], address["portValue"])
	}
	address["portValue"] = replacement
	return nil
}

// socketAddresses returns the addresses of a cluster's endpoints.
func socketAddresses(cluster object) []object {
	var addresses []object
	for _, locality := range cluster.object("loadAssignment").objects("endpoints") {
		for _, e := range locality.objects("lbEndpoints") {
			addresses = append(addresses, e.object("endpoint").object("address").object("socketAddress"))
		}
	}
	return addresses
}

// object is a JSON object.
type object map[string]any

// object returns the object in a field, or an empty object if there is none.
func (o object) object(field string) object {
	if value, ok := o[field].(map[string]any); ok {
		return value
	}
	return object{}
}

// objects returns the objects in a list in a field.
func (o object) objects(field string) []object {
	list, _ := o[field].([]any)
	var objects []object
	for _, item := range list {
		if value, ok := item.(map[string]any); ok {
			objects = append(objects, value)
		}
	}
	return objects
}
