package web

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// pictureContent is what templates/picture.html shows.
type pictureContent struct {
	Gateway, Hostname, Namespace string // as in the URL
	Choices                      choices
	// Problem is why there are no Nodes; empty without a choice. Similar are other hostnames.
	Problem string
	Similar []*plan.HostnameRow
	Nodes   []pictureNode
	// Omitted says what the picture leaves out; empty if it is complete.
	Omitted string
}

// pictureNode is a node with its link and the nodes behind it.
type pictureNode struct {
	plan.GraphNode
	Link string
	To   []pictureEdge
}

// pictureEdge leads to a node.
type pictureEdge struct {
	*pictureNode
	Problem string
}

// ID identifies the node in the picture, also in a later one.
func (n *pictureNode) ID() string {
	return strings.Join([]string{n.Kind, n.Namespace, n.Name, n.Gateway}, " ")
}

// Label is the node's name, after the namespace if it has one.
func (n *pictureNode) Label() string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "/" + n.Name
}

func (c pictureContent) status() int {
	if c.Problem != "" {
		return http.StatusNotFound
	}
	return http.StatusOK
}

// Suggested are the namespaces that the form suggests.
func (c pictureContent) Suggested() []string { return hostnamesContent{Choices: c.Choices}.Suggested() }

// picture shows how requests for a hostname, or for a namespace's hostnames, get to Services.
func picture(v *visit) (any, error) {
	query, all := v.URL.Query(), v.Hostnames()
	c := pictureContent{Gateway: query.Get("gateway"), Hostname: query.Get("hostname"), Namespace: query.Get("namespace"), Choices: v.tables.choices}
	if c.Hostname == "" && c.Namespace == "" {
		return c, nil
	}
	selection := plan.GraphSelection{Gateway: c.Gateway, Namespace: c.Namespace}
	if c.Hostname != "" {
		selection.Hostname = new(hostnameIn(c.Hostname))
	}
	graph := v.Plan.NewGraph(all, selection)
	if len(graph.Nodes) == 0 {
		c.Problem = c.notFound()
		if selection.Hostname != nil {
			c.Similar = all.Similar(*selection.Hostname, similarHostnames)
		}
		return c, nil
	}
	c.Nodes, c.Omitted = newPictureNodes(graph), omittedText(graph)
	return c, nil
}

// similarHostnames is how many similar hostnames the page suggests.
const similarHostnames = 5

// notFound says what the selection does not find.
func (c *pictureContent) notFound() string {
	text := "No hostname or route"
	if c.Hostname != "" {
		text += fmt.Sprintf(" has the hostname %s", c.Hostname)
		if c.Namespace != "" {
			text += " and"
		}
	}
	if c.Namespace != "" {
		text += fmt.Sprintf(" concerns the namespace %s", c.Namespace)
	}
	if c.Gateway != "" {
		text += " on Gateway " + c.Gateway
	}
	return text + "."
}

func newPictureNodes(g *plan.Graph) []pictureNode {
	nodes := make([]pictureNode, len(g.Nodes))
	for i, n := range g.Nodes {
		nodes[i] = pictureNode{GraphNode: n, Link: nodeLink(&n)}
	}
	for _, e := range g.Edges {
		nodes[e.From].To = append(nodes[e.From].To, pictureEdge{&nodes[e.To], e.Problem})
	}
	return nodes
}

// nodeLink returns a link to the page that shows most about the node.
func nodeLink(n *plan.GraphNode) string {
	object := n.Namespace + "/" + n.Name
	switch n.Kind {
	case plan.KindHostname:
		return hostnameLink(n.Gateway, n.Name)
	case "Gateway":
		return hostnamesLink(object, "")
	case "Service", "ServiceImport":
		return linkTo("/picture", "namespace", n.Namespace)
	default:
		return linkTo("/hostnames", "q", n.Kind+" "+object)
	}
}

// omittedText says what the graph leaves out, or "".
func omittedText(g *plan.Graph) string {
	if len(g.Omitted) == 0 {
		return ""
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(g.Omitted)) {
		parts = append(parts, fmt.Sprintf("%d × %s", g.Omitted[kind], kind))
	}
	return fmt.Sprintf("The picture shows the first %d objects, because more are not readable. It leaves out %s. Choose a hostname to see less.",
		len(g.Nodes), strings.Join(parts, ", "))
}
