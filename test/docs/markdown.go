package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// root is the repository's root, relative to this package.
var root = filepath.Join("..", "..")

// Page is a Markdown file in the repository.
type Page struct {
	// Path is relative to the repository.
	Path   string
	source []byte
	tree   ast.Node
}

// Pages reads all Markdown files that Git tracks or does not ignore, except
// *head.md, from which other pages are generated.
func Pages() ([]*Page, error) {
	listed, err := exec.Command("git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "-z",
		"*.md", ":!*head.md").Output()
	if err != nil {
		return nil, fmt.Errorf("list the Markdown files: %w", err)
	}
	var pages []*Page
	for path := range strings.SplitSeq(strings.TrimRight(string(listed), "\x00"), "\x00") {
		page, err := read(path)
		if err != nil {
			return nil, err
		}
		pages = append(pages, page)
	}
	return pages, nil
}

func read(path string) (*Page, error) {
	source, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return nil, err
	}
	parser := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
	return &Page{Path: path, source: source, tree: parser.Parse(text.NewReader(source))}, nil
}

// visit calls f for every node with the kind.
func (p *Page) visit(kind ast.NodeKind, f func(ast.Node)) {
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // returns no error
		if entering && n.Kind() == kind {
			f(n)
		}
		return ast.WalkContinue, nil
	})
}

// Links returns the destinations of links and images.
func (p *Page) Links() []string {
	var links []string
	p.visit(ast.KindLink, func(n ast.Node) { links = append(links, string(n.(*ast.Link).Destination)) })
	p.visit(ast.KindImage, func(n ast.Node) { links = append(links, string(n.(*ast.Image).Destination)) })
	return links
}

// Blocks returns the fenced code blocks in a language.
func (p *Page) Blocks(language string) []string {
	var blocks []string
	p.visit(ast.KindFencedCodeBlock, func(n ast.Node) {
		if block := n.(*ast.FencedCodeBlock); string(block.Language(p.source)) == language {
			blocks = append(blocks, string(block.Lines().Value(p.source)))
		}
	})
	return blocks
}

// Anchors returns the fragments that links can refer to: the anchors that GitHub
// generates for the headings, and the IDs of HTML elements.
func (p *Page) Anchors() map[string]bool {
	anchors, seen := map[string]bool{}, map[string]int{}
	p.visit(ast.KindHeading, func(n ast.Node) {
		anchor := slug(p.plainText(n))
		if count := seen[anchor]; count > 0 {
			anchors[fmt.Sprintf("%s-%d", anchor, count)] = true
		} else {
			anchors[anchor] = true
		}
		seen[anchor]++
	})
	p.visit(ast.KindRawHTML, func(n ast.Node) {
		_, rest, found := strings.Cut(string(n.(*ast.RawHTML).Segments.Value(p.source)), `id="`)
		if id, _, closed := strings.Cut(rest, `"`); found && closed {
			anchors[id] = true
		}
	})
	return anchors
}

// plainText returns a node's text without its markup.
func (p *Page) plainText(n ast.Node) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // returns no error
		if leaf, ok := n.(*ast.Text); ok && entering {
			out.Write(leaf.Value(p.source))
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}

// slug returns the anchor that GitHub generates for a heading.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
}
