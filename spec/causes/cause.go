package causes

// Cause is one word for what is wrong with a life, a container of it, or a volume, or for
// why a life is over. All causes are listed here, and nowhere else: nodes write them, the
// planner decides by some (ownCause in server/plan), and people look them up in
// docs/OPERATIONS.md. A node of a later version may say one that this server does not know.
//
// Other kinds of words, some of which are spelled alike, are no causes: the state of a
// container (Exited, Lost), a Phase (Stopped), a VolumeState (Refused), the Reason for
// which a life was begun or ended, the kind of an event, and the planner's words for what a
// member waits for (Blocked…; those of them that are a cause as well are made from
// it). The Cause of a Hold is a sentence.
type Cause string

// What a life waits for. The agent's worker says these, from what step.Next decides.
const (
	Stray              Cause = "Stray"              // containers of the identity are there that this node cannot account for; also said by the planner
	RuntimeUnavailable Cause = "RuntimeUnavailable" // the container runtime does not answer; running members are not affected
	ConfigMissing      Cause = "ConfigMissing"      // a ConfigMap, Secret or key of the template is not there
	ProcessLeft        Cause = "ProcessLeft"        // processes of the member are there although no container runs
	Unconfirmed        Cause = "Unconfirmed"        // it is guarded, and no server confirmed the node within its bound
	Initializing       Cause = "Initializing"       // one of its init containers runs, or a sidecar has not started yet
	Pulling            Cause = "Pulling"            // an image of it has been pulled for a while
	VolumeGroup        Cause = "VolumeGroup"        // a volume of it has been given to its fsGroup for a while
	Unwatched          Cause = "Unwatched"          // it is guarded, and no watchdog on its node guards it yet
	Grace              Cause = "Grace"              // it was asked to stop, and has time to; not reported, the phase says it
)

// What an operation of the agent failed with. The worker says these, and tries again.
const (
	ImageMissing  Cause = "ImageMissing"  // the image is not on the node, and may not or cannot be pulled
	ImagePull     Cause = "ImagePull"     // the registry did not give the image, or there is no room for it
	StartError    Cause = "StartError"    // the container cannot be created or started, or that takes too long
	SandboxError  Cause = "SandboxError"  // the namespaces could not be made
	NetworkError  Cause = "NetworkError"  // the link could not be made
	HostPortTaken Cause = "HostPortTaken" // a port of the host that the member asks for is another's; also said by the planner
	FilesError    Cause = "FilesError"    // the member's files could not be written
	LedgerError   Cause = "LedgerError"   // the agent's ledger could not be written
	StopError     Cause = "StopError"     // what stops the life, or clears up after it, failed
)

// Why a volume could not be had, given up or brought back. The agent says these, of a life
// (Report) or of the volume (VolumeReport): see runtime.VolumeCause.
const (
	VolumeMissing  Cause = "VolumeMissing"  // it was made on this node, or used, and is not there
	VolumeForeign  Cause = "VolumeForeign"  // another's stands in its place
	VolumeOccupied Cause = "VolumeOccupied" // something stands there that is no volume, or uses it
	DiskMissing    Cause = "DiskMissing"    // its storage class, or the disk or directory of that, is not there
	VolumeNoSpace  Cause = "VolumeNoSpace"  // its class keeps sizes, and the disk has no room for a new one
	VolumeDamaged  Cause = "VolumeDamaged"  // its own file system needs repair
	VolumeSealed   Cause = "VolumeSealed"   // a move sealed it: its copy on another node may be the volume
	VolumeRefused  Cause = "VolumeRefused"  // anything else
)

// What is wrong with a container. The worker says these, of the container and of its life.
const (
	Exited       Cause = "Exited"       // its process ended, for the first time in a while
	Lost         Cause = "Lost"         // it ended, and its exit code is not known; as Exited
	CrashLoop    Cause = "CrashLoop"    // Exited or Lost again and again; each start waits longer
	OOMKilled    Cause = "OOMKilled"    // the kernel killed it for the memory that it, or all members of the host, used
	Unhealthy    Cause = "Unhealthy"    // its liveness or startup probe failed for good
	NotReady     Cause = "NotReady"     // it runs, and its readiness probe says why it is not ready; also said by the planner
	LogLost      Cause = "LogLost"      // its logger was killed: what it writes is lost
	ProcessLimit Cause = "ProcessLimit" // it was refused a process or thread
	ConfigGone   Cause = "ConfigGone"   // a ConfigMap, Secret or key was deleted, of which it has the files; nothing waits for it

	FailedPostStartHook Cause = "FailedPostStartHook" // its postStart hook failed: it is stopped, and started again
	FailedPreStopHook   Cause = "FailedPreStopHook"   // its preStop hook failed, or did not return in time; the stop continues
)

// Why a life is over. The worker says these in its last report, but for Fenced; with
// Stopped, Reboot, Refused and DeadlinePassed the ledger closes its token.
const (
	Stopped        Cause = "Stopped"        // it was ended by an order and seen gone; in the ledger only, the phase says it
	Reboot         Cause = "Reboot"         // the node was booted since it was begun
	Refused        Cause = "Refused"        // it was never started there and never will be; in the ledger only: see the next two
	OtherBoot      Cause = "OtherBoot"      // refused, for the node was booted since the life was assigned to it
	Restored       Cause = "Restored"       // refused, for the store was restored since; also said by the planner, of nodes
	DeadlinePassed Cause = "DeadlinePassed" // it was guarded, and no server confirmed its node in time
	Fenced         Cause = "Fenced"         // a person or the fence command said that its host is off; dispatch says it
)
