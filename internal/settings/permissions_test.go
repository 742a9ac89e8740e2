package settings

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const existingTunnelID = "0f3c1e5a-7b42-4c7e-9a53-6d1b2e8f4a90"

// resolve returns the settings for Gateway infra/shared. gateway is the spec for the
// Gateway, and class the spec for the GatewayClass, which has no TunnelConfiguration when
// class is nil. The controller namespace is "platform".
func resolve(class *spec, gateway spec) (*Settings, *Problem) {
	parameters := gatewayv1.LocalParametersReference{Group: v1alpha1.GroupName, Kind: KindTunnelConfiguration, Name: "own"}
	in := Input{
		Class: &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "tunnel"}},
		Gateway: &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "shared"},
			Spec:       gatewayv1.GatewaySpec{Infrastructure: &gatewayv1.GatewayInfrastructure{ParametersRef: &parameters}},
		},
		GatewayConfiguration: &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "own"}, Spec: gateway},
		ControllerNamespace:  "platform",
	}
	if class != nil {
		in.Class.Spec.ParametersRef = &gatewayv1.ParametersReference{
			Group: v1alpha1.GroupName, Kind: KindTunnelConfiguration, Namespace: new(gatewayv1.Namespace("platform")), Name: "defaults",
		}
		in.ClassConfiguration = &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "defaults"}, Spec: *class}
	}
	return Resolve(in)
}

// fieldValues has a spec with a valid value for each field, by field name.
var fieldValues = map[string]spec{
	"originRequest":            {OriginRequest: &v1alpha1.OriginRequest{}},
	"listenerConfigurations":   {ListenerConfigurations: []v1alpha1.ListenerConfiguration{{ProtocolPort: "HTTP:80"}}},
	"tunnel.deletionPolicy":    {Tunnel: &v1alpha1.TunnelSettings{DeletionPolicy: new(v1alpha1.DeletionPolicyRetain)}},
	"tunnel.existing":          {Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: existingTunnelID}}},
	"tunnel.existing.takeover": {Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: existingTunnelID, Takeover: new(false)}}},
	"account":                  {Account: &v1alpha1.Account{AccountID: new("a")}},
	"mergingMode":              {MergingMode: new(v1alpha1.MergingModePreferGateway)},
	"dataPlane":                {DataPlane: new(v1alpha1.DataPlaneEnvoy)},
	"allowedGatewayFields":     {AllowedGatewayFields: []v1alpha1.GatewayField{}},
	"limits":                   {Limits: &v1alpha1.Limits{}},
	"pausing":                  {Pausing: new(v1alpha1.PausingAllowed)},
	"hostnames":                {Hostnames: &v1alpha1.Hostnames{}},
	"dns":                      {DNS: &v1alpha1.DNS{}},
	"access":                   {Access: &v1alpha1.AccessApplications{}},
	"connector.enabled":        connector(func(c *v1alpha1.Connector) { c.Enabled = new(true) }),
	"connector.replicas":       connector(func(c *v1alpha1.Connector) { c.Replicas = new(int32(2)) }),
	"connector.autoscaling":    connector(func(c *v1alpha1.Connector) { c.Autoscaling = &v1alpha1.Autoscaling{MaxReplicas: new(int32(4))} }),
	"connector.autoscaling.autoscaler": connector(func(c *v1alpha1.Connector) {
		c.Autoscaling = &v1alpha1.Autoscaling{Autoscaler: new(v1alpha1.AutoscalerExternal)}
	}),
	"connector.image":                     connector(func(c *v1alpha1.Connector) { c.Image = new("i") }),
	"connector.envoy":                     connector(setConnectorField("Envoy")),
	"connector.protocol":                  connector(func(c *v1alpha1.Connector) { c.Protocol = new(v1alpha1.ProtocolQUIC) }),
	"connector.edgeIPVersion":             connector(func(c *v1alpha1.Connector) { c.EdgeIPVersion = new(v1alpha1.EdgeIPVersion6) }),
	"connector.logLevel":                  connector(func(c *v1alpha1.Connector) { c.LogLevel = new(v1alpha1.LogLevelWarn) }),
	"connector.resources":                 connector(setConnectorField("Resources")),
	"connector.nodeSelector":              connector(func(c *v1alpha1.Connector) { c.NodeSelector = map[string]string{"a": "b"} }),
	"connector.tolerations":               connector(setConnectorField("Tolerations")),
	"connector.affinity":                  connector(setConnectorField("Affinity")),
	"connector.topologySpreadConstraints": connector(setConnectorField("TopologySpreadConstraints")),
	"connector.podAnnotations":            connector(setConnectorField("PodAnnotations")),
	"connector.podLabels":                 connector(setConnectorField("PodLabels")),
	"connector.metrics":                   connector(func(c *v1alpha1.Connector) { c.Metrics = new(v1alpha1.MetricsLoopback) }),
	"connector.metricsFrom": connector(func(c *v1alpha1.Connector) {
		c.MetricsFrom = []v1alpha1.MetricsPeer{{PodSelector: &metav1.LabelSelector{}}}
	}),
	"connector.allowedMetadataPrefixes": connector(func(c *v1alpha1.Connector) { c.AllowedMetadataPrefixes = []string{"example.com"} }),
	"connector.readyDelay":              connector(func(c *v1alpha1.Connector) { c.ReadyDelay = new(v1alpha1.Delay("0s")) }),
	"connector.gracePeriod":             connector(func(c *v1alpha1.Connector) { c.GracePeriod = new(v1alpha1.Duration("1m")) }),
	"connector.podDisruptionBudget": connector(func(c *v1alpha1.Connector) {
		setConnectorField("PodDisruptionBudget")(c)
		c.PodDisruptionBudget.MinAvailable = nil
	}),
	"connector.tokenRotation": connector(func(c *v1alpha1.Connector) { c.TokenRotation = new(v1alpha1.Duration("24h")) }),
}

