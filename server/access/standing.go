package access

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"

	"github.com/stead-project/stead/records/sealing"
	"github.com/stead-project/stead/server/seal"
	"github.com/stead-project/stead/spec/scalar"
	"github.com/stead-project/stead/store"
	"github.com/stead-project/stead/trust"
)

// signer is an authority with its key.
type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// AuthorityID is that of the authority whose certificate (DER) it is; "": it is none.
func AuthorityID(certificate []byte) sealing.AuthorityID {
	return sealing.AuthorityID(trust.ShortID(certificate))
}

func idOf(ca *x509.Certificate) sealing.AuthorityID {
	return sealing.AuthorityID(trust.PinOf(ca).Short())
}

// standing is the authority at one moment, never changed: SAFETY S24.
type standing struct {
	record sealing.Authority // as it is stored
	now    signer            // by whose certificates servers are known
	next   *signer           // trusted, too; nil: there is none
	bridge *x509.Certificate // of now's key, by the one before it; nil: it is the first
}

// openStanding opens what a record has sealed.
func openStanding(record sealing.Authority, key *seal.Key) (*standing, error) {
	s := &standing{record: record}
	var err error
	if s.now, err = unsealAuthority(record.Certificate, record.Sealed, key); err != nil {
		return nil, fmt.Errorf("open the authority: %w", err)
	}
	if n := record.Next; n != nil {
		next, err := unsealAuthority(n.Certificate, n.Sealed, key)
		if err != nil {
			return nil, fmt.Errorf("open the next authority: %w", err)
		}
		s.next = &next
	}
	if record.Retired != nil {
		if s.bridge, err = x509.ParseCertificate(record.Retired.Bridge); err != nil {
			return nil, fmt.Errorf("open the authority: %w", err)
		}
	}
	return s, nil
}

// signs is the one that signs the certificates of nodes and people, and those by which servers call each other.
func (s *standing) signs() signer {
	if s.next != nil && s.record.Next.Issuing {
		return *s.next
	}
	return s.now
}

// trusted are those whose certificates are accepted.
func (s *standing) trusted() []signer {
	if s.next != nil {
		return []signer{s.now, *s.next}
	}
	return []signer{s.now}
}

// certificateOf is that of the authority that signed a certificate, DER.
func (s *standing) certificateOf(signed []byte) []byte {
	leaf, err := x509.ParseCertificate(signed)
	for _, t := range s.trusted() {
		if err == nil && leaf.CheckSignatureFrom(t.cert) == nil {
			return t.cert.Raw
		}
	}
	return s.signs().cert.Raw
}

// IDs are those of the authorities that a trusts, the present one first.
func (a *Authority) IDs() (ids []sealing.AuthorityID) {
	for _, t := range a.standing.Load().trusted() {
		ids = append(ids, idOf(t.cert))
	}
	return ids
}

// Signs is the authority that signs the certificates of nodes and people.
func (a *Authority) Signs() sealing.AuthorityID { return idOf(a.standing.Load().signs().cert) }

// Follow has a be as record says, which the store has; every connection from then on is judged by it. It fails, and changes
// nothing, where this server's key does not open it.
func (a *Authority) Follow(record sealing.Authority) error {
	if bytes.Equal(store.Encode(record), store.Encode(a.standing.Load().record)) {
		return nil
	}
	s, err := openStanding(record, a.cfg.Key)
	if err != nil {
		return err
	}
	a.standing.Store(s)
	return nil
}

// As has a be as another Authority of this server is.
func (a *Authority) As(other *Authority) { a.standing.Store(other.standing.Load()) }

// followed is a as the store has it, of kvs, which have its key: nothing is signed by what was replaced meanwhile. What is then
// written compares the revision.
func (a *Authority) followed(kvs map[string]store.KV) (*standing, store.Compare, error) {
	kv, ok := kvs[store.AuthorityKey]
	if !ok {
		return nil, store.Compare{}, errors.New("read the authority: the store has none")
	}
	record, err := store.Decode[sealing.Authority](kv)
	if err == nil {
		err = a.Follow(record)
	}
	return a.standing.Load(), store.Seen(store.AuthorityKey, kv.Mod), err
}

