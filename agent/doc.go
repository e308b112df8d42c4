// Package agent is a node: it connects sessions with a server (agent/session), one worker
// for each identity (agent/worker), deadlines of guarded lives (agent/deadline) and orders
// about volumes (agent/reclaim), and has little of its own. Without a server everything
// continues as last ordered; an agent that ends, cleanly or not, leaves members running, and
// the next one on the same root adopts them.
//
//	h, err := home.Open(root, node)               // one agent a root
//	err = session.Join(ctx, h, dial, boot, facts) // learns the cluster's id, once
//	a, err := agent.New(agent.Config{Home: h, …})
//	err = a.Run(ctx)
package agent