func connector(change func(*v1alpha1.Connector)) spec {
	var c v1alpha1.Connector
	change(&c)
	return spec{Connector: &c}
}

// setConnectorField returns a function that sets a connector field and all its subfields,
// except claims.
func setConnectorField(field string) func(*v1alpha1.Connector) {
	return func(c *v1alpha1.Connector) {
		set(reflect.ValueOf(c).Elem().FieldByName(field), 1)
		if c.Resources != nil {
			c.Resources.Claims = nil
		}
		if c.Envoy != nil {
			c.Envoy.Resources.Claims = nil
			c.Envoy.Tracing = &v1alpha1.Tracing{Endpoint: "http://collector.observability.svc:4317"}
		}
	}
}

func TestEveryFieldBelongsToGatewayOrClass(t *testing.T) {
	// Every API field is in gatewayFields or in classFields. Otherwise, every Gateway
	// could set the field.
	want := []string{"tunnel.existing.takeover", "connector.autoscaling.autoscaler"}
	top := reflect.TypeFor[spec]()
	for i := range top.NumField() {
		name := jsonName(top.Field(i))
		if name != "tunnel" && name != "connector" {
			want = append(want, name)
			continue
		}
		block := top.Field(i).Type.Elem()
		for j := range block.NumField() {
			want = append(want, name+"."+jsonName(block.Field(j)))
		}
	}
	var got []string
	for _, field := range gatewayFields {
		got = append(got, string(field.name))
	}
	for _, field := range classFields {
		got = append(got, field.name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the fields of the API and of the lists differ (-API +lists):\n%s", diff)
	}
	for _, name := range got {
		if _, ok := fieldValues[name]; !ok {
			t.Errorf("fieldValues has no value for %s", name)
		}
	}
}

func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

func TestGatewayCanSetOnlyPermittedFields(t *testing.T) {
	// A Gateway can set only the fields that its GatewayClass permits.
	var all []v1alpha1.GatewayField
	for _, field := range gatewayFields {
		all = append(all, field.name)
	}
	for _, field := range gatewayFields {
		t.Run(string(field.name), func(t *testing.T) {
			gateway, only := fieldValues[string(field.name)], []v1alpha1.GatewayField{field.name}
			others := slices.DeleteFunc(slices.Clone(all), func(name v1alpha1.GatewayField) bool { return name == field.name })
			permittedByDefault := slices.Contains(defaultGatewayFields, field.name)
			for name, test := range map[string]struct {
				class     *spec
				permitted bool
				remedy    string
			}{
				"the class lists the field":            {&spec{AllowedGatewayFields: only}, true, ""},
				"the class lists all other fields":     {&spec{AllowedGatewayFields: others}, false, "spec.allowedGatewayFields of TunnelConfiguration platform/defaults."},
				"the class lists no field":             {&spec{AllowedGatewayFields: []v1alpha1.GatewayField{}}, false, "TunnelConfiguration platform/defaults."},
				"the class has no list":                {&spec{}, permittedByDefault, "TunnelConfiguration platform/defaults."},
				"the class has no TunnelConfiguration": {nil, permittedByDefault, "spec.allowedGatewayFields of a TunnelConfiguration that GatewayClass tunnel refers to."},
			} {
				_, problem := resolve(test.class, gateway)
				if test.permitted {
					if problem != nil {
						t.Errorf("%s: got problem %+v, want none", name, problem)
					}
					continue
				}
				want := []string{
					`TunnelConfiguration "own" of spec.infrastructure.parametersRef is not valid: GatewayClass tunnel does not permit spec.` + string(field.name) + ".",
					"ask the platform team to list " + string(field.name) + " in ", test.remedy,
				}
				wantProblem(t, name, problem, want...)
			}
		})
	}
}

func TestMessageNamesEveryFieldThatIsNotPermitted(t *testing.T) {
	// The message names all fields that are not permitted.
	gateway := connector(func(c *v1alpha1.Connector) {
		c.LogLevel, c.Protocol, c.Replicas = new(v1alpha1.LogLevelWarn), new(v1alpha1.ProtocolQUIC), new(int32(2))
	})
	_, problem := resolve(nil, gateway)
	wantProblem(t, "two fields", problem, "does not permit spec.connector.protocol, spec.connector.logLevel. Remove the fields, ", "list connector.protocol, connector.logLevel in")
}

func TestGatewayCannotSetClassFields(t *testing.T) {
	// A Gateway cannot set the fields for GatewayClasses, even when its GatewayClass
	// permits them.
	var all []v1alpha1.GatewayField
	for name := range fieldValues {
		all = append(all, v1alpha1.GatewayField(name))
	}
	for _, field := range classFields {
		t.Run(field.name, func(t *testing.T) {
			_, problem := resolve(&spec{AllowedGatewayFields: all}, fieldValues[field.name])
			wantProblem(t, "set by the Gateway", problem, `TunnelConfiguration "own" of spec.infrastructure.parametersRef is not valid: spec.`+field.name+" belongs only in a GatewayClass's TunnelConfiguration, because ", "Remove the field.")
			class := fieldValues[field.name]
			if _, problem := resolve(&class, spec{}); problem != nil {
				t.Errorf("set by the class: got problem %+v, want none", problem)
			}
		})
	}
}

// A file such as /dev/zero would make cloudflared read until it has no memory.
func TestGatewayCannotNameFilesOfConnectors(t *testing.T) {
	var all []v1alpha1.GatewayField
	for name := range fieldValues {
		all = append(all, v1alpha1.GatewayField(name))
	}
	entry := func(protocolPort string, o *v1alpha1.OriginRequest) v1alpha1.ListenerConfiguration {
		return v1alpha1.ListenerConfiguration{ProtocolPort: protocolPort, OriginRequest: o}
	}
	for _, file := range []string{"/dev/zero", "/etc/ca.crt", ""} {
		pool := &v1alpha1.OriginRequest{CAPool: &file}
		for path, gateway := range map[string]spec{
			"spec.originRequest.caPool":                                 {OriginRequest: pool},
			"spec.listenerConfigurations[HTTP:80].originRequest.caPool": {ListenerConfigurations: []v1alpha1.ListenerConfiguration{entry("*", nil), entry("HTTP:80", pool)}},
			"spec.listenerConfigurations[*].originRequest.caPool":       {ListenerConfigurations: []v1alpha1.ListenerConfiguration{entry("*", pool)}},
		} {
			for name, class := range map[string]*spec{"no settings": nil, "every field": {AllowedGatewayFields: all}} {
				_, problem := resolve(class, gateway)
				wantProblem(t, name, problem, `TunnelConfiguration "own" of spec.infrastructure.parametersRef is not valid: `+path+" belongs only in a GatewayClass's TunnelConfiguration, because ", "Remove the field.")
			}
			if _, problem := resolve(&gateway, spec{}); problem != nil {
				t.Errorf("%s of the class: got problem %+v, want none", path, problem)
			}
		}
	}
}

func wantProblem(t *testing.T, name string, problem *Problem, parts ...string) {
	t.Helper()
	if problem == nil || problem.Reason != conditions.ReasonInvalidParameters {
		t.Errorf("%s: got problem %+v, want InvalidParameters", name, problem)
		return
	}
	for _, part := range parts {
		if !strings.Contains(problem.Message, part) {
			t.Errorf("%s: the message does not contain %q: %s", name, part, problem.Message)
		}
	}
}

func TestReplicasStayWithinTheBoundsOfTheClass(t *testing.T) {
	replicas := func(n int32) spec { return connector(func(c *v1alpha1.Connector) { c.Replicas = &n }) }
	autoscaling := func(minimum, maximum *int32) spec {
		return connector(func(c *v1alpha1.Connector) {
			c.Autoscaling = &v1alpha1.Autoscaling{MinReplicas: minimum, MaxReplicas: maximum}
		})
	}
	bounds := func(minimum, maximum *int32) spec {
		return spec{Limits: &v1alpha1.Limits{ConnectorReplicas: &v1alpha1.ReplicaBounds{Min: minimum, Max: maximum}}}
	}
	number := func(n int32) *int32 { return &n }
	for name, test := range map[string]struct {
		class, gateway spec
		message        string // part of the message; empty when the number is permitted
	}{
		"the default minimum":                    {spec{}, replicas(1), ""},
		"below the default minimum":              {spec{}, replicas(0), "spec.connector.replicas is 0, but GatewayClass tunnel permits 1 to 4."},
		"the default maximum":                    {spec{}, replicas(4), ""},
		"above the default maximum":              {spec{}, replicas(5), "spec.connector.replicas is 5, but GatewayClass tunnel permits 1 to 4."},
		"the minimum of the class":               {bounds(number(0), number(0)), replicas(0), ""},
		"above the maximum of the class":         {bounds(number(2), number(3)), replicas(4), "is 4, but GatewayClass tunnel permits 2 to 3."},
		"below the minimum of the class":         {bounds(number(2), nil), replicas(1), "is 1, but GatewayClass tunnel permits 2 to 4."},
		"the maximum of the class":               {bounds(nil, number(25)), replicas(25), ""},
		"replicas of the class":                  {replicas(25), spec{}, ""},
		"autoscaling of the class":               {autoscaling(number(7), number(25)), spec{}, ""},
		"autoscaling within the bounds":          {spec{}, autoscaling(number(1), number(4)), ""},
		"maxReplicas above the maximum":          {spec{}, autoscaling(nil, number(5)), "spec.connector.autoscaling.maxReplicas is 5, but"},
		"default maxReplicas above the maximum":  {spec{}, autoscaling(number(2), nil), "spec.connector.autoscaling.maxReplicas is not set and defaults to 25, but"},
		"maxReplicas of the class":               {autoscaling(nil, number(9)), autoscaling(number(2), nil), ""},
		"minReplicas below the minimum":          {bounds(number(2), nil), autoscaling(number(1), number(4)), "spec.connector.autoscaling.minReplicas is 1, but"},
		"default minReplicas below the minimum":  {bounds(number(3), nil), autoscaling(nil, number(4)), "spec.connector.autoscaling.minReplicas is not set and defaults to 2, but"},
		"default minReplicas with maxReplicas 1": {spec{}, autoscaling(nil, number(1)), ""},
		"bounds without any number":              {bounds(number(5), nil), spec{}, "spec.limits.connectorReplicas.min (5) is greater than max (4)."},
		"the message names the object to change": {spec{}, replicas(5), "change spec.limits.connectorReplicas of TunnelConfiguration platform/defaults."},
	} {
		t.Run(name, func(t *testing.T) {
			test.class.AllowedGatewayFields = []v1alpha1.GatewayField{"connector.replicas", "connector.autoscaling"}
			_, problem := resolve(&test.class, test.gateway)
			switch {
			case test.message != "":
				wantProblem(t, name, problem, test.message)
			case problem != nil:
				t.Errorf("got problem %+v, want none", problem)
			}
		})
	}
}

func TestBothLevelsDecideAboutTheExistingTunnel(t *testing.T) {
	// The settings of both levels decide which existing tunnel the controller adopts, and
	// what happens to it.
	const other = "7d2a4c10-93be-4f51-8a06-52c7e1b9d3f4"
	tunnel := func(id string, takeover *bool, policy v1alpha1.DeletionPolicy) spec {
		s := spec{Tunnel: &v1alpha1.TunnelSettings{}}
		if id != "" || takeover != nil {
			s.Tunnel.Existing = &v1alpha1.ExistingTunnel{ID: id, Takeover: takeover}
		}
		if policy != "" {
			s.Tunnel.DeletionPolicy = &policy
		}
		return s
	}
	const remove, retain = v1alpha1.DeletionPolicyDelete, v1alpha1.DeletionPolicyRetain
	type outcome struct {
		Existing provider.TunnelID
		Takeover bool
		Policy   v1alpha1.DeletionPolicy
	}
	for name, test := range map[string]struct {
		class, gateway spec
		preferGateway  bool
		want           outcome
		message        string // part of the message; empty when the settings are valid
	}{
		"no settings":                                   {want: outcome{Policy: remove}},
		"the Gateway retains a new tunnel":              {gateway: tunnel("", nil, retain), want: outcome{Policy: retain}},
		"takeover without an existing tunnel":           {class: tunnel("", new(true), ""), want: outcome{Policy: remove}},
		"tunnel of the Gateway":                         {gateway: tunnel(existingTunnelID, nil, ""), want: outcome{existingTunnelID, false, retain}},
		"tunnel of the Gateway, takeover permitted":     {class: tunnel("", new(true), ""), gateway: tunnel(existingTunnelID, nil, ""), want: outcome{existingTunnelID, true, retain}},
		"tunnel of the Gateway, takeover not permitted": {class: tunnel("", new(false), ""), gateway: tunnel(existingTunnelID, nil, ""), want: outcome{existingTunnelID, false, retain}},
		"tunnel of the class":                           {class: tunnel(existingTunnelID, new(true), ""), want: outcome{existingTunnelID, true, retain}},
		"the class takes precedence by default":         {class: tunnel(existingTunnelID, new(true), ""), gateway: tunnel(other, nil, ""), want: outcome{existingTunnelID, true, retain}},
		"the Gateway takes precedence with PreferGateway": {
			class: tunnel(existingTunnelID, new(true), ""), gateway: tunnel(other, nil, ""), preferGateway: true, want: outcome{other, false, retain},
		},
		"both levels have the same id": {
			class: tunnel(existingTunnelID, new(true), ""), gateway: tunnel(existingTunnelID, nil, ""), preferGateway: true, want: outcome{existingTunnelID, true, retain},
		},
		"the class deletes the tunnel":        {class: tunnel(existingTunnelID, nil, remove), want: outcome{existingTunnelID, false, remove}},
		"both levels delete the tunnel":       {class: tunnel("", nil, remove), gateway: tunnel(existingTunnelID, nil, remove), want: outcome{existingTunnelID, false, remove}},
		"only the Gateway deletes the tunnel": {gateway: tunnel(existingTunnelID, nil, remove), message: "spec.tunnel.deletionPolicy is Delete, but only a GatewayClass's TunnelConfiguration may set this value for an adopted tunnel."},
		"the Gateway deletes the tunnel of the class": {
			class: tunnel(existingTunnelID, nil, ""), gateway: tunnel("", nil, remove), message: "set it in TunnelConfiguration platform/defaults.",
		},
		"the Gateway deletes the tunnel that the class retains": {
			class: tunnel("", nil, retain), gateway: tunnel(existingTunnelID, nil, remove), preferGateway: true, message: "spec.tunnel.deletionPolicy is Delete",
		},
		"the class retains the tunnel and takes precedence": {class: tunnel("", nil, retain), gateway: tunnel(existingTunnelID, nil, remove), want: outcome{existingTunnelID, false, retain}},
		"existing without an id":                            {gateway: spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{}}}, message: "spec.tunnel.existing has no id."},
	} {
		t.Run(name, func(t *testing.T) {
			test.class.AllowedGatewayFields = []v1alpha1.GatewayField{"tunnel.existing", "tunnel.deletionPolicy"}
			if test.preferGateway {
				test.class.MergingMode = new(v1alpha1.MergingModePreferGateway)
			}
			s, problem := resolve(&test.class, test.gateway)
			if test.message != "" {
				wantProblem(t, name, problem, `TunnelConfiguration "own" of spec.infrastructure.parametersRef is not valid: `, test.message)
				return
			}
			if problem != nil {
				t.Fatalf("got problem %+v, want none", problem)
			}
			if diff := cmp.Diff(test.want, outcome{s.ExistingTunnel(), s.Takeover(), s.DeletionPolicy()}); diff != "" {
				t.Errorf("the settings differ (-want +got):\n%s", diff)
			}
		})
	}
	var zero *Settings
	if got := (outcome{zero.ExistingTunnel(), zero.Takeover(), zero.DeletionPolicy()}); got != (outcome{Policy: remove}) {
		t.Errorf("nil settings return %+v, want only the policy Delete", got)
	}
}

