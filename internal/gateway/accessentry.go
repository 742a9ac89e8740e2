package gateway

// AccessEntry returns the hostname of the entry of listenerConfigurations that demands
// protection for a hostname of the table, and false if another level or nothing demands it. An
// entry with another hostname demands it for all hostnames that its own covers.
func (r *Result) AccessEntry(hostname string) (string, bool) {
	if r.accessible == nil {
		return "", false
	}
	d := r.accessible.decided[hostname]
	return d.entry, d.block != nil && d.policy == nil
}
