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
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const adopted = "0f3c1e5a-7b42-4c7e-9a53-6d1b2e8f4a90"

// resolve resolves the settings of Gateway infra/shared with its own
// TunnelConfiguration, of a class with or without one. The controller's
// namespace is "platform".
func resolve(class *spec, own spec) (*Settings, *Problem) {
	parameters := gatewayv1.LocalParametersReference{Group: v1alpha1.GroupName, Kind: KindTunnelConfiguration, Name: "own"}
	in := Input{
		Class: &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "tunnel"}},
		Gateway: &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "shared"},
			Spec:       gatewayv1.GatewaySpec{Infrastructure: &gatewayv1.GatewayInfrastructure{ParametersRef: &parameters}},
		},
		GatewayConfiguration: &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "own"}, Spec: own},
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

// fieldValues is one valid value for each field that belongs to a Gateway or to a
// class, by the field's name.
var fieldValues = map[string]spec{
	"originRequest":                       {OriginRequest: &v1alpha1.OriginRequest{}},
	"listenerConfigurations":              {ListenerConfigurations: []v1alpha1.ListenerConfiguration{{ProtocolPort: "HTTP:80"}}},
	"tunnel.deletionPolicy":               {Tunnel: &v1alpha1.TunnelSettings{DeletionPolicy: new(v1alpha1.DeletionPolicyRetain)}},
	"tunnel.existing":                     {Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: adopted}}},
	"tunnel.existing.takeover":            {Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{ID: adopted, Takeover: new(false)}}},
	"account":                             {Account: &v1alpha1.Account{AccountID: new("a")}},
	"mergingMode":                         {MergingMode: new(v1alpha1.MergingModePreferGateway)},
	"allowedGatewayFields":                {AllowedGatewayFields: []v1alpha1.GatewayField{}},
	"limits":                              {Limits: &v1alpha1.Limits{}},
	"connector.enabled":                   connector(func(c *v1alpha1.Connector) { c.Enabled = new(true) }),
	"connector.replicas":                  connector(func(c *v1alpha1.Connector) { c.Replicas = new(int32(2)) }),
	"connector.autoscaling":               connector(func(c *v1alpha1.Connector) { c.Autoscaling = &v1alpha1.Autoscaling{MaxReplicas: new(int32(4))} }),
	"connector.image":                     connector(func(c *v1alpha1.Connector) { c.Image = new("i") }),
	"connector.protocol":                  connector(func(c *v1alpha1.Connector) { c.Protocol = new(v1alpha1.ProtocolQUIC) }),
	"connector.logLevel":                  connector(func(c *v1alpha1.Connector) { c.LogLevel = new(v1alpha1.LogLevelWarn) }),
	"connector.resources":                 connector(fill("Resources")),
	"connector.nodeSelector":              connector(func(c *v1alpha1.Connector) { c.NodeSelector = map[string]string{"a": "b"} }),
	"connector.tolerations":               connector(fill("Tolerations")),
	"connector.affinity":                  connector(fill("Affinity")),
	"connector.topologySpreadConstraints": connector(fill("TopologySpreadConstraints")),
	"connector.podAnnotations":            connector(fill("PodAnnotations")),
	"connector.podLabels":                 connector(fill("PodLabels")),
	"connector.allowedMetadataPrefixes":   connector(func(c *v1alpha1.Connector) { c.AllowedMetadataPrefixes = []string{"example.com"} }),
	"connector.gracePeriod":               connector(func(c *v1alpha1.Connector) { c.GracePeriod = new(v1alpha1.Duration("1m")) }),
	"connector.podDisruptionBudget": connector(func(c *v1alpha1.Connector) {
		fill("PodDisruptionBudget")(c)
		c.PodDisruptionBudget.MinAvailable = nil
	}),
	"connector.tokenRotation": connector(func(c *v1alpha1.Connector) { c.TokenRotation = new(v1alpha1.Duration("24h")) }),
}

func connector(change func(*v1alpha1.Connector)) spec {
	var c v1alpha1.Connector
	change(&c)
	return spec{Connector: &c}
}

// fill sets a field of the connector, with all that is in it, but for claims.
func fill(field string) func(*v1alpha1.Connector) {
	return func(c *v1alpha1.Connector) {
		set(reflect.ValueOf(c).Elem().FieldByName(field), 1)
		if c.Resources != nil {
			c.Resources.Claims = nil
		}
	}
}

