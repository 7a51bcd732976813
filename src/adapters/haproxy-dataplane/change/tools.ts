import type { DataplaneApi } from '../session/session.js'
import type { Configuration } from '../session/config.js'
import type { Reader } from '../read/read.js'
import type { Settings } from '../options.js'
import type { Followers } from '../read/followers.js'
import type { LastGood } from './last-good.js'
import type { ProcessMemory } from '../read/processes.js'

/** What changes are made with. */
export interface Tools {
  readonly api: DataplaneApi
  readonly settings: Settings
  readonly reader: Reader
  readonly memory: ProcessMemory
  readonly followers: Followers
  readonly configuration: Configuration
  readonly lastGood: LastGood
}
