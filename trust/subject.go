// Package trust is what both ends of a connection between hosts agree on: whom a
// certificate names, what a join token looks like, and how a server is recognised.
// The authority that gives certificates is server/access.
package trust

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/stead-project/stead/spec"
	"github.com/stead-project/stead/spec/scalar"
)

// Role is what the holder of a certificate is in the cluster.
type Role string

// The roles. A server's certificate is good for serving and for calling other servers, the
// others for nothing but calling.
const (
	RoleServer Role = "server"
	RoleNode   Role = "node"
	RoleAdmin  Role = "admin"
	// RoleOperator runs what is in namespaces, and RoleViewer sees it, but for Secrets.
	RoleOperator Role = "operator"
	RoleViewer   Role = "viewer"
)

// People are the roles of people and their programs.
var People = []Role{RoleAdmin, RoleOperator, RoleViewer}

// Subject is whom a certificate names. It is the certificate's only URI,
// stead://<cluster>/<role>/<name>/<uid>[/<namespaces>]; nothing else in a certificate is looked at.
type Subject struct {
	Cluster string
	Role    Role
	// Name of the node, the client or the server.
	Name string
	// UID is the node's own, or the client's id; "" for servers.
	UID spec.UID
	// Namespaces to which an operator or a viewer is limited, with commas between; "": to none.
	Namespaces string
}

// In reports whether s is not limited to other namespaces than ns.
func (s Subject) In(ns spec.Namespace) bool { return Within(s.Namespaces, ns) }

// Within reports whether ns is one of the namespaces in a list with commas between; an empty list has all.
func Within(list string, ns spec.Namespace) bool {
	return list == "" || slices.Contains(strings.Split(list, ","), string(ns))
}

var (
	clusterForm = regexp.MustCompile(`^[0-9a-z]{8,64}$`)
	uidForm     = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)
)

// Check tells why no certificate may name s, or nil.
func (s Subject) Check() error {
	switch {
	case !clusterForm.MatchString(s.Cluster):
		return fmt.Errorf("%q is not a cluster id", s.Cluster)
	case !scalar.ValidSubdomain(s.Name):
		return fmt.Errorf("%q is not a valid name: use lower-case letters, digits, '-' and '.'", s.Name)
	case s.Role == RoleServer && s.UID == "":
		return nil
	case s.Role != RoleNode && !slices.Contains(People, s.Role):
		return fmt.Errorf("%q is not a role", s.Role)
	case !uidForm.MatchString(string(s.UID)):
		return fmt.Errorf("%q is not a uid", s.UID)
	case s.Namespaces == "":
		return nil
	case s.Role != RoleOperator && s.Role != RoleViewer:
		return fmt.Errorf("the role %s is not limited to namespaces; operator and viewer may be", s.Role)
	}
	for ns := range strings.SplitSeq(s.Namespaces, ",") {
		if !scalar.ValidLabel(ns) {
			return fmt.Errorf("%q is not a namespace", ns)
		}
	}
	return nil
}

// URL is s as it is in a certificate.
func (s Subject) URL() *url.URL {
	path := "/" + string(s.Role) + "/" + s.Name
	if s.UID != "" {
		path += "/" + string(s.UID)
	}
	if s.Namespaces != "" {
		path += "/" + s.Namespaces
	}
	return &url.URL{Scheme: "stead", Host: s.Cluster, Path: path}
}

// String is for people and logs.
func (s Subject) String() string { return string(s.Role) + " " + s.Name }

// SubjectOf reads whom a certificate names. Whether it may is not judged here.
func SubjectOf(cert *x509.Certificate) (Subject, error) {
	if len(cert.URIs) != 1 || cert.URIs[0].Scheme != "stead" {
		return Subject{}, errors.New("the certificate is none of Stead's")
	}
	u := cert.URIs[0]
	parts := append(strings.Split(strings.TrimPrefix(u.Path, "/"), "/"), "", "", "")
	s := Subject{Cluster: u.Host, Role: Role(parts[0]), Name: parts[1], UID: spec.UID(parts[2]), Namespaces: parts[3]}
	if err := s.Check(); err != nil || s.URL().String() != u.String() {
		return Subject{}, errors.New("the certificate names neither a node nor a client")
	}
	return s, nil
}
