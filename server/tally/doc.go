// Package tally says what the objects of a namespace come to, by the resources that ResourceQuotas name, and which change a
// quota refuses. It is pure. What is declared counts: each member that a set asks for, whether it runs or not; and each volume
// that is there. A change that asks for no more than before is never refused.
package tally
