package check

// accessStep checks whether the host requires a token of Cloudflare Access, and what an
// anonymous request gets.
func accessStep(e Expectation, v visits) Step {
	return newStep(StepAccess, findings{{Result: Unknown, Message: "not checked"}})
}
