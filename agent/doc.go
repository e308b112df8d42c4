// Package agent is a node: it holds a session with a server, hands what the server
// wants to one worker an identity, and tells the server what they see. Without a
// server everything goes on as it was last told; an agent that ends, cleanly or
// not, leaves members running, and the next one on the same root adopts them.
//
//	h, err := home.Open(root, node)               // one agent a root
//	err = session.Join(ctx, h, dial, boot, facts) // learns the cluster's id, once
//	a, err := agent.New(agent.Config{Home: h, …})
//	err = a.Run(ctx)
package agent
