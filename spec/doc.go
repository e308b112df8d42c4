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
//	stead:"ignored,zero"  as ignored, but an empty value is accepted without a word
//	stead:"later,or=1"  as later, but this one value, the default, is accepted
//	stead:"later,same=x"  as later, but the value x, which says what Stead does anyway, is
//	                    accepted, and left out of the object, so that no hash changes;
//	                    same=key:x is the mapping {key: x}, and x|y either value
//	stead:"ignored,same=x"  as ignored, but without a warning for the value x
//	stead:"since=2"   supported by agents of this Level and later
//	stead:"since=2,except=x|y"  but these values by all
//
// so that decoder, validation and docs/MANIFEST.md cannot disagree.
package spec
