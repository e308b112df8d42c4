// Package worker runs the lives of one identity on this host: one goroutine looks,
// asks step.Next for one operation, performs it, and looks again. What it must not
// forget is in the ledger (on disk) or below the run directory (tmpfs: lost only
// with a reboot, which ends every life anyway); everything else is seen anew. A
// worker that ends leaves the containers as they are; the next one adopts them.
package worker
