package sim

import (
	"maps"
	"slices"
	"strings"
)

// IsFault tells whether a count is of something that went wrong.
func IsFault(count string) bool {
	switch count {
	case "unmount", "kill-disk", "lie", "lose-server", "break-watch", "late", "elect", "recover", "store without a leader", "store without a quorum":
		return true
	case "crash-server", "crash-between", "unknown", "hang-server", "cut-server", "kill-watchdog", "kill-logger", "expire-session", "away", "halt-agent", "crash-agent", "reboot", "power-off", "cut", "break",
		"sick", "lapse", "cordon", "drain", "shut-down", "slow-op", "restore", "go-back", "lose-memory", "fence", "land", "conflict", "hello refused":
		return true
	}
	return strings.HasPrefix(count, "fault: ") || strings.HasPrefix(count, "volume refused: ")
}

// common is what happens in a few dozen runs, beside the choices; seldom what takes a
// thousand.
var (
	common = []string{
		"store led by the next", "store without a leader", "store without a quorum", "server added", "learner votes", "server removed", "server replaced by an empty one",
		"disk of a server lost", "watch broken", "store loaded anew", "fault: write is late", "late write done", "late write void", "late write lost",
		"volume lost", "volume found after all", "volume Keep to Lost", "volume Lost to Keep", "volume replaced by the next",
		"volume told as first", "volume told as replaced", "life waits for a disk", "rename complete", "fault: lie about a volume",
		"process started", "settled", "pong", "report joined", "conflict", "hello refused",
		"Start Create", "Start Replace", "Start Update", "Start Restart", "Start ScaleUp",
		"Stop Update", "Stop Restart", "Stop ScaleDown", "Stop Delete", "Forget", "MarkReady", "MarkBootstrapped",
		"AddRevision", "RaiseRevision", "PruneRevision", "RemoveSet", "SetVolumes", "DropVolume", "Stalled", "Rollback",
		"OpenToken", "Refuse", "CloseToken", "EnsureImage", "EnsureVolumes", "EnsureSandbox", "AttachNetwork", "WriteFiles",
		"CreateContainer", "StartContainer", "RemoveContainer", "SignalStop", "KillAll", "RemoveContainers", "Detach", "RemoveScratch",
		"RemoveSandbox", "ReportOver",
		"volume Keep to Delete", "volume Delete to Keep", "volume Delete to Reclaiming", "volume Keep to Reclaiming",
		"volume moved to the trash", "volume never made", "volume record gone", "volume erased",
		"volume is brought back", "volume came back",
		"volume of a claim mounted", "volume of a claim given up", "claim deleted", "claim applied", "RemoveClaim",
		"blocked: NoClaim", "blocked: ClaimInUse",
		"RunPostStart", "RunPreStop", "SignalContainer", "SignalSidecar", "EndContainer",
		"init container failed", "init container succeeded", "init container run until it succeeds", "sidecar stopped after the containers",
		"postStart hook returned", "preStop hook returned", "preStop hook failed", "blocked: Initializing",
		"fault: server dies at a commit", "fault: outcome unknown", "fault: agent dies after an operation",
		"fault: agent dies before an operation", "fault: agent dies in an operation", "fault: start lands late", "fault: start fails",
		"life guarded", "guarded life killed", "deadline missed", "Expire",
		"image pulled ahead: done", "image pulled ahead: missing", "update with images that were pulled ahead",
		"BeginMove", "AdvanceMove", "FlipMove", "EndMove", "Stop Move", "Start Move", "blocked: Moving",
		"move begun", "move Copying to Aborting", "move Copying to Stopping", "move Stopping to Sealing", "move Sealing to Flipped", "move ended as Flipped", "move ended as Aborting",
		"round of copying", "copy discarded", "life begun where its volumes arrived", "move taken up by the next agent", "fault: a round of copying breaks",
		"Promote", "member reaches a revision as it is", "member differs", "ChangeInPlace", "change ordered", "change taken", "change done", "ResizeContainer", "bounds changed in place",
		"container ended for a change", "blocked: Changing",
		"OrderJob", "PutJobs", "job begun", "job begun after a growth", "job begun once more", "job succeeded", "job done", "job skipped", "blocked: Job", "blocked: JobUnknown",
		"blocked: Orphaned", "blocked: NodeRebooted", "blocked: Paused", "blocked: VolumeReclaiming",
	}
	seldom = []string{
		"end joined", "job begun among faults", "job failed", "job of unknown end", "job runs on without its agent", "run of a job not known after a restore", "word about an earlier run of a job",
		"blocked: JobFailed",
		"volume of a claim shared", "store goes on with one server", "store goes on without what others had confirmed", "removed server joins again", "server refused that joins",
		"removal of a server refused", "fault: write without a quorum",
		"fault: agent dies before a volume is sealed", "fault: agent dies after a volume is sealed", "fault: agent dies before a volume arrives", "fault: agent dies after a volume arrives",
		"fault: agent dies before a volume that arrived is noted", "fault: agent dies after a volume that arrived is noted", "fault: agent dies before a copy is discarded",
		"fault: agent dies after a copy is discarded", "fault: agent dies before a directory is staged", "fault: agent dies after a directory is staged",
		"fault: agent dies before a part in a move is noted", "fault: agent dies after a part in a move is noted", "fault: agent dies before a part in a move is forgotten",
		"fault: agent dies after a part in a move is forgotten", "fault: agent dies in a round of copying", "fault: a round overlooks a file", "move Stopping to Aborting",
		"move Sealing to Aborting", "move Flipped to Back", "move ended as Back", "move Aborting to Flipped", "seal broken", "move flipped after a restore", "VoidMoveRequest",
		"Stop Drain", "Start Drain", "Stop NodeShutdown", "Start NodeShutdown", "host stops its members by itself", "Stop Replace", "life waits for a volume that is lost", "life restarted whose disk died", "trash waits for its disk",
		"shared volume used on another node", "fault: agent dies before it notes a volume", "fault: late or twice said of a volume",
		"blocked: DiskMissing", "blocked: VolumeMissing", "volume refused: DiskMissing", "volume refused: VolumeMissing",
		"volume Delete to Lost", "volume Reclaiming to Lost",
		"life over by its deadline", "guarded life replaced elsewhere", "guarded life killed by its logger",
		"fault: agent dies between ledger and record", "blocked: Unwatched", "blocked: Unconfirmed",
		"VoidRequest", "SetVolumes of a set that is gone", "DropVolume of a set that is gone", "life begun beside data of an earlier set", "blocked: Restored",
		"lapsed member replaced alone", "lapsed member replaced after the deadline", "blocked: NodeReconnected",
		"store held by a server", "store held by a node", "server ends: the store went back", "restore declared", "node excused", "blocked: Held", "memory lost with the store",
		"node fenced", "fence void", "a fence proved nothing", "removed node is back", "life over by a fence", "fenced life replaced elsewhere",
		"claim mounted as faults are mended", "KillContainer", "container given up", "sidecar started again",
		"init container ended unseen", "postStart hook failed",
		"postStart hook run again by the next agent", "preStop hook run again by the next agent", "blocked: Unhealthy", "blocked: FailedPostStartHook",
		"leader passed over", "leader goes last", "blocked: Busy", "BusyTooLong",
		"blocked: DisruptionFloor", "blocked: CrashLoop", "blocked: Stray",
		"ScaleDown under Retain/Retain", "ScaleDown under Retain/Delete", "ScaleDown under Delete/Retain", "ScaleDown under Delete/Delete",
		"Delete under Retain/Retain", "Delete under Retain/Delete", "Delete under Delete/Retain", "Delete under Delete/Delete",
	}
)

// Never lists what did not happen though it should have: in few runs what is common, in
// many also what is seldom, and every choice there is. A list with something on it means
// that the simulation shows less than it says.
func Never(counts map[string]int, many bool) (never []string) {
	should := common
	if many {
		should = slices.Concat(common, seldom, slices.Sorted(maps.Keys(actions)))
	}
	for _, what := range should {
		if counts[what] == 0 {
			never = append(never, what)
		}
	}
	return never
}
