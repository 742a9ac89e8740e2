package ui

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"
)

// screenshots is the directory with the documentation's pictures.
const screenshots = root + "/docs/ui"

// screenshot is a picture of a page with the demo.
type screenshot struct {
	name, path, theme string
	width, height     int64
}

var allScreenshots = []screenshot{
	{"overview", "/", "light", 1280, 800},
	{"hostname", "/hostname?gateway=platform%2Fenvoy&name=shop.example.com", "light", 1280, 560},
	{"why-dark", "/why?url=https%3A%2F%2Fteam-a.example.com%2Fapi%2Forders", "dark", 1280, 800},
	{"picture", "/picture?namespace=team-b", "light", 1280, 560},
	{"hostnames-phone", "/hostnames", "dark", 390, 800},
}

const (
	maxScreenshot = 150 << 10 // bytes
	// maxDifference is the greatest mean difference in brightness, from 0 to 255. Two
	// versions differ by less than 1.
	maxDifference = 4
)

// stableScript replaces what differs between two demos, and removes the focus.
const stableScript = `(() => {
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) {
		const node = walker.currentNode;
		const text = node.data.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "f70ff985-a4ef-4643-bbbc-4a0ed4fc8415")
			.replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, "2026-07-01 12:00:00").replace(/\b127\.96\.\d+\.\d+/g, "10.96.0.10").replace(/127\.0\.0\.1:\d+/g, "127.0.0.1:6443");
		if (text !== node.data) node.data = text;
	}
	document.activeElement?.blur();
	scrollTo(0, 0);
	return document.body.innerText.replace(/\s+/g, " ").trim();
})()`

// TestScreenshots compares the pictures for the documentation with the page: they must show its
// text, and must look alike. With -update, it takes them again.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	d := theDemo(t)
	d.unchanged.Lock()
	defer d.unchanged.Unlock()
	p := serve(t, d.environment())
	b := newTab(t)
	b.open(p.link)
	for _, s := range allScreenshots {
		t.Run(s.name, func(t *testing.T) {
			b.in(t)
			b.size(s.width, s.height)
			b.theme(s.theme)
			b.open(p.site + s.path)
			text := eval[string](b, stableScript)
			picture := call(b, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{}).Data
			file := filepath.Join(screenshots, s.name+".png")
			if *update {
				writeScreenshot(t, file, picture, text)
				return
			}
			compareScreenshot(t, file, picture, text)
		})
	}
}

func writeScreenshot(t *testing.T, file string, picture []byte, text string) {
	t.Helper()
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, withPalette(decoded)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, withText(out.Bytes(), text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// withPalette reduces the picture to 256 colors: the most frequent ones, without colors that are
// similar to a more frequent one.
func withPalette(picture image.Image) *image.Paletted {
	bounds, counts := picture.Bounds(), map[color.Color]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[picture.At(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	palette, groups := color.Palette{}, map[[3]uint32]bool{}
	for _, c := range colors {
		r, g, b, _ := c.RGBA()
		const bits, frequent = 12, 16 // similar colors differ in the lower 12 bits; frequent ones stay as they are
		if group := [3]uint32{r >> bits, g >> bits, b >> bits}; len(palette) < 256 && (!groups[group] || len(palette) < frequent) {
			groups[group], palette = true, append(palette, c)
		}
	}
	paletted := image.NewPaletted(bounds, palette)
	draw.Draw(paletted, bounds, picture, bounds.Min, draw.Src)
	return paletted
}

func compareScreenshot(t *testing.T, file string, picture []byte, text string) {
	t.Helper()
	const advice = "; `go test -C test/ui -run Screenshots -update` takes the picture again"
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v%s", err, advice)
	}
	if len(old) > maxScreenshot {
		t.Errorf("%s has %d bytes, more than %d", file, len(old), maxScreenshot)
	}
	if got := textOf(old); got != text {
		t.Errorf("%s shows\n%s\nbut the page shows\n%s%s", file, got, text, advice)
	}
	before, after := decodeGray(t, old), decodeGray(t, picture)
	if before.Bounds() != after.Bounds() {
		t.Fatalf("%s has the size %v, not %v%s", file, before.Bounds(), after.Bounds(), advice)
	}
	if difference := meanDifference(before, after); difference > maxDifference {
		t.Errorf("%s differs from the page by %.1f, at most %d is permitted%s", file, difference, maxDifference, advice)
	}
}

// The page's text is in the PNG's chunk tEXt, as image viewers show it.
const (
	keyword   = "Description\x00"
	pngHeader = 8 + 25 // signature and IHDR
)

func withText(picture []byte, text string) []byte {
	content := append([]byte("tEXt"+keyword), text...)
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(content)-4)) // #nosec G115 -- a page's text is short
	chunk = append(chunk, content...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(content))
	return bytes.Join([][]byte{picture[:pngHeader], chunk, picture[pngHeader:]}, nil)
}

// textOf returns the text that withText added, or "".
func textOf(picture []byte) string {
	if len(picture) < pngHeader+8 {
		return ""
	}
	size, rest := binary.BigEndian.Uint32(picture[pngHeader:]), picture[pngHeader+4:]
	if uint64(size)+4 > uint64(len(rest)) {
		return ""
	}
	text, ok := bytes.CutPrefix(rest[:4+size], []byte("tEXt"+keyword))
	if !ok {
		return ""
	}
	return string(text)
}

func decodeGray(t *testing.T, picture []byte) *image.Gray {
	t.Helper()
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	const block = 8 // pixels, so that a letter's exact shape does not matter
	size := decoded.Bounds().Size().Div(block)
	gray := image.NewGray(image.Rectangle{Max: size})
	for y := range size.Y {
		for x := range size.X {
			var sum uint32
			for dy := range block {
				for dx := range block {
					r, g, b, _ := decoded.At(x*block+dx, y*block+dy).RGBA()
					sum += (r + g + b) / 3 >> 8
				}
			}
			gray.Pix[gray.PixOffset(x, y)] = uint8(sum / block / block)
		}
	}
	return gray
}

func meanDifference(a, b *image.Gray) float64 {
	sum := 0
	for i := range a.Pix {
		sum += max(int(a.Pix[i])-int(b.Pix[i]), int(b.Pix[i])-int(a.Pix[i]))
	}
	return float64(sum) / float64(len(a.Pix))
}

func TestAScreenshotContainsItsText(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, 16, 16))); err != nil {
		t.Fatal(err)
	}
	picture := withText(out.Bytes(), "text of a page – ✓")
	if got := textOf(picture); got != "text of a page – ✓" {
		t.Errorf("the picture contains %q", got)
	}
	if got := fmt.Sprint(decodeGray(t, picture).Bounds().Size()); got != "(2,2)" {
		t.Errorf("the picture cannot be decoded: %s", got)
	}
}