// fresh is followed of what the store has now.
func (a *Authority) fresh(ctx context.Context) (*standing, store.Compare, error) {
	_, kvs, err := a.cfg.Store.Get(ctx, store.AuthorityKey)
	if err != nil {
		return nil, store.Compare{}, fmt.Errorf("read the authority: %w", err)
	}
	return a.followed(kvs)
}

// makeAuthority makes one, and seals its key.
func makeAuthority(cluster string, key *seal.Key) (certificate []byte, sealed scalar.Bytes, err error) {
	mine, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := newTemplate(authorityLife)
	template.Subject = pkix.Name{CommonName: "Stead cluster " + cluster}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.MaxPathLen = 1 // for the key of the one before it, while that is replaced
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, mine.Public(), mine)
	if err != nil {
		return nil, nil, err
	}
	plain, err := x509.MarshalPKCS8PrivateKey(mine)
	if err != nil {
		return nil, nil, err
	}
	return der, key.SealAt(store.AuthorityKey, plain), nil
}

func unsealAuthority(certificate []byte, sealed scalar.Bytes, key *seal.Key) (signer, error) {
	plain, err := key.OpenAt(store.AuthorityKey, sealed)
	if err != nil {
		return signer{}, err
	}
	ca, err := x509.ParseCertificate(certificate)
	if err != nil {
		return signer{}, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(plain)
	mine, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok || !mine.PublicKey.Equal(ca.PublicKey) {
		return signer{}, errors.New("its key is not that of its certificate")
	}
	return signer{ca, mine}, nil
}

// bridge is a certificate of the key of another authority, by s: whoever knows only s knows by it what the other signs.
func (s signer) bridge(of *x509.Certificate, template *x509.Certificate) ([]byte, error) {
	template.Subject, template.IsCA, template.BasicConstraintsValid = of.Subject, true, true
	template.MaxPathLenZero, template.KeyUsage = true, x509.KeyUsageCertSign
	return x509.CreateCertificate(rand.Reader, template, s.cert, of.PublicKey, s.key)
}

// anchor is the certificate of s without a limit of the path: by it the store's members, which read it once, know the servers also
// when s was replaced, and by it a server notices that.
func (s signer) anchor() (*x509.Certificate, error) {
	template := &x509.Certificate{NotBefore: s.cert.NotBefore, NotAfter: s.cert.NotAfter, Subject: s.cert.Subject, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, s.key.Public(), s.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// Next is what the record becomes by a rotation, with a new authority, whose key is sealed by that of Secrets which seals.
func (a *Authority) Next(ring *sealing.Ring) (*sealing.NextAuthority, error) {
	if ring != nil {
		if err := a.cfg.Key.Use(ring.Sealing); err != nil {
			return nil, err
		}
	}
	certificate, sealed, err := makeAuthority(a.cluster, a.cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("make an authority: %w", err)
	}
	return &sealing.NextAuthority{Certificate: certificate, Sealed: sealed}, nil
}

// Retire is the record by which the next authority is the present one, and the key of the present one is gone. The store's record,
// which is given, must have been followed.
func (a *Authority) Retire(record sealing.Authority) (sealing.Authority, error) {
	s, err := openStanding(record, a.cfg.Key)
	if err != nil {
		return record, err
	}
	if s.next == nil {
		return record, errors.New("retire the authority: there is no other")
	}
	template := newTemplate(0)
	template.NotAfter = s.now.cert.NotAfter
	bridge, err := s.now.bridge(s.next.cert, template)
	if err != nil {
		return record, fmt.Errorf("retire the authority: %w", err)
	}
	return sealing.Authority{Certificate: record.Next.Certificate, Sealed: record.Next.Sealed,
		Retired: &sealing.RetiredAuthority{Certificate: record.Certificate, Bridge: bridge}}, nil
}
