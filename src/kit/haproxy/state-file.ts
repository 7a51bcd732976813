import type { Advice } from '../../provider/contract.js'

const SETTINGS = 'server-state-file in global, and load-server-state-from-file in defaults'

/** What a reload has shown of a state file. */
export const OPENED: Advice = {
  text: 'the last reload opened what was drained until it was put back: no state file is in force, or it was not written before the reload',
  hint: `set ${SETTINGS}, and write the states before each reload`,
}

/** What is known of one before: no command tells of it (2.6, 3.0, 3.2 and 3.4). */
export const STATE_FILE_UNKNOWN = `HAProxy does not tell whether a state file is in force (${SETTINGS}): without one, a reload opens what is drained until the drain is put back`
