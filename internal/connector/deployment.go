package connector

import (
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
)

const metricsPort int32 = 2000

func deployment(in Input) (*appsv1ac.DeploymentApplyConfiguration, error) {
	return appsv1ac.Deployment(Name(in.Gateway), in.Gateway.Namespace), nil
}
