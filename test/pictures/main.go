// Command pictures renders the pictures of the documentation: for each docs/pictures/*.d2
// except style.d2, it writes an SVG file with a light and a dark theme. It is a separate
// module so that D2 is not a dependency of the product.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"oss.terrastruct.com/d2/d2graph"
	"oss.terrastruct.com/d2/d2layouts/d2dagrelayout"
	"oss.terrastruct.com/d2/d2lib"
	"oss.terrastruct.com/d2/d2renderers/d2svg"
	"oss.terrastruct.com/d2/d2target"
	"oss.terrastruct.com/d2/lib/log"
	"oss.terrastruct.com/d2/lib/textmeasure"
)

// directory contains the sources and the pictures.
const directory = "../../docs/pictures"

// color is a role in the themes of style.d2, which have a light and a dark value for it.
type color = string

// style is the appearance of a class of boxes or arrows.
type style struct{ fill, line, text color }

// styles are the colors of each class. D2 sources cannot name a color of a theme.
var styles = map[string]style{
	"frame":    {fill: "N7", line: "N7", text: "N1"},
	"group":    {fill: "B4", line: "B5", text: "N1"},
	"box":      {fill: "B6", line: "B1", text: "N1"},
	"success":  {fill: "AB5", line: "AB4", text: "N1"},
	"problem":  {fill: "AA5", line: "AA2", text: "N1"},
	"note":     {fill: "N7", line: "B5", text: "N1"},
	"arrow":    {line: "B2", text: "N2"},
	"optional": {line: "B2", text: "N2"},
	"rejected": {line: "AA2", text: "AA2"},
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	names, err := pictures()
	if err != nil {
		return err
	}
	for _, name := range names {
		_, svg, err := render(ctx, name)
		if err != nil {
			return fmt.Errorf("failed to render %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(directory, name+".svg"), svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pictures returns the names of all pictures, without directory and extension.
func pictures() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.d2"))
	var names []string
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".d2"); name != "style" {
			names = append(names, name)
		}
	}
	return names, err
}

// render returns the picture as a diagram and as an SVG file. The same source always
// gives the same bytes.
func render(ctx context.Context, name string) (*d2target.Diagram, []byte, error) {
	source, err := os.ReadFile(filepath.Join(directory, name+".d2"))
	if err != nil {
		return nil, nil, err
	}
	ruler, err := textmeasure.NewRuler()
	if err != nil {
		return nil, nil, err
	}
	compile := &d2lib.CompileOptions{
		Ruler:     ruler,
		InputPath: name + ".d2",
		FS:        os.DirFS(directory), // for style.d2
		LayoutResolver: func(string) (d2graph.LayoutGraph, error) {
			return d2dagrelayout.DefaultLayout, nil
		},
	}
	scale := 1.0 // without a scale, the picture would fill the page
	options := &d2svg.RenderOpts{Scale: &scale}
	ctx = log.With(ctx, slog.New(slog.DiscardHandler))
	diagram, _, err := d2lib.Compile(ctx, string(source), compile, options)
	if err != nil {
		return nil, nil, err
	}
	if err := paint(diagram); err != nil {
		return nil, nil, err
	}
	svg, err := d2svg.Render(diagram, options)
	return diagram, svg, err
}

// paint sets the colors of all boxes and arrows.
func paint(diagram *d2target.Diagram) error {
	for i := range diagram.Shapes {
		shape := &diagram.Shapes[i]
		s, err := styleOf(shape.ID, shape.Classes)
		if err != nil {
			return err
		}
		shape.Fill, shape.Stroke, shape.Color = s.fill, s.line, s.text
	}
	for i := range diagram.Connections {
		connection := &diagram.Connections[i]
		s, err := styleOf(connection.ID, connection.Classes)
		if err != nil {
			return err
		}
		connection.Stroke, connection.Color = s.line, s.text
	}
	return nil
}

func styleOf(id string, classes []string) (style, error) {
	for _, class := range classes {
		if s, ok := styles[class]; ok {
			return s, nil
		}
	}
	return style{}, fmt.Errorf("%s has no class with a color", id)
}
