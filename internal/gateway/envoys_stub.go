package gateway

type Envoys struct {
	Connected, Wanted              int
	Known, Published, Acknowledged bool
	Rejected                       string
	AccessPending                  []string
}
