# What the entry scripts of examples/ share. Plain POSIX shell; `. /entry/lib.sh` reads it.
# Each manifest carries it as it stands here (examples/README.md).

facts=${FACTS:-/run/stead}

say() { echo "entry: $*" >&2; }

# refuse ends the script: Stead starts it again later, and shows why until then.
refuse() { say "refused: $*"; exit 75; }

# look reads the facts about the set as they are now, all of one version. It waits for the first.
look() {
  until [ -e "$facts/set.env" ]; do sleep 0.2; done
  . "$facts/set.env"
}

# peers prints the names of the other members that have an address.
peers() {
  echo "$STEAD_PEERS" | while read -r _ name fqdn address _; do
    [ "$name" = "$STEAD_MEMBER" ] || [ "$address" = - ] || echo "$fqdn"
  done
}

# volume CLAIM prints the origin of a volume: first, replaced, or nothing if a life was ready on it.
volume() { [ ! -e "$facts/volume-new" ] || sed -n "s/^$1 //p" "$facts/volume-new"; }

# exists reports whether there is a cluster to join: it was complete once, or a member has data.
exists() { [ -n "$STEAD_BOOTSTRAPPED$STEAD_USED" ] || [ -e "$facts/bootstrapped" ]; }

# forms CLAIM [ORDINALS] decides for a member that has no data. It succeeds if this member is to form
# a new cluster, with the other ORDINALS (those with which the set started). Otherwise it waits
# until there is a cluster, and fails: this member is to join it.
forms() {
  look
  if ! exists; then
    case " ${2-$STEAD_INITIAL_ORDINALS} " in *" $STEAD_ORDINAL "*)
      [ -n "$(volume "$1")" ] || refuse "the disk was used before and is empty now, and the cluster was never complete"
      say "first start: forming the cluster of members $STEAD_INITIAL_ORDINALS"
      return 0 ;;
    esac
    say "waiting for the first members to form the cluster"
  fi
  until exists; do sleep 1; look; done
  return 1
}

# insist COMMAND… repeats what may fail for now until it succeeds, and refuses after a minute.
# When it fails, it has set why.
insist() {
  tries=0
  until "$@"; do
    say "waiting to join: $why"
    [ "$tries" -lt "${PATIENCE:-30}" ] || refuse "cannot join: $why"
    tries=$((tries + 1))
    sleep 2
    look
  done
}

# tell FILE TEXT says something of this member: note, leader or busy (docs/MEMBERS.md, self).
tell() { echo "$2" >"$facts/self/.$1" && mv "$facts/self/.$1" "$facts/self/$1"; }

# noted ORDINAL prints the note of a member, as look found it.
noted() { echo "$STEAD_NOTES" | sed -n "s/^$1 //p"; }

# start PROGRAM… starts the database, and await waits for its end and exits with its code. A stop
# signal is passed on. If the member leaves for good, leave is called before, which the script may define.
start() { "$@" & child=$!; }

await() {
  while :; do # a signal ends wait early, not the database
    signalled=
    code=0
    wait "$child" || code=$?
    [ -n "$signalled" ] || exit "$code"
  done
}

leave() { :; }

stop() {
  trap 'signalled=yes' TERM INT
  signalled=yes
  if [ "$(cat "$facts/termination-reason" 2>/dev/null)" = ScaleDown ]; then leave || true; fi
  child=${child:-${!:-}} # it may have been started just now
  [ -n "$child" ] || exit 143
  kill -TERM "$child" 2>/dev/null || true
}
child=
trap stop TERM INT
