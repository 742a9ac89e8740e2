package cluster

import (
	"os/exec"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestUnexpectedEndOfTheControllersIsReported(t *testing.T) {
	c, err := startProcess(exec.Command("sh", "-c", "exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	<-c.ended
	for name, err := range map[string]error{
		"wait": c.wait(t.Context(), &rest.Config{Host: "127.0.0.1:1"}), "stop": c.stop(),
	} {
		if err == nil || !strings.Contains(err.Error(), "exit status 3") {
			t.Errorf("%s: got error %v, want an error that contains the exit status", name, err)
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
		t.Error("the process still runs")
	}
}
