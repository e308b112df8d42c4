package rotation

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/spec"
)

// AuthorityWorld is what a step of the rotation of the authority is decided by.
type AuthorityWorld struct {
	Now  sealing.AuthorityID
	Next sealing.AuthorityID // "": no rotation is under way
	// Issuing and Without are as in sealing.NextAuthority.
	Issuing bool
	Without []string
	// Servers are all that are known of, and Said what each said.
	Servers []string
	Said    map[string]*sealing.ServerAuthorities
	// Settled: servers of which the store knows nothing had time to say what they trust.
	Settled bool
	// Nodes are all that are known and not revoked; Clients have a file that has not expired, and are not revoked.
	Nodes   []CertifiedNode
	Clients []CertifiedClient
}

// CertifiedNode is a node, and by whose certificate it came last; "": not since the rotation.
type CertifiedNode struct {
	Name spec.NodeName
	By   sealing.AuthorityID
}

// CertifiedClient is a person's program, and who signed its certificate.
type CertifiedClient struct {
	Name string
	ID   spec.UID
	By   sealing.AuthorityID
}

// NextAuthority decides whether the next authority comes to sign; wait says what is waited for.
// It signs only when all servers that are known trust it: whoever gets its certificate may go to any of them.
func NextAuthority(w AuthorityWorld) (issue bool, wait string) {
	if w.Next == "" || w.Issuing {
		return false, ""
	}
	if lacking := w.Distrusting(); len(lacking) > 0 {
		return false, fmt.Sprintf("the new authority %s waits for %s: start them (one of an earlier release must be upgraded), or, if one is gone for good, run "+
			"'stead authority rotate --without NAME'", w.Next, strings.Join(lacking, ", "))
	}
	if !w.Settled {
		return false, "servers that are not known yet have a moment to say which authorities they trust"
	}
	return true, ""
}

// Distrusting are the servers that have not said that they trust the next authority, but for those that are not waited for.
func (w AuthorityWorld) Distrusting() []string {
	return w.lacking(func(s *sealing.ServerAuthorities) bool { return slices.Contains(s.Trusts, w.Next) })
}

// Staying are the servers that have not said that they call the others by a certificate of the next authority, but for those that
// are not waited for.
func (w AuthorityWorld) Staying() []string {
	return w.lacking(func(s *sealing.ServerAuthorities) bool { return s.Calls == w.Next })
}

func (w AuthorityWorld) lacking(has func(*sealing.ServerAuthorities) bool) (out []string) {
	for _, name := range w.Servers {
		if s := w.Said[name]; (s == nil || !has(s)) && !slices.Contains(w.Without, name) {
			out = append(out, name)
		}
	}
	return out
}

// RotateAuthority fails when no rotation may begin.
func RotateAuthority(w AuthorityWorld, without []string) error {
	if w.Next != "" {
		return fmt.Errorf("a rotation is under way, to %s; see 'stead authority ls'", w.Next)
	}
	var behind []string
	for _, name := range w.Servers {
		if s := w.Said[name]; s != nil && len(s.Store) > 0 && !slices.Contains(s.Store, w.Now) && !slices.Contains(without, name) {
			behind = append(behind, name)
		}
	}
	if len(behind) > 0 {
		return fmt.Errorf("the store of %s knows its peers by the authority of before the last rotation, and would know none after another: start these servers again first, "+
			"one after the other", strings.Join(behind, ", "))
	}
	return nil
}

// Leave says who is cut off by a retirement that does not wait for them.
type Leave struct {
	Nodes   []spec.NodeName
	Clients bool
}

// RetireAuthority fails, and names them, when somebody still depends on the present authority.
func RetireAuthority(w AuthorityWorld, leave Leave) error {
	switch {
	case w.Next == "":
		return errors.New("no rotation is under way; 'stead authority rotate' makes another authority first")
	case !w.Issuing:
		_, wait := NextAuthority(w)
		return fmt.Errorf("the new authority %s does not sign yet: %s", w.Next, wait)
	}
	var why []string
	if servers := w.Staying(); len(servers) > 0 {
		why = append(why, fmt.Sprintf("%s still call other servers with a certificate of %s: start them, or, if one is gone for good, run 'stead authority rotate --without NAME'; "+
			"it must then be replaced ('stead server replace')", strings.Join(servers, ", "), w.Now))
	}
	var nodes []string
	for _, n := range w.Nodes {
		if n.By != w.Next && !slices.Contains(leave.Nodes, n.Name) {
			nodes = append(nodes, string(n.Name))
		}
	}
	if len(nodes) > 0 {
		why = append(why, fmt.Sprintf("nodes %s have not come with a certificate of %s: let their agents connect (one of an earlier release renews within 16 hours, and reconnects within 24), "+
			"or give --without-node NAME for each that is to join again with a token", strings.Join(nodes, ", "), w.Next))
	}
	var clients []string
	for _, c := range w.Clients {
		if c.By != w.Next && !leave.Clients {
			clients = append(clients, fmt.Sprintf("%s (%s)", c.Name, c.ID))
		}
	}
	if len(clients) > 0 {
		why = append(why, fmt.Sprintf("client files of %s are valid and of %s: make new ones ('stead client create') and revoke these, or give --end-clients to have them end",
			strings.Join(clients, ", "), w.Now))
	}
	if len(why) > 0 {
		return fmt.Errorf("authority %s stays: %s", w.Now, strings.Join(why, "; "))
	}
	return nil
}
