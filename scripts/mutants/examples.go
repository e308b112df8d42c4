package main

// examples are what the entry scripts of examples/ decide, each taken out.
var examples = []fault{
	{"S19", "examples/lib.sh", "  if ! exists; then\n", "  if true; then\n",
		suite{"examples", "^TestAMemberFormsAClusterOnlyWhereThereWasNone$"}},
	{"S19", "examples/lib.sh", `*" $STEAD_ORDINAL "*)`, `*"$STEAD_ORDINAL"*)`,
		suite{"examples", "^TestAMemberFormsAClusterOnlyWhereThereWasNone$"}},
	{"S19", "examples/lib.sh", `[ -n "$(volume "$1")" ] ||`, "true ||",
		suite{"examples", "^TestAMemberFormsAClusterOnlyWhereThereWasNone$"}},
	{"S19", "examples/galera/galera.yaml", `[ "$has" = "$note" ] ||`, "true ||",
		suite{"examples", "^TestWhoseDataIsNewestFormsGaleraAgain$"}},
	{"S19", "examples/galera/galera.yaml", `*) why="nobody serves, and $name has not said what its disk holds"; return 1 ;;`, "*) continue ;;",
		suite{"examples", "^TestWhoseDataIsNewestFormsGaleraAgain$"}},
	{"S19", "examples/galera/galera.yaml", `"${has##*:}" -gt "$number"`, `"${has##*:}" > "$number"`,
		suite{"examples", "^TestWhoseDataIsNewestFormsGaleraAgain$"}},
	{"S19", "examples/galera/galera.yaml", `[ "$members" -ge "$STEAD_REPLICAS" ] || return 1`, "true",
		suite{"examples", "^TestWhoseDataIsNewestFormsGaleraAgain$"}},
	{"S19", "examples/galera/galera.yaml", `if [ -e "$data.waits" ]; then`, "if false; then",
		suite{"examples", "^TestAMemberOfGaleraRunsOnlyWhenItsPeersKnow$"}},
	{"S19", "examples/galera/galera.yaml", `touch "$data.waits"`, ":",
		suite{"examples", "^TestWhoseDataIsNewestFormsGaleraAgain$"}},
}
