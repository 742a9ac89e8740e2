package plan

// Problems describes the first condition of each object that does not have its expected
// status, in the order of [Plan.Statuses].
func (p *Plan) Problems() []string {
	problems := []string{}
	for _, status := range p.Statuses {
		owner := Owner{status.Kind, status.Namespace, status.Name}
		for _, list := range status.conditions {
			if c := firstUnexpected(list); c != nil {
				problems = append(problems, owner.String()+": "+c.Type+" "+string(c.Status)+" ("+c.Reason+"): "+c.Message)
				break
			}
		}
	}
	return problems
}
