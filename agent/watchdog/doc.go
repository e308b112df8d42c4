// Package watchdog ends guarded lives whose deadline has passed, whatever became of the
// agent (SAFETY S3, S5, S14). A life has two kinds of killers, which share nothing but
// the files below: the node's watchdog (`stead-node watchdog`, Watchdog) and both halves
// of each of its loggers (Logger). They import the standard library, x/sys/unix and
// internal/ only.
//
// The files lie in one directory on tmpfs, Dir. The agent alone writes
//
//	confirmed             when, on CLOCK_BOOTTIME, the newest ping was sent that a
//	                      server answered; nanoseconds
//	lives/<member>.json   the Record of a life that runs, or may
//
// and the killers
//
//	lock                  held (flock) by the watchdog that runs; its process id
//	acks                  what that watchdog guards: token by member
//	loggers/<member>.<container>.<run>
//	                      held (flock) by each half of a logger that guards that run
//
// A life's deadline is confirmed + its bound. Past it, or once its record says that it is
// ended, a killer kills the life's cgroup again and again until nothing is left in it,
// for as long as that is so: also what is started there after the first kill. What cannot
// be read leaves what was known, so that a deadline is never lost, only not moved. A
// record that is gone, while its directory is there, sets its life free.
package watchdog
