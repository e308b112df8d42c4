package store

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/stead-project/stead/records"
	"github.com/stead-project/stead/spec"
)

// The kinds of keys; the first path element (DESIGN 5, SAFETY S16).
const (
	KindSet            = "sets"
	KindRevision       = "revisions"
	KindMember         = "members"
	KindReport         = "reports"
	KindVolume         = "volumes"
	KindVolumeReport   = "volumereports"
	KindRequest        = "requests"
	KindVolumeRequest  = "volumerequests"
	KindMove           = "moves"
	KindMoveRequest    = "moverequests"
	KindEvent          = "events"
	KindHistory        = "history"
	KindAddress        = "addresses"
	KindIdentity       = "identities"
	KindStatus         = "status"
	KindNode           = "nodes"
	KindFacts          = "nodefacts"
	KindSession        = "sessions"
	KindFence          = "fences"
	KindService        = "services"
	KindServiceAddress = "serviceaddresses"
	KindNodePort       = "nodeports"
	KindBudget         = "budgets"
	KindNetworkPolicy  = "networkpolicies"
	KindQuota          = "quotas"
	KindQuotaChange    = "quotachanges"
	KindClaim          = "claims"
	KindEndpoints      = "endpoints"
	KindSlice          = "endpointslices"
	KindConfig         = "configs"
	KindSecret         = "secrets"
	KindBootstrapped   = "bootstrapped"
	KindJobs           = "jobs"
	KindLeader         = "leader"
	KindEpoch          = "epoch"
	KindCluster        = "cluster"
	KindAuthority      = "ca"
	KindToken          = "tokens"
	KindRevoked        = "revoked"
	KindContinuity     = "continuity"
	KindHold           = "hold"
	KindCount          = "count"
	KindHellos         = "hellos"
	KindKnown          = "known"
	KindServer         = "servers"
	KindFormat         = "format"
	KindKeyring        = "keyring"
	KindClient         = "clients"
	KindAdmission      = "admissions"
	KindServerKeys     = "serverkeys"
	KindGivenKeys      = "givenkeys"
	KindCertified      = "certified"

	KindServerAuthorities = "serverauthorities"
)

// The single keys.
const (
	LeaderKey  = KindLeader
	EpochKey   = KindEpoch   // decimal epoch, 1 in a fresh store
	ClusterKey = KindCluster // cluster id, written once

	AuthorityKey = KindAuthority // sealing.Authority

	ContinuityKey = KindContinuity // records.Chain; written by the leader
	HoldKey       = KindHold       // records.Hold; written by who finds that the store went back
	CountKey      = KindCount      // records.Count; of the newest restore
	FormatKey     = KindFormat     // records.Format; written by each server, with what is new
	KeyringKey    = KindKeyring    // records.Keyring; written by server/keyring
	HellosKey     = KindHellos     // written by each hello that adds a node or changes its strays, and with KnownKey
)

// KnownKey is known/<server>: the records.Known of a server that found the store held or
// restored, from its own disk.
func KnownKey(server string) string { return KindKnown + "/" + server }

// ServerKey is servers/<name>.
func ServerKey(name string) string { return KindServer + "/" + name }

// ClientKey is clients/<id>.
func ClientKey(id spec.UID) string { return KindClient + "/" + string(id) }

// AdmissionKey is admissions/<uid>, of a machine.
func AdmissionKey(uid spec.UID) string { return KindAdmission + "/" + string(uid) }

// ServerKeysKey is serverkeys/<server>.
func ServerKeysKey(server string) string { return KindServerKeys + "/" + server }

// GivenKeysKey is givenkeys/<server>.
func GivenKeysKey(server string) string { return KindGivenKeys + "/" + server }

// ServerAuthoritiesKey is serverauthorities/<server>.
func ServerAuthoritiesKey(server string) string { return KindServerAuthorities + "/" + server }

// CertifiedKey is certified/<node>.
func CertifiedKey(node spec.NodeName) string { return KindCertified + "/" + string(node) }

func keyOf(kind string, id spec.Identity) string {
	return refKey(kind, id.Ref()) + "/" + strconv.Itoa(id.Ordinal)
}

func keyOfClaim(kind string, id spec.Identity, c spec.ClaimName) string {
	return refKey(kind, id.Ref()) + "/" + string(c) + "/" + strconv.Itoa(id.Ordinal)
}

