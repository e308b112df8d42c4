package main

import "github.com/stead-project/stead/proto"

// column describes the table of one kind.
type column struct {
	head, wide []string
	row        func(*proto.Object) (cells, wide []any, err error)
}

var columns = map[string]column{
	proto.KindSet: {
		head: []string{"NAME", "READY", "UPDATED", "AVAILABLE", "STRATEGY", "REVISION", "STATE", "AGE"},
		wide: []string{"SERVICE", "POLICY", "CURRENT", "IMAGES", "SELECTOR"},
		row:  setRow,
	},
	proto.KindMember: {
		head: []string{"NAME", "READY", "PHASE", "RESTARTS", "AGE", "NODE", "ADDRESS", "REVISION", "BLOCKED"},
		wide: []string{"TOKEN", "REASON", "IMAGES"},
		row:  memberRow,
	},
	proto.KindVolume: {
		head: []string{"NAME", "MEMBER", "CLAIM", "CLASS", "SIZE", "NODE", "FATE", "AGE"},
		wide: []string{"ID", "NUMBER", "USER", "WHY"},
		row:  volumeRow,
	},
	proto.KindNode: {
		head: []string{"NAME", "STATE", "CPU", "MEMORY", "VERSION"},
		wide: []string{"MEMBERS", "CPU REQUESTED", "MEMORY REQUESTED", "LABELS", "TAINTS", "ADDRESS", "CLASSES", "UID", "BOOT", "WAITS"},
		row:  nodeRow,
	},
	proto.KindService:   {head: []string{"NAME", "PORTS", "NOT-READY", "SELECTOR"}, wide: []string{"LABELS"}, row: serviceRow},
	proto.KindBudget:    {head: []string{"NAME", "MIN AVAILABLE", "MAX UNAVAILABLE", "SELECTOR"}, wide: []string{"LABELS"}, row: budgetRow},
	proto.KindConfigMap: {head: []string{"NAME", "KEYS"}, wide: []string{"GENERATION", "LABELS"}, row: filesRow},
	proto.KindSecret:    {head: []string{"NAME", "KEYS"}, wide: []string{"GENERATION", "LABELS"}, row: filesRow},
	proto.KindEvent:     {head: []string{"AGE", "TYPE", "REASON", "MEMBER", "COUNT", "MESSAGE"}, row: eventRow},
	proto.KindRevision:  {head: []string{"NAME", "SET", "NUMBER", "CAUSE", "AGE"}, wide: []string{"IMAGES"}, row: revisionRow},
}
