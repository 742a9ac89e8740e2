package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// dialInterval is the interval between attempts to connect to a starting process.
const dialInterval = 30 * time.Millisecond

// attempt runs a probe's action once.
type attempt struct {
	do   func(ctx context.Context) bool
	port realPort // the port that must accept connections before the first success; nil if there is none
}

// realPort returns the address with the current real port for a container port, and
// whether there is one. The real port changes when its process restarts.
type realPort func() (address string, ok bool)

// succeeds runs the action.
func (a attempt) succeeds(ctx context.Context, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return a.do(ctx)
}

// attempt returns the action for a probe that checkProbes has accepted.
func (b *prober) attempt(action corev1.ProbeHandler) attempt {
	switch {
	case action.HTTPGet != nil:
		port := b.podPort(action.HTTPGet.Port)
		return attempt{port: port, do: func(ctx context.Context) bool {
			address, ok := port()
			return ok && probeHTTP(ctx, action.HTTPGet, address)
		}}
	case action.TCPSocket != nil:
		port := b.podPort(action.TCPSocket.Port)
		return attempt{port: port, do: func(ctx context.Context) bool { return isListening(ctx, port) }}
	default:
		a := attempt{do: func(ctx context.Context) bool { return probeExec(ctx, b.spec, action.Exec.Command) }}
		if len(b.spec.ports) > 0 {
			a.port = b.firstPort
		}
		return a
	}
}

// podPort returns the real port for a Pod port, which may belong to another container: a
// Pod's containers share one network.
func (b *prober) podPort(port intstr.IntOrString) realPort {
	number, _ := b.container.portNumber(port)
	network := b.container.pod.node.network
	return func() (string, bool) {
		local, err := network.translate(b.container.pod.ip, number)
		return network.localAddress(local), err == nil
	}
}

// firstPort returns a real port: for the first port in the container's specification that
// has one, or else for the lowest container port.
func (b *prober) firstPort() (string, bool) {
	network := b.container.pod.node.network
	for _, p := range b.container.spec.Ports {
		if port, ok := b.spec.ports[p.ContainerPort]; ok {
			return network.localAddress(port), true
		}
	}
	return network.localAddress(b.spec.ports[slices.Min(slices.Collect(maps.Keys(b.spec.ports)))]), true
}

// portNumber returns the container port that a probe refers to by number or name.
func (c *container) portNumber(port intstr.IntOrString) (int32, bool) {
	if port.Type == intstr.Int {
		return port.IntVal, true
	}
	i := slices.IndexFunc(c.spec.Ports, func(p corev1.ContainerPort) bool { return p.Name == port.StrVal })
	if i < 0 {
		return 0, false
	}
	return c.spec.Ports[i].ContainerPort, true
}

// checkProbes returns an error if a probe can never succeed, because none of the Pod's
// images has its port, or the container's image does not have its program.
func (c *container) checkProbes(image Image) error {
	for _, p := range []struct {
		name  string
		probe *corev1.Probe
	}{{"startup", c.spec.StartupProbe}, {"readiness", c.spec.ReadinessProbe}, {"liveness", c.spec.LivenessProbe}} {
		if p.probe == nil {
			continue
		}
		if err := c.checkAction(p.name, p.probe.ProbeHandler, image); err != nil {
			return err
		}
	}
	return nil
}

func (c *container) checkAction(name string, action corev1.ProbeHandler, image Image) error {
	switch {
	case action.HTTPGet != nil:
		return c.checkPort(name, action.HTTPGet.Port)
	case action.TCPSocket != nil:
		return c.checkPort(name, action.TCPSocket.Port)
	case action.Exec != nil:
		if command := action.Exec.Command; len(command) == 0 || command[0] != image.Program {
			return configError("the %s probe's command %q does not begin with the image's program %q", name, command, image.Program)
		}
		return nil
	default:
		return configError("the node supports only httpGet, tcpSocket and exec in the %s probe", name)
	}
}

func (c *container) checkPort(probe string, port intstr.IntOrString) error {
	ports := c.pod.ports()
	if number, ok := c.portNumber(port); !ok || !slices.Contains(ports, number) {
		return configError("the %s probe's port %s is not one of the ports %d of the Pod's images", probe, port.String(), ports)
	}
	return nil
}

// ports returns the ports in the Pod's images, sorted.
func (p *pod) ports() []int32 {
	var ports []int32
	for _, c := range p.allContainers() {
		if image, err := p.node.image(c.spec.Image); err == nil {
			ports = append(ports, sortedPorts(image)...)
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

func (c *container) setReady(ready bool) {
	c.updateStatus(func(s *corev1.ContainerStatus) { s.Ready = ready })
}

// isListening reports whether the port accepts connections.
func isListening(ctx context.Context, port realPort) bool {
	address, ok := port()
	if !ok {
		return false
	}
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

// waitForPort waits until the port accepts connections. It returns false if ctx is
// canceled before that.
func waitForPort(ctx context.Context, port realPort) bool {
	for ctx.Err() == nil {
		if isListening(ctx, port) {
			return true
		}
		pause(ctx, dialInterval)
	}
	return false
}

// probeExec runs the image's program with the probe command's arguments and the
// container's environment, and reports whether it exits with 0, as the Kubernetes page
// about probes specifies. The command is killed when ctx is canceled.
func probeExec(ctx context.Context, spec *processSpec, arguments []string) bool {
	program := slices.Concat(spec.program, arguments[1:])
	command := exec.CommandContext(ctx, program[0], program[1:]...)
	command.Dir, command.Env = spec.dir, spec.variables()
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	return command.Run() == nil
}

// probeHTTP sends one probe and reports whether the status is from 200 to 399, as the
// Kubernetes page about probes specifies. As in Kubernetes, it does not verify a
// certificate.
func probeHTTP(ctx context.Context, action *corev1.HTTPGetAction, address string) bool {
	scheme := strings.ToLower(cmp.Or(string(action.Scheme), "http"))
	url := scheme + "://" + address + "/" + strings.TrimPrefix(action.Path, "/")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	for _, h := range action.HTTPHeaders {
		if request.Header.Add(h.Name, h.Value); strings.EqualFold(h.Name, "Host") {
			request.Host = h.Value
		}
	}
	response, err := probeClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode >= http.StatusOK && response.StatusCode < http.StatusBadRequest
}

// probeClient is the client for probes. It opens a new connection for each probe and
// does not follow redirects.
var probeClient = &http.Client{
	Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // G402: probes do not verify certificates
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}
