package metrics

// limitGauge returns a function that emits a value for each limit that applies.
func limitGauge(value func(LimitUsage) int) func(Gateway, emitFunc) {
	return func(g Gateway, emit emitFunc) {
		for _, limit := range describedLimits {
			if usage, ok := g.Limits[limit.name]; ok {
				emit(float64(value(usage)), limit.name.Label())
			}
		}
	}
}

// dataPlaneGauge returns a function that emits a value if the DataPlaneReady condition exists.
func dataPlaneGauge(value func(DataPlane) bool) func(Gateway, emitFunc) {
	return func(g Gateway, emit emitFunc) {
		if g.DataPlane != nil {
			emit(boolValue(value(*g.DataPlane)))
		}
	}
}

// connectorGauge returns a function that emits a value if the Gateway has connectors.
func connectorGauge(value func(Connectors) float64) func(Gateway, emitFunc) {
	return func(g Gateway, emit emitFunc) {
		if g.Connectors != nil {
			emit(value(*g.Connectors))
		}
	}
}