// TestEveryFieldBelongsToGatewayOrClass: a field of the API that is in neither list
// could be set by every Gateway.
func TestEveryFieldBelongsToGatewayOrClass(t *testing.T) {
	want := []string{"tunnel.existing.takeover"}
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
		t.Errorf("fields (-of the API +known):\n%s", diff)
	}
	for _, name := range got {
		if _, ok := fieldValues[name]; !ok {
			t.Errorf("the tests have no value for %s", name)
		}
	}
}

func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// A Gateway can set a field when its class lists it, and no other field.
func TestPermittedFields(t *testing.T) {
	var all []v1alpha1.GatewayField
	for _, field := range gatewayFields {
		all = append(all, field.name)
	}
	for _, field := range gatewayFields {
		t.Run(string(field.name), func(t *testing.T) {
			own, only := fieldValues[string(field.name)], []v1alpha1.GatewayField{field.name}
			others := slices.DeleteFunc(slices.Clone(all), func(name v1alpha1.GatewayField) bool { return name == field.name })
			byDefault := slices.Contains(defaultGatewayFields, field.name)
			for name, test := range map[string]struct {
				class     *spec
				permitted bool
				remedy    string
			}{
				"listed":                 {&spec{AllowedGatewayFields: only}, true, ""},
				"all others listed":      {&spec{AllowedGatewayFields: others}, false, "spec.allowedGatewayFields of TunnelConfiguration platform/defaults."},
				"none listed":            {&spec{AllowedGatewayFields: []v1alpha1.GatewayField{}}, false, "TunnelConfiguration platform/defaults."},
				"no list":                {&spec{}, byDefault, "TunnelConfiguration platform/defaults."},
				"a class without object": {nil, byDefault, "spec.allowedGatewayFields of a TunnelConfiguration that GatewayClass tunnel refers to."},
			} {
				_, problem := resolve(test.class, own)
				if test.permitted {
					if problem != nil {
						t.Errorf("%s: the problem is %+v", name, problem)
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

// All fields that are not permitted are named at once.
func TestMessageNamesEveryFieldThatIsNotPermitted(t *testing.T) {
	own := connector(func(c *v1alpha1.Connector) {
		c.LogLevel, c.Protocol, c.Replicas = new(v1alpha1.LogLevelWarn), new(v1alpha1.ProtocolQUIC), new(int32(2))
	})
	_, problem := resolve(nil, own)
	wantProblem(t, "two fields", problem, "does not permit spec.connector.protocol, spec.connector.logLevel. ", "list connector.protocol, connector.logLevel in")
}

// No class can permit a field that is the platform team's.
func TestGatewayCannotSetClassFields(t *testing.T) {
	var all []v1alpha1.GatewayField
	for name := range fieldValues {
		all = append(all, v1alpha1.GatewayField(name))
	}
	for _, field := range classFields {
		t.Run(field.name, func(t *testing.T) {
			_, problem := resolve(&spec{AllowedGatewayFields: all}, fieldValues[field.name])
			wantProblem(t, "a Gateway's", problem, `TunnelConfiguration "own" of spec.infrastructure.parametersRef is not valid: spec.`+field.name+" can be set only for a GatewayClass, because ", "Remove it.")
			class := fieldValues[field.name]
			if _, problem := resolve(&class, spec{}); problem != nil {
				t.Errorf("the class's own is refused: %+v", problem)
			}
		})
	}
}

func wantProblem(t *testing.T, name string, problem *Problem, parts ...string) {
	t.Helper()
	if problem == nil || problem.Reason != "InvalidParameters" {
		t.Errorf("%s: the problem is %+v, want InvalidParameters", name, problem)
		return
	}
	for _, part := range parts {
		if !strings.Contains(problem.Message, part) {
			t.Errorf("%s: the message has no %q: %s", name, part, problem.Message)
		}
	}
}

func TestReplicaBounds(t *testing.T) {
	replicas := func(n int32) spec { return connector(func(c *v1alpha1.Connector) { c.Replicas = &n }) }
	scaled := func(least, most *int32) spec {
		return connector(func(c *v1alpha1.Connector) {
			c.Autoscaling = &v1alpha1.Autoscaling{MinReplicas: least, MaxReplicas: most}
		})
	}
	bounded := func(least, most *int32) spec {
		return spec{Limits: &v1alpha1.Limits{ConnectorReplicas: &v1alpha1.ReplicaBounds{Min: least, Max: most}}}
	}
	number := func(n int32) *int32 { return &n }
	for name, test := range map[string]struct {
		class, own spec
		says       string // "" when it is permitted
	}{
		"the smallest by default":               {spec{}, replicas(1), ""},
		"fewer than the default bounds":         {spec{}, replicas(0), "spec.connector.replicas is 0, and GatewayClass tunnel permits 1 to 4."},
		"the greatest by default":               {spec{}, replicas(4), ""},
		"more than the default bounds":          {spec{}, replicas(5), "spec.connector.replicas is 5, and GatewayClass tunnel permits 1 to 4."},
		"the smallest of the class":             {bounded(number(0), number(0)), replicas(0), ""},
		"more than the class permits":           {bounded(number(2), number(3)), replicas(4), "is 4, and GatewayClass tunnel permits 2 to 3."},
		"fewer than the class permits":          {bounded(number(2), nil), replicas(1), "is 1, and GatewayClass tunnel permits 2 to 4."},
		"the greatest of the class":             {bounded(nil, number(25)), replicas(25), ""},
		"numbers of the class":                  {replicas(25), spec{}, ""},
		"scaling of the class":                  {scaled(number(7), number(25)), spec{}, ""},
		"scaling within the bounds":             {spec{}, scaled(number(1), number(4)), ""},
		"scaling to more than the bounds":       {spec{}, scaled(nil, number(5)), "spec.connector.autoscaling.maxReplicas is 5, and"},
		"scaling to the default":                {spec{}, scaled(number(2), nil), "spec.connector.autoscaling.maxReplicas is not set and defaults to 25, and"},
		"scaling to the class's number":         {scaled(nil, number(9)), scaled(number(2), nil), ""},
		"scaling from fewer than the bounds":    {bounded(number(2), nil), scaled(number(1), number(4)), "spec.connector.autoscaling.minReplicas is 1, and"},
		"scaling from the default":              {bounded(number(3), nil), scaled(nil, number(4)), "spec.connector.autoscaling.minReplicas is not set and defaults to 2, and"},
		"scaling from the default with one":     {spec{}, scaled(nil, number(1)), ""},
		"bounds of the class that exclude all":  {bounded(number(5), nil), spec{}, "spec.limits.connectorReplicas has min 5 above max 4"},
		"bounds that the platform team changes": {spec{}, replicas(5), "change spec.limits.connectorReplicas of TunnelConfiguration platform/defaults."},
	} {
		t.Run(name, func(t *testing.T) {
			test.class.AllowedGatewayFields = []v1alpha1.GatewayField{"connector.replicas", "connector.autoscaling"}
			_, problem := resolve(&test.class, test.own)
			switch {
			case test.says != "":
				wantProblem(t, name, problem, test.says)
			case problem != nil:
				t.Errorf("the problem is %+v", problem)
			}
		})
	}
}

// What the settings say about a tunnel that exists already.
func TestExistingTunnel(t *testing.T) {
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
		class, own    spec
		preferGateway bool
		want          outcome
		says          string
	}{
		"none":                                {want: outcome{Policy: remove}},
		"none, to be retained":                {own: tunnel("", nil, retain), want: outcome{Policy: retain}},
		"takeover without a tunnel":           {class: tunnel("", new(true), ""), want: outcome{Policy: remove}},
		"the Gateway's":                       {own: tunnel(adopted, nil, ""), want: outcome{adopted, false, retain}},
		"the Gateway's, to be taken over":     {class: tunnel("", new(true), ""), own: tunnel(adopted, nil, ""), want: outcome{adopted, true, retain}},
		"the Gateway's, not to be taken over": {class: tunnel("", new(false), ""), own: tunnel(adopted, nil, ""), want: outcome{adopted, false, retain}},
		"the class's":                         {class: tunnel(adopted, new(true), ""), want: outcome{adopted, true, retain}},
		"the class's over the Gateway's":      {class: tunnel(adopted, new(true), ""), own: tunnel(other, nil, ""), want: outcome{adopted, true, retain}},
		"the Gateway's over the class's": {
			class: tunnel(adopted, new(true), ""), own: tunnel(other, nil, ""), preferGateway: true, want: outcome{other, false, retain},
		},
		"an id that both name": {
			class: tunnel(adopted, new(true), ""), own: tunnel(adopted, nil, ""), preferGateway: true, want: outcome{adopted, true, retain},
		},
		"to be deleted, as the class says":   {class: tunnel(adopted, nil, remove), want: outcome{adopted, false, remove}},
		"to be deleted, as both say":         {class: tunnel("", nil, remove), own: tunnel(adopted, nil, remove), want: outcome{adopted, false, remove}},
		"to be deleted, as the Gateway says": {own: tunnel(adopted, nil, remove), says: "spec.tunnel.deletionPolicy is Delete, which counts for an existing tunnel only when the GatewayClass sets it."},
		"the class's, to be deleted as the Gateway says": {
			class: tunnel(adopted, nil, ""), own: tunnel("", nil, remove), says: "set it in TunnelConfiguration platform/defaults.",
		},
		"to be deleted, against the class": {
			class: tunnel("", nil, retain), own: tunnel(adopted, nil, remove), preferGateway: true, says: "spec.tunnel.deletionPolicy is Delete",
		},
		"to be retained, because the class is preferred": {class: tunnel("", nil, retain), own: tunnel(adopted, nil, remove), want: outcome{adopted, false, retain}},
		"without an id": {own: spec{Tunnel: &v1alpha1.TunnelSettings{Existing: &v1alpha1.ExistingTunnel{}}}, says: "spec.tunnel.existing has no id."},
	} {
		t.Run(name, func(t *testing.T) {
			test.class.AllowedGatewayFields = []v1alpha1.GatewayField{"tunnel.existing", "tunnel.deletionPolicy"}
			if test.preferGateway {
				test.class.MergingMode = new(v1alpha1.MergingModePreferGateway)
			}
			s, problem := resolve(&test.class, test.own)
			if test.says != "" {
				wantProblem(t, name, problem, `TunnelConfiguration "own" of spec.infrastructure.parametersRef is not valid: `, test.says)
				return
			}
			if problem != nil {
				t.Fatalf("the problem is %+v", problem)
			}
			if diff := cmp.Diff(test.want, outcome{s.ExistingTunnel(), s.Takeover(), s.DeletionPolicy()}); diff != "" {
				t.Errorf("the settings differ (-want +got):\n%s", diff)
			}
		})
	}
	var none *Settings
	if got := (outcome{none.ExistingTunnel(), none.Takeover(), none.DeletionPolicy()}); got != (outcome{Policy: remove}) {
		t.Errorf("no settings say %+v", got)
	}
}

// An account counts only in the controller's namespace.
func TestAccountNamespace(t *testing.T) {
	parameters := &gatewayv1.ParametersReference{
		Group: v1alpha1.GroupName, Kind: KindTunnelConfiguration, Namespace: new(gatewayv1.Namespace("platform")), Name: "defaults",
	}
	class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "tunnel"}, Spec: gatewayv1.GatewayClassSpec{ParametersRef: parameters}}
	with := &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "defaults"}, Spec: fieldValues["account"]}
	without := &v1alpha1.TunnelConfiguration{ObjectMeta: with.ObjectMeta}
	const elsewhere = "TunnelConfiguration platform/defaults of spec.parametersRef is not valid: spec.account counts only in the controller's namespace, gateways."
	for name, test := range map[string]struct {
		configuration *v1alpha1.TunnelConfiguration
		namespace     string
		says          string
	}{
		"an account in the controller's namespace": {with, "platform", ""},
		"an account elsewhere":                     {with, "gateways", elsewhere},
		"no account elsewhere":                     {without, "gateways", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, ofGateway := Resolve(Input{
				Class: class, ClassConfiguration: test.configuration, Gateway: &gatewayv1.Gateway{}, ControllerNamespace: test.namespace,
			})
			ofClass := ClassProblem(class, test.configuration, test.namespace)
			if test.says != "" {
				wantProblem(t, "the class's", ofClass, test.says)
				wantProblem(t, "the Gateway's", ofGateway, "GatewayClass tunnel is not accepted: "+test.says)
				return
			}
			if ofClass != nil || ofGateway != nil {
				t.Fatalf("the problems are %+v and %+v", ofClass, ofGateway)
			}
			if want := (s.Spec.Account != nil); want != (s.AccountNamespace == "platform") {
				t.Errorf("the namespace of the account is %q", s.AccountNamespace)
			}
		})
	}
}

func TestTunnelsPerNamespace(t *testing.T) {
	for want, class := range map[int]spec{
		10: {}, 0: {Limits: &v1alpha1.Limits{TunnelsPerNamespace: new(int32(0))}}, 3: {Limits: &v1alpha1.Limits{TunnelsPerNamespace: new(int32(3))}},
	} {
		if s, problem := resolve(&class, spec{}); problem != nil || s.TunnelsPerNamespace() != want {
			t.Errorf("the limit is %d (%+v), want %d", s.TunnelsPerNamespace(), problem, want)
		}
	}
	if s, _ := resolve(&spec{Limits: &v1alpha1.Limits{}}, spec{}); s.TunnelsPerNamespace() != 10 {
		t.Errorf("the limit is %d by default", s.TunnelsPerNamespace())
	}
}
