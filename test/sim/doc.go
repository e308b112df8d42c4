// Package sim is a whole cluster in one goroutine: the real planner, engine,
// dispatch, cache, step function and ledger over the store in memory, with hosts,
// disks, clocks and networks that are models and can fail at any moment.
//
// In three runs of four members are of several containers: init containers that fail, sidecars, lifecycle
// hooks that are slow, fail or hang (parts.go, box.go, hooks.go; judged in judgestart.go). In two of three
// they mount PersistentVolumeClaims, which are deleted and applied again (claims.go; judgeclaim.go, rules/claim.go).
//
// In half of the runs members are moved (moves.go): the real mover of each agent works on simulated disks (movehost.go) and
// copies file by file from the other host (movecopy.go). What each volume holds is followed (contents.go), and
// judgemove.go judges S12.
//
// In a third of the runs sets have jobs (jobs.go, judgejob.go), and faults come while these run.
//
// In a quarter of the runs members of a set differ (differ.go): what each runs by a revision is derived in rules/difference.go, with none of
// the product's code, and judgediffer.go judges what containers run, and who is left as it is by an update. In another quarter members
// change in place (change.go; rules/change.go, judgechange.go): by orders only, in turn, and a new life begins only where one is needed.
//
// In a third of the runs the servers have a store of their own (quorum.go, follow.go, proposals.go, serversasked.go): a quorum of
// members that come, go, lag and lose their disks. In the others it is another program's, which is always there.
//
// A run is a seed: it chooses the cluster and a list of choices, each of which does
// one thing. After each the judges look: they know the truth (which process runs
// where) and judge plans by their own reading of SEMANTICS, never by the planner's
// code. Nothing sleeps and no real clock is read, so a seed is always the same run.
//
// A run that fails is shrunk (choices are left out while it still fails) and written
// as a file that go test replays: see testdata. That each judge bites is shown by
// plants: faults put on purpose into the models, which must be found; that enough
// happens is shown by counts, of which none may be zero.
package sim
