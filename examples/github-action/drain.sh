#!/usr/bin/env bash
# The one step of action.yml. What it is told stands in INPUT_*, what it says goes to GITHUB_OUTPUT.
set -euo pipefail

read -r -a command <<<"$INPUT_COMMAND"
read -r -a targets <<<"$INPUT_TARGET"
call=("${command[@]}" "$INPUT_VERB" --json)
[[ -z ${INPUT_CONFIG:-} ]] || call+=(--config "$INPUT_CONFIG")
[[ -z ${INPUT_TIMEOUT:-} ]] || call+=(--timeout "$INPUT_TIMEOUT")
while IFS= read -r line; do
  [[ -z $line ]] || call+=("$line")
done <<<"${INPUT_ARGS:-}"
call+=("$INPUT_BALANCER" "${targets[@]}")
[[ -z ${INPUT_RUN:-} ]] || call+=(-- bash -euo pipefail -c "$INPUT_RUN")
# An input that is not given is an empty variable, and the command would take it for a user or a password.
[[ -n ${DRAINABLE_USERNAME:-} ]] || unset DRAINABLE_USERNAME
[[ -n ${DRAINABLE_PASSWORD:-} ]] || unset DRAINABLE_PASSWORD

report=$(mktemp -d "${RUNNER_TEMP:-/tmp}/drainable-XXXXXX")/report.json
status=0
# A cancelled job signals this shell: the command hears of it, and ends by its policy.
"${call[@]}" >"$report" &
child=$!
trap 'kill -TERM "$child" 2>/dev/null' TERM
trap 'kill -INT "$child" 2>/dev/null' INT
wait "$child" || status=$?
while kill -0 "$child" 2>/dev/null; do
  status=0
  wait "$child" || status=$?
done

# Node is there: the command runs on it.
node --input-type=module - "$report" "$status" <<'JS'
import { appendFileSync, readFileSync } from 'node:fs'
const [file, status] = process.argv.slice(2)
let document = {}
try {
  document = JSON.parse(readFileSync(file, 'utf8'))
} catch {
  // A wrong command line has no document: its words are on stderr.
}
const { verb, report, roll, error } = document
const drains = roll?.servers?.map(({ drained }) => drained).filter(Boolean) ?? (report ? [report] : [])
const members = drains.flatMap((drain) => drain.members ?? [])
const words = { ready: 'ready', status: 'seen', plan: 'planned' }
const outcome = roll?.outcome ?? report?.outcome ?? (status === '0' ? words[verb] : undefined) ?? 'error'
const verified = members.length > 0 && members.every(({ verifiedIdle }) => verifiedIdle === true)
const lines = { outcome, verified, status, report: file }
const text = Object.entries(lines).map(([name, value]) => `${name}=${value}\n`)
appendFileSync(process.env.GITHUB_OUTPUT ?? '/dev/stdout', text.join(''))
const why = error?.message ?? members.flatMap(({ why = [] }) => why.map(({ text }) => text)).join('; ')
if (status !== '0') {
  // An annotation is one line; its own signs are written in percent.
  const escape = (text) => text.replace(/%/g, '%25').replace(/\r/g, '%0D').replace(/\n/g, '%0A')
  console.log(`::error title=drainable::${escape(`status ${status}: ${outcome}${why === '' ? '' : `: ${why}`}`)}`)
}
JS

[[ $status == 10 && ${INPUT_ACCEPT_UNVERIFIED:-false} == true ]] && exit 0
exit "$status"
