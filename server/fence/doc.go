// Package fence is all that takes a word from outside for proof that the lives of a silent
// node are over (SAFETY S10): a person's word (Node), or that of a program which the operator
// gave (Fencer). Both end the lives that were found when somebody turned to the node (Case),
// and no later ones. A node of which nothing is left is forgotten (RemoveNode).
//
//	case.go      what is found on a silent node, and the transactions that end it
//	silent.go    reads a node that must have no session; what every write compares; forgets a node
//	fencer.go    when the leading server calls the fence command; command.go calls it
//	outcomes.go  what came of it, for the members that wait
//
// Proof by time, which needs no word, is in server/plan (SAFETY S5).
package fence
