package binaries

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// versionTimeout is the timeout for a program to print its version.
const versionTimeout = 10 * time.Second

// versionPattern matches the version in the output from --version: "Kubernetes v1.36.3"
// from the API server, and more lines and words from etcd and Envoy.
var versionPattern = regexp.MustCompile(`\b\d+\.\d+\.\d+\b|v\d+\.\d+\.\d+\b`)

type minorRange struct{ major, lowest, highest uint }

// newMinorRange returns the minor version of v and the given number of later ones.
func newMinorRange(v *version.Version, later uint) minorRange {
	return minorRange{v.Major(), v.Minor(), v.Minor() + later}
}

func (r minorRange) contains(v *version.Version) bool {
	return v.Major() == r.major && r.lowest <= v.Minor() && v.Minor() <= r.highest
}

// String returns the minor versions, for example "1.36 or 1.37".
func (r minorRange) String() string {
	var all []string
	for minor := r.lowest; minor <= r.highest; minor++ {
		all = append(all, fmt.Sprintf("%d.%d", r.major, minor))
	}
	return strings.Join(all, " or ")
}

// versionOf returns the version that the program at path prints.
func versionOf(ctx context.Context, path string) (*version.Version, error) {
	if _, err := exec.LookPath(path); err != nil { // path contains a slash, so this checks only the file
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, path, "--version") // #nosec G702 -- the user names the program
	command.WaitDelay = time.Second
	var stdout, stderr limitedOutput
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%s --version: %w: %s", path, err, strings.TrimSpace(string(stderr.text)))
	}
	text := versionPattern.FindString(string(stdout.text))
	if text == "" {
		return nil, fmt.Errorf("%s --version prints no version", path)
	}
	return version.ParseSemantic(text)
}

// limitedOutput is the output from a program that may print without end.
type limitedOutput struct{ text []byte }

// Write fails when the output exceeds maxOutput. The program then has a broken pipe.
func (o *limitedOutput) Write(more []byte) (int, error) {
	const maxOutput = 1 << 16
	if len(o.text)+len(more) > maxOutput {
		return 0, fmt.Errorf("the output exceeds %d bytes", maxOutput)
	}
	o.text = append(o.text, more...)
	return len(more), nil
}
