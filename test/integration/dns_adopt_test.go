package integration

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
)

var _ = Describe("dns adopt", records, func() {
	It("puts existing records under the controller's management", func(ctx SpecContext) {
		a := newAdoption(ctx)
		a.showRecords()
		a.adoptRecords()
		a.refuseChangedRecord()
		a.undoAdoption()
		a.adoptAfterALostKey(ctx)
	})
})

// The API tokens: one for the command, and one for commands that restore records.
const (
	readToken = "read-token"
	editToken = "edit-token"
)

// adoption is an environment with records that the controller has not created.
type adoption struct {
	*dnsEnvironment
	gateway    *gatewayv1.Gateway
	kubeconfig string // of a user with the documented permissions
}

// newAdoption creates a Gateway that uses the names of existing records.
func newAdoption(ctx context.Context) *adoption {
	GinkgoHelper()
	a := &adoption{dnsEnvironment: newDNSEnvironment()}
	a.cloudflare.Restrict(readToken, simulator.Grant{Permissions: []simulator.Permission{simulator.ZoneRead, simulator.DNSRead}})
	a.cloudflare.Restrict(editToken, simulator.Grant{Permissions: []simulator.Permission{simulator.DNSEdit}})
	a.kubeconfig = a.administrator(ctx)
	a.start()
	a.gateway = a.environment.gateway("shared", "own.example.com", "hand.example.com", "balancer.example.com", "changed.example.com")
	a.create(a.gateway, a.sectionRoute("shared", 0))
	Eventually(a.names).Should(ConsistOf("own.example.com"))
	a.addRecord("hand.example.com", "CNAME", a.tunnel("shared")+".cfargotunnel.com")
	a.addRecord("balancer.example.com", "A", "192.0.2.7")
	a.addRecord("changed.example.com", "A", "192.0.2.8")
	for listener := 1; listener <= 3; listener++ {
		a.create(a.sectionRoute("shared", listener))
	}
	Eventually(dnsCondition(a.gateway)).Should(Equal("False RecordConflict"))
	return a
}

// administrator creates a user with the permissions in docs/plan.md and the Role in
// docs/commands.md, and returns a kubeconfig for the user.
func (a *adoption) administrator(ctx context.Context) string {
	GinkgoHelper()
	user, err := createViewer(ctx, kube, "")
	Expect(err).NotTo(HaveOccurred())
	role, err := createUserWith(ctx, kube, "commands.md", "tunnel-gateway-adopt", a.controllerNamespace, "")
	Expect(err).NotTo(HaveOccurred())
	granted := latest(newObject(rbacAPI, "Role", a.controllerNamespace, role))
	Expect(bind(ctx, kube, user, a.controllerNamespace, granted)).To(Succeed())
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(impersonate(kubeconfig, user, path)).To(Succeed())
	return path
}

