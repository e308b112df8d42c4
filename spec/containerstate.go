package spec

// ContainerState is what an agent knows of one container of a member. The agent's runtime
// and its planner of operations share it; reports to the server have a word of their own.
type ContainerState string

// The states.
const (
	ContainerAbsent  ContainerState = "Absent"  // there is none
	ContainerCreated ContainerState = "Created" // it was never started
	ContainerRunning ContainerState = "Running"
	ContainerExited  ContainerState = "Exited" // its end was seen
	ContainerLost    ContainerState = "Lost"   // it was started, and how it ended is unknown
)
