import type { DataplaneApi } from './api.js'
import type { Configuration } from './config.js'
import type { PollGate } from './gate.js'
import type { Settings } from './options.js'
import type { ProcessMemory } from './processes.js'

/** What changes are made with. */
export interface Tools {
  readonly api: DataplaneApi
  readonly settings: Settings
  readonly gate: PollGate
  readonly memory: ProcessMemory
  readonly configuration: Configuration
}
