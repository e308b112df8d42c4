package hooks

// The values of spec.Decommission.OnTimeout.
const (
	OnTimeoutWait    = "Wait"
	OnTimeoutProceed = "Proceed"
)

// The values of spec.Job.After and spec.Job.OnUnknown.
const (
	AfterBootstrapped = "Bootstrapped"
	AfterGrown        = "Grown"
	OnUnknownWait     = "Wait"
	OnUnknownRepeat   = "Repeat"
)
