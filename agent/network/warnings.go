package network

import (
	"fmt"

	"github.com/google/nftables"
)

// Warnings names what is not ours and will keep members from being reached: rules
// that drop forwarded packets by default, whether nft, iptables-nft or iptables-legacy
// made them. One sentence each. What cannot be looked at is one, too.
func (n *Network) Warnings() ([]string, error) {
	var found []string
	err := n.nft(func(c *nftables.Conn) error {
		chains, err := c.ListChains()
		if err != nil {
			return fmt.Errorf("list nft chains: %w", err)
		}
		for _, chain := range chains {
			if dropsForwarded(chain) {
				found = append(found, n.dropWarning(fmt.Sprintf("nft chain %s of table %s", chain.Name, chain.Table.Name)))
			}
		}
		switch drops, err := legacyDrops(); {
		case err != nil:
			found = append(found, fmt.Sprintf("cannot read the rules of iptables-legacy (%v): "+
				"check that `iptables-legacy -S FORWARD` accepts %s", err, n.cfg.CIDR))
		case drops:
			found = append(found, n.dropWarning("iptables-legacy's chain FORWARD"))
		}
		return nil
	})
	return found, err
}

func (n *Network) dropWarning(chain string) string {
	return fmt.Sprintf("%s drops forwarded packets by default: members cannot reach each other unless it accepts %s", chain, n.cfg.CIDR)
}

func dropsForwarded(c *nftables.Chain) bool {
	return c.Hooknum != nil && *c.Hooknum == *nftables.ChainHookForward && c.Type == nftables.ChainTypeFilter &&
		c.Policy != nil && *c.Policy == nftables.ChainPolicyDrop &&
		(c.Table.Family == nftables.TableFamilyIPv4 || c.Table.Family == nftables.TableFamilyINet)
}
