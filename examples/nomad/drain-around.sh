#!/bin/sh
# drain-around.sh COMMAND...: runs COMMAND as a server behind a load balancer. It is made ready after the start, and
# drained before COMMAND is told to stop. Told by the environment: DRAINABLE_BALANCER, DRAINABLE_TARGET, and
# DRAINABLE_DRAIN_TIMEOUT (90s) and DRAINABLE_WAIT_HEALTHY (60s).
set -u
: "${DRAINABLE_BALANCER:?the balancer, such as haproxy://10.0.0.1:9999}"
: "${DRAINABLE_TARGET:?the target, such as web/web1 or 10.0.0.7:8080}"

asked=0 # how often it was told to stop
at_work='' # the drainable that runs
stop() {
  asked=$((asked + 1))
  # The first time it ends a ready that runs, the second time the drain.
  [ -z "$at_work" ] || kill -TERM "$at_work" 2>/dev/null
}
trap stop TERM INT HUP

# wait_for PID TIMES: until it ended, with its status in $status, or until the wrapper was told to stop that often.
# A signal interrupts `wait`, which is then called again.
wait_for() {
  while [ "$asked" -lt "$2" ]; do
    before=$asked
    status=0
    wait "$1" || status=$?
    [ "$asked" != "$before" ] || return 0
  done
}

"$@" &
app=$!

drainable ready "$DRAINABLE_BALANCER" "$DRAINABLE_TARGET" --wait-healthy "${DRAINABLE_WAIT_HEALTHY:-60s}" &
at_work=$!
wait_for "$at_work" 99
at_work=''

wait_for "$app" 1
# It ended by itself: there is nothing left to drain, and the checks of the balancer see it.
[ "$asked" -gt 0 ] || exit "$status"

drainable drain "$DRAINABLE_BALANCER" "$DRAINABLE_TARGET" --timeout "${DRAINABLE_DRAIN_TIMEOUT:-90s}" &
at_work=$!
wait_for "$at_work" 99
[ "$status" = 0 ] || echo "drain-around: the drain ended with status $status, COMMAND is stopped all the same" >&2
at_work=''

kill -TERM "$app" 2>/dev/null
wait_for "$app" 99
exit "$status"
