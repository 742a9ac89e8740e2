package node

import (
	"cmp"
	"context"
	"crypto/tls"
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

// probe updates the container's readiness until ctx is canceled. Without a readiness
// probe, the container is ready as soon as its first port accepts a connection.
// With a probe, the first probe also waits until the port accepts connections: a
// failed probe of a starting process would only delay the test.
func (c *container) probe(ctx context.Context, spec *processSpec) {
	httpGet := c.action().HTTPGet
	port, ok := c.firstPort(spec.ports)
	if httpGet != nil {
		number, _ := c.portNumber(httpGet.Port)
		port, ok = spec.ports[number], true
	}
	if ok && !waitForPort(ctx, port) {
		return
	}
	switch {
	case httpGet != nil:
		c.probePeriodically(ctx, func(ctx context.Context) bool { return probeHTTP(ctx, httpGet, port) })
	case c.action().Exec != nil:
		c.probePeriodically(ctx, func(ctx context.Context) bool { return probeExec(ctx, spec) })
	default:
		c.setReady(true)
	}
}

// action returns the action of the readiness probe, which is empty if there is no
// probe.
func (c *container) action() corev1.ProbeHandler {
	if c.spec.ReadinessProbe == nil {
		return corev1.ProbeHandler{}
	}
	return c.spec.ReadinessProbe.ProbeHandler
}

func (c *container) setReady(ready bool) {
	c.updateStatus(func(s *corev1.ContainerStatus) { s.Ready = ready })
}

// firstPort returns the real port of the first port in the container's
// specification that has one, or else of the lowest container port.
func (c *container) firstPort(ports map[int32]int) (int, bool) {
	lowest := int32(0)
	for number := range ports {
		if lowest == 0 || number < lowest {
			lowest = number
		}
	}
	for _, p := range c.spec.Ports {
		if port, ok := ports[p.ContainerPort]; ok {
			return port, true
		}
	}
	return ports[lowest], len(ports) > 0
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

// checkProbe returns an error if the probe can never succeed, because the image
// does not have its port or its program.
func (c *container) checkProbe(image Image) error {
	action := c.action()
	switch {
	case action.HTTPGet != nil:
		number, ok := c.portNumber(action.HTTPGet.Port)
		if ok {
			_, ok = image.Ports[number]
		}
		if !ok {
			return configError("the readiness probe's port %s is not one of the image's ports %d", action.HTTPGet.Port.String(), sortedPorts(image))
		}
	case action.Exec != nil:
		if command := action.Exec.Command; len(command) == 0 || command[0] != image.Program {
			return configError("the readiness probe's command %q does not begin with the image's program %q", command, image.Program)
		}
	}
	return nil
}

// waitForPort waits until the port accepts connections. It returns false if ctx is
// canceled before that.
func waitForPort(ctx context.Context, port int) bool {
	var dialer net.Dialer
	for ctx.Err() == nil {
		connection, err := dialer.DialContext(ctx, "tcp", localAddress(port))
		if err == nil {
			_ = connection.Close()
			return true
		}
		pause(ctx, dialInterval)
	}
	return false
}

// probePeriodically runs the probe. The thresholds count consecutive results.
func (c *container) probePeriodically(ctx context.Context, succeeds func(context.Context) bool) {
	probe := c.spec.ReadinessProbe
	pause(ctx, seconds(probe.InitialDelaySeconds))
	ready, changes := false, int32(0) // consecutive results that differ from ready
	for ; ctx.Err() == nil; pause(ctx, seconds(probe.PeriodSeconds)) {
		attempt, cancel := context.WithTimeout(ctx, seconds(probe.TimeoutSeconds))
		success := succeeds(attempt)
		cancel()
		if success == ready {
			changes = 0
			continue
		}
		changes++
		threshold := probe.SuccessThreshold
		if ready {
			threshold = probe.FailureThreshold
		}
		if changes >= threshold && ctx.Err() == nil {
			ready, changes = !ready, 0
			c.setReady(ready)
		}
	}
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// probeExec runs the command of the probe with the environment of the container and
// reports whether it exits with 0, as the Kubernetes documentation of probes
// specifies. The command is killed when ctx is canceled.
func probeExec(ctx context.Context, spec *processSpec) bool {
	command := exec.CommandContext(ctx, spec.probe[0], spec.probe[1:]...)
	command.Dir, command.Env = spec.dir, spec.variables()
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	return command.Run() == nil
}

// probeHTTP sends one probe and reports whether the status is from 200 to 399, as
// the Kubernetes documentation of probes specifies. As in Kubernetes, it does not
// verify a certificate.
func probeHTTP(ctx context.Context, action *corev1.HTTPGetAction, port int) bool {
	scheme := strings.ToLower(cmp.Or(string(action.Scheme), "http"))
	url := scheme + "://" + localAddress(port) + "/" + strings.TrimPrefix(action.Path, "/")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	for _, h := range action.HTTPHeaders {
		if request.Header.Add(h.Name, h.Value); strings.EqualFold(h.Name, "Host") {
			request.Host = h.Value
		}
	}
	response, err := prober.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode >= http.StatusOK && response.StatusCode < http.StatusBadRequest
}

// prober is the client for probes. It opens a new connection for each probe and
// does not follow redirects.
var prober = &http.Client{
	Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // G402: probes do not verify certificates
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}