func TestAccountIsValidOnlyInTheControllersNamespace(t *testing.T) {
	// An account is valid only in the controller namespace.
	parameters := &gatewayv1.ParametersReference{
		Group: v1alpha1.GroupName, Kind: KindTunnelConfiguration, Namespace: new(gatewayv1.Namespace("platform")), Name: "defaults",
	}
	class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "tunnel"}, Spec: gatewayv1.GatewayClassSpec{ParametersRef: parameters}}
	withAccount := &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "defaults"}, Spec: fieldValues["account"]}
	withoutAccount := &v1alpha1.TunnelConfiguration{ObjectMeta: withAccount.ObjectMeta}
	const notAllowed = "TunnelConfiguration platform/defaults of spec.parametersRef is not valid: spec.account has an effect only in the controller's namespace, gateways."
	for name, test := range map[string]struct {
		configuration *v1alpha1.TunnelConfiguration
		namespace     string
		message       string // part of the message; empty when the settings are valid
	}{
		"an account in the controller's namespace": {withAccount, "platform", ""},
		"an account in another namespace":          {withAccount, "gateways", notAllowed},
		"no account in another namespace":          {withoutAccount, "gateways", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, gatewayProblem := Resolve(Input{
				Class: class, ClassConfiguration: test.configuration, Gateway: &gatewayv1.Gateway{}, ControllerNamespace: test.namespace,
			})
			classProblem := ClassProblem(class, test.configuration, test.namespace)
			if test.message != "" {
				wantProblem(t, "GatewayClass", classProblem, test.message)
				wantProblem(t, "Gateway", gatewayProblem, "GatewayClass tunnel is not accepted: "+test.message)
				return
			}
			if classProblem != nil || gatewayProblem != nil {
				t.Fatalf("got problem %+v of the class and %+v of the Gateway, want none", classProblem, gatewayProblem)
			}
			if want := (s.Spec.Account != nil); want != (s.AccountNamespace == "platform") {
				t.Errorf("got account namespace %q, but the class has an account: %t", s.AccountNamespace, want)
			}
		})
	}
}

func TestTunnelsPerNamespaceDefaultsToTen(t *testing.T) {
	for want, class := range map[int]spec{
		10: {}, 0: {Limits: &v1alpha1.Limits{TunnelsPerNamespace: new(int32(0))}}, 3: {Limits: &v1alpha1.Limits{TunnelsPerNamespace: new(int32(3))}},
	} {
		if s, problem := resolve(&class, spec{}); problem != nil || s.Limits().TunnelsPerNamespace != want {
			t.Errorf("got limit %d (problem %+v), want %d", s.Limits().TunnelsPerNamespace, problem, want)
		}
	}
	if s, _ := resolve(&spec{Limits: &v1alpha1.Limits{}}, spec{}); s.Limits().TunnelsPerNamespace != 10 {
		t.Errorf("got default limit %d, want 10", s.Limits().TunnelsPerNamespace)
	}
}