// startAdopt starts dns adopt.
func (a *adoption) startAdopt(arguments ...string) *gexec.Session {
	GinkgoHelper()
	flags := []string{"--kubeconfig", a.kubeconfig, "--controller-name", a.controllerName, "--controller-namespace", a.controllerNamespace}
	command := exec.Command(binary, append(append([]string{"dns", "adopt"}, arguments...), flags...)...)
	command.Env = append(os.Environ(), "CLOUDFLARE_API_TOKEN="+readToken, "CLOUDFLARE_BASE_URL="+a.apiURL)
	session, err := gexec.Start(command, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(session.Kill)
	return session
}

// adopted is a record in the output.
type adopted struct{ Name, Action, Result, Message string }

// adopt runs dns adopt, which must succeed, and returns the records.
func (a *adoption) adopt(arguments ...string) []adopted {
	GinkgoHelper()
	session := a.startAdopt(append(arguments, "-o", "json")...)
	Eventually(session).Should(gexec.Exit(0))
	return decodeAdopted(session)
}

func decodeAdopted(session *gexec.Session) []adopted {
	GinkgoHelper()
	var output struct{ Records []adopted }
	if text := session.Out.Contents(); len(text) > 0 {
		Expect(json.Unmarshal(text, &output)).To(Succeed())
	}
	return output.Records
}

// requests returns the annotation with the requests.
func (a *adoption) requests() string {
	GinkgoHelper()
	return a.tunnelObject(a.gateway).Annotations[v1alpha1.AdoptRecordsAnnotation]
}

func (a *adoption) showRecords() {
	GinkgoHelper()
	By("showing the records")
	before := a.database.Records(a.zone)
	shown := a.adopt("hand.example.com", "balancer.example.com", "--dry-run")
	Expect(shown).To(Equal([]adopted{{Name: "hand.example.com", Action: "mark"}, {Name: "balancer.example.com", Action: "replace"}}))

	By("asking on something that is not a terminal")
	session := a.startAdopt("hand.example.com", "balancer.example.com")
	Eventually(session).Should(gexec.Exit(1))
	Expect(string(session.Err.Contents())).To(ContainSubstring("records that lead elsewhere (balancer.example.com), and the command cannot ask"))
	Expect(a.database.Records(a.zone)).To(Equal(before))
	Expect(a.requests()).To(BeEmpty())
}

func (a *adoption) adoptRecords() {
	GinkgoHelper()
	By("adopting a record that leads to the Gateway, and one of a former load balancer")
	ids := []string{a.recordID("hand.example.com"), a.recordID("balancer.example.com")}
	check := a.keepLookingUp("hand.example.com", a.tunnel("shared"))
	result := a.adopt("hand.example.com", "balancer.example.com", "--yes")
	check()
	Expect(result).To(HaveLen(2))
	Expect(result).To(HaveEach(HaveField("Result", "Adopted")))
	Expect(a.records()).To(ConsistOf(
		a.cname("own.example.com", "shared"), a.cname("hand.example.com", "shared"), a.cname("balancer.example.com", "shared"),
		"changed.example.com A 192.0.2.8"))
	a.expectMarks("own.example.com", "hand.example.com", "balancer.example.com")
	Expect([]string{a.recordID("hand.example.com"), a.recordID("balancer.example.com")}).To(Equal(ids))
	Expect(a.request("balancer.example.com")).To(Equal("web"))
	Eventually(a.requests).Should(Or(BeEmpty(), Equal("[]")))

	By("adopting the same record again")
	Expect(a.adopt("hand.example.com")).To(HaveEach(HaveField("Result", "Adopted")))
}

func (a *adoption) refuseChangedRecord() {
	GinkgoHelper()
	By("changing a record between the request and the adoption")
	a.stop()
	session := a.startAdopt("changed.example.com", "--yes", "-o", "json")
	Eventually(a.requests).Should(ContainSubstring("192.0.2.8"))
	_, err := a.database.Patch(a.zone, a.recordID("changed.example.com"), zones.Fields{Content: new("192.0.2.9")})
	Expect(err).NotTo(HaveOccurred())
	a.start()
	Eventually(session).Should(gexec.Exit(1))
	Expect(decodeAdopted(session)).To(HaveExactElements(And(HaveField("Result", "Refused"), HaveField("Message", ContainSubstring("has changed")))))
	Expect(a.records()).To(ContainElement("changed.example.com A 192.0.2.9"))
}

func (a *adoption) undoAdoption() {
	GinkgoHelper()
	By("undoing the adoption with the command in the status")
	message := ""
	for _, result := range a.tunnelObject(a.gateway).Status.DNS.Adoptions {
		if result.Name == "balancer.example.com" {
			message = result.Message
		}
	}
	_, command, found := strings.Cut(message, "then run: ")
	Expect(found).To(BeTrue(), message)
	a.changeSettings(func(s *v1alpha1.TunnelConfigurationSpec) { s.DNS.Exclude = []string{"balancer.example.com"} })
	Eventually(a.comment).WithArguments("balancer.example.com").Should(BeEmpty())
	undo := exec.Command("sh", "-c", strings.ReplaceAll(command, "https://api.cloudflare.com/client/v4", a.apiURL))
	undo.Env = append(os.Environ(), "CLOUDFLARE_API_TOKEN="+editToken)
	output, err := undo.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	Expect(a.records()).To(ContainElement("balancer.example.com A 192.0.2.7"))
	session := a.startAdopt("balancer.example.com")
	Eventually(session).Should(gexec.Exit(1))
	Expect(string(session.Err.Contents())).To(ContainSubstring("excludes the hostname"))
	Expect(a.records()).To(ContainElement("balancer.example.com A 192.0.2.7"))
}

func (a *adoption) adoptAfterALostKey(ctx context.Context) {
	GinkgoHelper()
	By("adopting all records after the key was lost")
	Expect(a.adopt("--leading-here")).To(BeEmpty())
	a.waitUntilIdle(ctx)
	a.stop()
	before := a.comment("own.example.com")
	a.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.controllerNamespace, Name: signingKey}})
	a.start()
	Eventually(func() map[string]int32 { return a.tunnelObject(a.gateway).Status.DNS.Hostnames }).Should(Equal(map[string]int32{"External": 2, "RecordConflict": 1}))
	Expect(a.comment("own.example.com")).To(Equal(before))
	Expect(a.adopt("--leading-here")).To(ConsistOf(
		And(HaveField("Name", "hand.example.com"), HaveField("Result", "Adopted")), And(HaveField("Name", "own.example.com"), HaveField("Result", "Adopted"))))
	Expect(a.comment("own.example.com")).NotTo(Equal(before))
	a.expectMarks("own.example.com", "hand.example.com")
}
