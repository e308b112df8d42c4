// Package spec holds the types of manifests, identities and tokens, and the pure
// functions over them (defaults, canonical hash, selectors). It imports nothing of ours
// but spec/scalar, and does no I/O. Package manifest reads these types from YAML and checks them; what the
// store keeps is in package records.
//
// Support for a manifest field is declared on the field itself by the struct
// tag `stead`:
//
//	(none)            supported
//	stead:"later"     known, refused by name: "not supported yet"
//	stead:"ignored"   accepted with a warning, changes nothing here
//	stead:"only"      only in apiVersion stead/v1 or the annotation stead.dev/spec
//	stead:"only,later"
//	stead:"later,zero"  as later, but an empty value (false, 0, "", [], {}), which says
//	                    what absence says, is accepted
//	stead:"later,or=1"  as later, but this one value, the default, is accepted
//
// so that decoder, validation and docs/MANIFEST.md cannot disagree.
package spec
