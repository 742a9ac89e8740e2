package v1alpha1

import "testing"

func TestDurationIsAPositiveNumberOfWholeSeconds(t *testing.T) {
	for text, want := range map[Duration]int64{
		"1s": 1, "90s": 90, "1m30s": 90, "1h": 3600, "2h3m4s": 7384, "99999h99999m99999s": 366096339,
	} {
		if got, err := text.Seconds(); err != nil || got != want {
			t.Errorf("Seconds of %q = %d, %v; want %d", text, got, err, want)
		}
	}
	if got, err := Delay("0s").Seconds(); err != nil || got != 0 {
		t.Errorf("Seconds of the delay 0s = %d, %v; want 0", got, err)
	}
	for _, text := range []Delay{"", "-1s", "1500ms", "30", "long"} {
		if got, err := text.Seconds(); err == nil {
			t.Errorf("Seconds of the delay %q = %d, want an error", text, got)
		}
	}
	for _, text := range []Duration{"", "0s", "-1s", "1500ms", "30", "long"} {
		if got, err := text.Seconds(); err == nil {
			t.Errorf("Seconds of %q = %d, want an error", text, got)
		}
	}
}
