package causes

// BlockedReason is the one word for why a member waits. It is one of the list below, or the
// cause that its report gives (Cause): those made from a cause are one word to people, in
// whichever of the two ways it is said.
type BlockedReason string

// The reasons of the planner.
const (
	BlockedPredecessor  BlockedReason = "WaitingForPredecessor"      // OrderedReady: one before it is not available
	BlockedSuccessor    BlockedReason = "WaitingForSuccessor"        // it stops after the one above it is gone
	BlockedSurvivors    BlockedReason = "WaitingForSurvivors"        // surplus stays until the survivors are available
	BlockedTurn         BlockedReason = "WaitingForTurn"             // it is well, and updated after others
	BlockedPaused       BlockedReason = "Paused"                     // it is well, and updated after the rollout is resumed
	BlockedBusy         BlockedReason = "Busy"                       // it, or a member before it, says that it should not be stopped now
	BlockedFloor        BlockedReason = "DisruptionFloor"            // it is well, and fewer than the floor would be left
	BlockedNodeSilent   BlockedReason = "NodeSilent"                 // its node has no live session; silence proves nothing
	BlockedFence        BlockedReason = "FenceFailed"                // its node is silent, and the fence command did not prove it off
	BlockedNodeReboot   BlockedReason = "NodeRebooted"               // its node booted since, and has not said what became of it
	BlockedReconnected  BlockedReason = "NodeReconnected"            // its node has a new session, and has not reported on it there
	BlockedNoNode       BlockedReason = "NoNode"                     // no node may take it
	BlockedNoRoom       BlockedReason = "NoRoom"                     // the nodes that might take it have too little left of what it asks for
	BlockedPressure     BlockedReason = "NodePressure"               // the nodes that might take it are short of disk, memory or processes, or have no network
	BlockedHostPort                   = BlockedReason(HostPortTaken) // the nodes that might take it have one of its host ports taken
	BlockedNoClass      BlockedReason = "NoStorageClass"             // no node that could take it has the storage class
	BlockedNoGuard      BlockedReason = "NoGuard"                    // its lives are to be guarded, and no node that could take it does that
	BlockedAgentTooOld  BlockedReason = "AgentTooOld"                // agents of the nodes that could take it do not know a field of its template
	BlockedCordoned     BlockedReason = "Cordoned"                   // its volumes are on a node that takes no new lives
	BlockedAddress      BlockedReason = "NoAddress"                  // no address is free
	BlockedStray                      = BlockedReason(Stray)         // a node runs a life of it that the store does not know
	BlockedHeld         BlockedReason = "Held"                       // the store went back, and nobody has declared its restore
	BlockedAwaiting     BlockedReason = "WaitingForNodes"            // the server has just started, and a node may know what the store does not
	BlockedRestored                   = BlockedReason(Restored)      // a node has not said what it runs since the store was restored
	BlockedVolume       BlockedReason = "VolumeMismatch"             // its volume does not serve the claim
	BlockedNoClaim      BlockedReason = "NoClaim"                    // a PersistentVolumeClaim that it mounts is not there
	BlockedClaimInUse   BlockedReason = "ClaimInUse"                 // another life has what one life at a time may have
	BlockedReclaiming   BlockedReason = "VolumeReclaiming"           // its volume is being given up, or is lost; a new one follows
	BlockedUnknown      BlockedReason = "VolumeUnknown"              // a node has a volume of it that the store does not know, and that may be newer
	BlockedRestoring    BlockedReason = "VolumeRestoring"            // its volume is being brought back from the trash
	BlockedBackOff      BlockedReason = "BackOff"                    // its last lives failed one after another
	BlockedUnreadable   BlockedReason = "Unreadable"                 // a stored record cannot be read
	BlockedOrphaned     BlockedReason = "Orphaned"                   // nobody owns the set
	BlockedStarting     BlockedReason = "Starting"                   // its life begins
	BlockedInitializing               = BlockedReason(Initializing)  // its init containers run
	BlockedPulling                    = BlockedReason(Pulling)       // an image of it is being pulled
	BlockedVolumeGroup                = BlockedReason(VolumeGroup)   // its volumes are given to its fsGroup
	BlockedNotReady                   = BlockedReason(NotReady)      // it runs, and is not ready
	BlockedNotYet       BlockedReason = "NotAvailableYet"            // ready, but for less than minReadySeconds
	BlockedMoving       BlockedReason = "Moving"                     // its volumes go to another node
	BlockedChanging     BlockedReason = "Changing"                   // its containers change in place
	BlockedLeaving      BlockedReason = "Leaving"                    // a hook runs, because it leaves for good
	BlockedDecommission BlockedReason = "Decommission"               // it leaves for good when its hook has succeeded, which failed
	BlockedForget       BlockedReason = "Forget"                     // it has left, and the others are to be told, which failed
	BlockedJob          BlockedReason = "Job"                        // a job of the set runs in it, or is about to
	BlockedJobFailed    BlockedReason = "JobFailed"                  // a job of the set failed, and is run again
	BlockedJobUnknown   BlockedReason = "JobUnknown"                 // nobody knows what came of a job of the set, and a user is to decide
	BlockedStopping     BlockedReason = "Stopping"                   // its life ends
)

// AwaitsImages is how the sentence begins of a member that is well, and is to be updated when nodes have the images of the update.
const AwaitsImages = "its update waits for images"

// ComesByItself reports whether what is waited for comes by itself; anything else may need a
// person.
func (r BlockedReason) ComesByItself() bool {
	switch r {
	case BlockedTurn, BlockedBusy, BlockedPredecessor, BlockedSuccessor, BlockedSurvivors, BlockedStarting, BlockedInitializing, BlockedPulling, BlockedVolumeGroup,
		BlockedReconnected, BlockedNotReady, BlockedNotYet, BlockedStopping, BlockedReclaiming, BlockedMoving, BlockedChanging,
		BlockedLeaving, BlockedJob:
		return true
	}
	return false
}