func refKey(kind string, r spec.SetRef) string { return nameKey(kind, r.Namespace, string(r.Name)) }

func nameKey(kind string, ns spec.Namespace, name string) string {
	return kind + "/" + string(ns) + "/" + name
}

// SetKey is sets/<ns>/<set>.
func SetKey(r spec.SetRef) string { return refKey(KindSet, r) }

// JobsKey is jobs/<ns>/<set>.
func JobsKey(r spec.SetRef) string { return refKey(KindJobs, r) }

// StatusKey is status/<ns>/<set>.
func StatusKey(r spec.SetRef) string { return refKey(KindStatus, r) }

// RevisionKey is revisions/<ns>/<set>/<hash>.
func RevisionKey(r spec.SetRef, h spec.RevisionHash) string {
	return refKey(KindRevision, r) + "/" + string(h)
}

// MemberKey is members/<ns>/<set>/<ordinal>.
func MemberKey(id spec.Identity) string { return keyOf(KindMember, id) }

// ReportKey is reports/<ns>/<set>/<ordinal>.
func ReportKey(id spec.Identity) string { return keyOf(KindReport, id) }

// IdentityKey is identities/<ns>/<set>/<ordinal>.
func IdentityKey(id spec.Identity) string { return keyOf(KindIdentity, id) }

// RequestKey is requests/<ns>/<set>/<ordinal>.
func RequestKey(id spec.Identity) string { return keyOf(KindRequest, id) }

// MoveKey is moves/<ns>/<set>/<ordinal>.
func MoveKey(id spec.Identity) string { return keyOf(KindMove, id) }

// MoveRequestKey is moverequests/<ns>/<set>/<ordinal>.
func MoveRequestKey(id spec.Identity) string { return keyOf(KindMoveRequest, id) }

// VolumeKey is volumes/<ns>/<set>/<claim>/<ordinal>.
func VolumeKey(id spec.Identity, c spec.ClaimName) string { return keyOfClaim(KindVolume, id, c) }

// VolumeReportKey is volumereports/<ns>/<set>/<claim>/<ordinal>/<volume id>.
func VolumeReportKey(id spec.Identity, c spec.ClaimName, v records.VolumeID) string {
	return keyOfClaim(KindVolumeReport, id, c) + "/" + string(v)
}

// VolumeRequestKey is volumerequests/<ns>/<set>/<claim>/<ordinal>.
func VolumeRequestKey(id spec.Identity, c spec.ClaimName) string {
	return keyOfClaim(KindVolumeRequest, id, c)
}

// EventKey is events/<ns>/<set>/<name>.
func EventKey(r spec.SetRef, name string) string { return refKey(KindEvent, r) + "/" + name }

// HistoryBase is the last element of the key of a history's base.
const HistoryBase = "base"

// HistoryBaseKey is history/<ns>/<set>/base.
func HistoryBaseKey(r spec.SetRef) string { return refKey(KindHistory, r) + "/" + HistoryBase }

// HistoryPageKey is history/<ns>/<set>/<page>.
func HistoryPageKey(r spec.SetRef, page int64) string {
	return refKey(KindHistory, r) + "/" + strconv.FormatInt(page, 10)
}

// AddressKey is addresses/<ip>.
func AddressKey(a netip.Addr) string { return KindAddress + "/" + a.String() }

// NodeKey is nodes/<name>.
func NodeKey(n spec.NodeName) string { return KindNode + "/" + string(n) }

// FactsKey is nodefacts/<name>.
func FactsKey(n spec.NodeName) string { return KindFacts + "/" + string(n) }

// SessionKey is sessions/<name>.
func SessionKey(n spec.NodeName) string { return KindSession + "/" + string(n) }

// FenceKey is fences/<node>.
func FenceKey(n spec.NodeName) string { return KindFence + "/" + string(n) }

// ServiceKey is services/<ns>/<name>.
func ServiceKey(ns spec.Namespace, name string) string { return nameKey(KindService, ns, name) }

// ServiceAddressKey is serviceaddresses/<ip>.
func ServiceAddressKey(a netip.Addr) string { return KindServiceAddress + "/" + a.String() }

