package plants

import (
	"maps"

	"github.com/stead-project/stead/server/plan"
	"github.com/stead-project/stead/spec"
)

// claimPlants are about volumes that several members may have (SAFETY S22).
var claimPlants = []Plant{
	{Name: "gives-one-claim-to-two", Judges: "claims", See: oneClaimForMany, Often: claims},
	{Name: "runs-two-on-one-claim", Rare: true, Judges: "shares", See: oneClaimForMany, Often: claims, Blind: "claims"},
	{Name: "forgets-who-has-a-claim", Rare: true, Judges: "claims", See: eachClaim(func(_ *plan.World, c *plan.ClaimState) { c.Users, c.Strays = nil, nil }), Often: claims},
	{Name: "starts-with-a-claim-that-goes", Judges: "claims", See: eachClaim(func(_ *plan.World, c *plan.ClaimState) {
		if c.Record != nil {
			own(&c.Record).Deleting = false
		}
	}), Often: claims},
	{Name: "takes-a-claim-anywhere", Judges: "claims, volumes", See: eachClaim(func(w *plan.World, c *plan.ClaimState) {
		c.Slot.Volumes = maps.Clone(c.Slot.Volumes)
		for name, v := range c.Slot.Volumes {
			if len(w.Nodes) > 0 {
				own(&v).Node = w.Nodes[len(w.Nodes)-1].Node.Name
			}
			c.Slot.Volumes[name] = v
		}
	}), Often: claims},
	{Name: "claims-not-compared", Judges: "claims", Unguarded: []string{"claims/"}, Often: claims},
}

var claims = []string{"claims", "mounts", "turn-claim", "scale", "user"}

// oneClaimForMany takes a claim that a single life may have for one that any number may.
var oneClaimForMany = eachClaim(func(_ *plan.World, c *plan.ClaimState) {
	if c.Record != nil {
		own(&c.Record).Spec.AccessModes = []string{spec.ReadWriteOnce}
	}
})

// eachClaim changes what a set's world has of claims.
func eachClaim(change func(*plan.World, *plan.ClaimState)) func(*plan.World) {
	return func(w *plan.World) {
		w.Claims = maps.Clone(w.Claims)
		for name, c := range w.Claims {
			change(w, own(&c))
			w.Claims[name] = c
		}
	}
}
