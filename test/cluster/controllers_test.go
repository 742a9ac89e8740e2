package cluster

import (
	"os/exec"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// TestEndOfControllersIsTold: the caller learns of it when it waits for them
// and when it stops them.
func TestEndOfControllersIsTold(t *testing.T) {
	c, err := startProcess(exec.Command("sh", "-c", "exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	<-c.ended
	for name, err := range map[string]error{
		"waiting": c.wait(t.Context(), &rest.Config{Host: "127.0.0.1:1"}), "stopping": c.stop(),
	} {
		if err == nil || !strings.Contains(err.Error(), "exit status 3") {
			t.Errorf("%s: got error %v, want how it ended", name, err)
		}
	}
}

func TestStopEndsControllers(t *testing.T) {
	c, err := startProcess(exec.Command("sleep", "600"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
	if c.exitError() == nil {
		t.Error("it still runs")
	}
}