// NodePortKey is nodeports/<port>.
func NodePortKey(port int32) string { return KindNodePort + "/" + strconv.Itoa(int(port)) }

// BudgetKey is budgets/<ns>/<name>.
func BudgetKey(ns spec.Namespace, name string) string { return nameKey(KindBudget, ns, name) }

// NetworkPolicyKey is networkpolicies/<ns>/<name>.
func NetworkPolicyKey(ns spec.Namespace, name string) string {
	return nameKey(KindNetworkPolicy, ns, name)
}

// QuotaKey is quotas/<ns>/<name>.
func QuotaKey(ns spec.Namespace, name string) string { return nameKey(KindQuota, ns, name) }

// QuotaChangeKey is quotachanges/<ns>. It is there while the namespace has a quota, and every change that counts there writes it: its
// revision is what a decision about a quota compares. Nobody reads what it holds.
func QuotaChangeKey(ns spec.Namespace) string { return KindQuotaChange + "/" + string(ns) }

// ClaimKey is claims/<ns>/<name>.
func ClaimKey(ns spec.Namespace, name string) string { return nameKey(KindClaim, ns, name) }

// EndpointsKey is endpoints/<ns>/<name>.
func EndpointsKey(ns spec.Namespace, name string) string { return nameKey(KindEndpoints, ns, name) }

// SliceKey is endpointslices/<ns>/<name>.
func SliceKey(ns spec.Namespace, name string) string { return nameKey(KindSlice, ns, name) }

// ConfigKey is configs/<ns>/<name>.
func ConfigKey(ns spec.Namespace, name string) string { return nameKey(KindConfig, ns, name) }

// SecretKey is secrets/<ns>/<name>.
func SecretKey(ns spec.Namespace, name string) string { return nameKey(KindSecret, ns, name) }

// BootstrappedKey is bootstrapped/<set uid>.
func BootstrappedKey(uid spec.UID) string { return KindBootstrapped + "/" + string(uid) }

// WasBootstrappedKey is bootstrapped/<ns>/<set>: the set is gone and was bootstrapped, and
// volumes of it are kept.
func WasBootstrappedKey(r spec.SetRef) string { return refKey(KindBootstrapped, r) }

// TokenKey is tokens/<id>, of a join token.
func TokenKey(id string) string { return KindToken + "/" + id }

// RevokedKey is revoked/<uid>.
func RevokedKey(uid spec.UID) string { return KindRevoked + "/" + string(uid) }

// Kind is the first element of a key, and rest what follows it.
func Kind(key string) (kind, rest string) {
	kind, rest, _ = strings.Cut(key, "/")
	return kind, rest
}

// RefOfKey is the set a key of sets, status, revisions, members, reports,
// identities, volumes, volumereports, requests, volumerequests, moves, moverequests, events, history or jobs
// belongs to; ok is false for other keys.
func RefOfKey(key string) (ref spec.SetRef, ok bool) {
	kind, rest := Kind(key)
	switch kind {
	case KindSet, KindStatus, KindRevision, KindMember, KindReport, KindIdentity, KindVolume, KindVolumeReport, KindRequest, KindVolumeRequest, KindMove, KindMoveRequest, KindEvent, KindHistory, KindJobs:
	default:
		return ref, false
	}
	namespace, rest, two := strings.Cut(rest, "/")
	name, _, _ := strings.Cut(rest, "/")
	if !two {
		return ref, false
	}
	return spec.SetRef{Namespace: spec.Namespace(namespace), Name: spec.SetName(name)}, true
}

// Encode makes the stored form of a record: JSON.
func Encode(record any) []byte {
	b, err := json.Marshal(record)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", record, err)) // our own types always marshal
	}
	return b
}

// Decode reads the stored form of a record. The error names the key.
func Decode[T any](kv KV) (T, error) {
	var record T
	if err := json.Unmarshal(kv.Value, &record); err != nil {
		return record, fmt.Errorf("decode %s: %w", kv.Key, err)
	}
	return record, nil
}

// DecodeIn reads the record at key of what Get returned; nil when there is none.
func DecodeIn[T any](kvs map[string]KV, key string) (*T, error) {
	kv, ok := kvs[key]
	if !ok {
		return nil, nil
	}
	record, err := Decode[T](kv)
	if err != nil {
		return nil, err
	}
	return &record, nil
}
