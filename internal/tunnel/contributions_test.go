package tunnel

import (
	"testing"
	"time"
)

func TestThrottlingEventNamesTheNamespacesWithMostChanges(t *testing.T) {
	limit := UpdateLimit{Burst: 20, Interval: 20 * time.Second}
	begin := "The controller wrote the configuration of the tunnel "
	end := " times within 10 minutes, so limits.configurationUpdates now delays each change by up to 20s."
	for name, test := range map[string]struct {
		// writes contains the namespaces behind one write per minute; the last write is
		// now.
		writes [][]string
		want   string
	}{
		"one namespace":                     {[][]string{{"a"}, {"a"}}, "2" + end + " Namespaces whose objects changed: a (2)."},
		"the largest number first":          {[][]string{{"a"}, {"a", "b"}, {"b"}, {"b"}}, "4" + end + " Namespaces whose objects changed: b (3), a (2)."},
		"at most three namespaces":          {[][]string{{"a", "b", "c", "d", "e"}, {"e"}}, "2" + end + " Namespaces whose objects changed: e (2), a (1), b (1), and 2 more."},
		"writes without changes of objects": {[][]string{nil, nil}, "2" + end},
		"old writes do not count":           {append([][]string{{"old"}}, make([][]string, 10)...), "10" + end},
	} {
		t.Run(name, func(t *testing.T) {
			var c Contributions
			for i, namespaces := range test.writes {
				c = c.Add(uptime-time.Duration(len(test.writes)-1-i)*time.Minute, namespaces)
			}
			e := c.Event(uptime, limit)
			if e.Message != begin+test.want || !e.Reason.IsWarning() {
				t.Errorf("the event is %q (warning: %t), want the warning %q", e.Message, e.Reason.IsWarning(), begin+test.want)
			}
		})
	}
}

func TestContributionsDoNotGrowWithoutLimit(t *testing.T) {
	var c Contributions
	for i := range 10000 {
		c = c.Add(uptime+time.Duration(i)*time.Second, nil)
	}
	if got, most := len(c.writes), int(ContributionWindow/time.Second); got > most {
		t.Errorf("%d writes are stored, want at most %d", got, most)
	}
}
