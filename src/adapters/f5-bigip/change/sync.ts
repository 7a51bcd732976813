import { caught } from '../../../kit/errors.js'
import { until } from '../../../kit/until.js'
import type { CallContext } from '../../../provider/contract.js'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { quote } from '../../../provider/quote.js'
import { parseSyncStatus } from '../codec/device.js'
import type { Device } from '../session/device.js'
import { PROVIDER } from '../session/session.js'
import type { Settings } from '../options.js'

/** How long the other units may take to follow, in milliseconds. */
const SYNC_WAIT = 20_000
const SYNC_LOOK = 500

/** For how long a device without a group is not asked again, in milliseconds. */
const STANDALONE_FOR = 600_000

const SYNC_STATUS = '/mgmt/tm/cm/sync-status'
const SAVE = '/mgmt/tm/sys/config'

/**
 * What follows a change where it is asked for: the push to the other units, then the save.
 *
 * A push carries everything that is pending, so nothing is changed while another client's changes are;
 * and the save comes last, so that what is saved is what both units run. A push that fails takes
 * nothing back: the drain is in force on the active unit, and every reading says what failed.
 */
export class AfterChange {
  readonly #settings: Settings
  /** What went wrong the last time, until it went well. */
  fault: string | undefined
  /** What the other units do not have yet, where no client pushes. */
  pending: string | undefined
  #standaloneUntil = -Infinity

  constructor(settings: Settings) {
    this.#settings = settings
  }

  /**
   * Whether a change may be made now.
   *
   * @throws `CONFLICT` where a push would carry other changes too
   */
  async before(device: Device, ctx: CallContext): Promise<void> {
    const group = this.#settings.configSync?.group
    if (group === undefined || this.fault !== undefined) return
    const status = await readStatus(device, ctx)
    if (status === 'In Sync' || status === 'Standalone') return
    throw new DrainableError(
      'CONFLICT',
      `${device.host}: device group ${group} is "${status}" before the change, and a push would carry all of it; sync the group first, or leave out configSync`,
      { provider: PROVIDER, retryable: false },
    )
  }

  /** A change may have been made, now or later: what it is in force on is not known before the next one. */
  missed(): void {
    const { configSync, save } = this.#settings
    if (configSync === undefined && !save) return
    this.fault = 'it is not known whether the change was made, so it was not pushed or saved'
  }

  /** Pushes and saves what was just changed. */
  async after(device: Device, ctx: CallContext): Promise<void> {
    const { configSync, save } = this.#settings
    try {
      if (configSync !== undefined) await push(device, configSync.group, ctx)
      else this.pending = await this.#readPending(device, ctx)
      const body = { command: 'save' }
      if (save) await device.session.change({ method: 'POST', path: SAVE, body }, ctx)
      this.fault = undefined
    } catch (error) {
      if (ctx.signal.aborted || !isDrainableError(error)) throw error
      this.fault = error.message
    }
  }

  /** A group in which changes wait for a push: after a failover they are not in force. */
  async #readPending(device: Device, ctx: CallContext): Promise<string | undefined> {
    if (ctx.clock.now() < this.#standaloneUntil) return undefined
    const status = await caught(
      ctx,
      () => readStatus(device, ctx),
      () => '',
    )
    const standalone = status === 'Standalone' || status === 'unknown'
    if (standalone) this.#standaloneUntil = ctx.clock.now() + STANDALONE_FOR
    if (!/pending|not all devices synced/i.test(status)) return undefined
    return `the device group is "${quote(status)}" after the change: the other units do not have it, and a failover undoes it until the next look; set configSync: { group }, turn autoSync on, or push it yourself`
  }
}

async function push(device: Device, group: string, ctx: CallContext): Promise<void> {
  if ((await readStatus(device, ctx)) !== 'In Sync') {
    const body = { command: 'run', utilCmdArgs: `config-sync to-group ${group}` }
    await device.session.change({ method: 'POST', path: '/mgmt/tm/cm', body }, ctx)
  }
  let status = ''
  const synced = await until(ctx, { every: SYNC_LOOK, within: SYNC_WAIT }, async () => {
    status = await readStatus(device, ctx)
    if (status === 'Disconnected') return false
    return status === 'In Sync' || status === 'Standalone' ? true : undefined
  })
  if (synced === true) return
  throw new DrainableError(
    'CONFLICT',
    `the push to device group ${group} left it "${status}": the change is on ${device.host} only`,
    { provider: PROVIDER },
  )
}

async function readStatus(device: Device, ctx: CallContext): Promise<string> {
  const found = await device.session.get(SYNC_STATUS, ctx)
  return found === undefined ? 'unknown' : parseSyncStatus(found)
}
