import { systemClock } from '../../../provider/clock.js'
import type { Lab } from '../rest/call.js'
import { Config, toMember } from './config.js'
import { fromSegment } from '../rest/names.js'
import { wrongOption } from '../../check-options.js'
import type { FakeOptions } from '../options.js'
import { Unit } from './unit.js'

const RELEASE = {
  '13.1': '13.1.5',
  '15.1': '15.1.10',
  '17.1': '17.1.1',
  '17.5': '17.5.1',
  '21.0': '21.0.0',
} as const

/** What the options leave out. */
const DEFAULTS = {
  pools: { web: ['10.0.0.1:80', '10.0.0.2:80'] },
  poolProps: {},
  host: '127.0.0.1',
  username: 'admin',
  password: 'secret',
  version: '15.1',
  role: 'admin',
  tokenTimeout: 1_200,
  maxTokens: 100,
  lockAfter: Infinity,
  loginNeedsBasic: false,
  clockSkew: 0,
  statsLag: 0,
  checkDelay: 0,
  latency: 0,
  ephemeralsRefuse: false,
  persistDelete: 'works',
  nodeStats: true,
  allStats: true,
  fqdnInherits: true,
  connectionDelete: true,
} as const satisfies FakeOptions

/** Units that a device group for failover can have (TMOS 13 to 21). */
const MOST_UNITS = 8

/**
 * The units as the options describe them, with every default filled in.
 *
 * @throws `INVALID_OPTIONS` for a number of units that no group has
 */
export function toLab(options: FakeOptions): Lab {
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  const filled: Lab['options'] = {
    ...DEFAULTS,
    clock: systemClock,
    ...(Object.fromEntries(given) as FakeOptions),
  }
  const { pools, poolProps, version, statsLag, clockSkew } = filled
  const count = unitsOf(options)
  const group = count === 1 ? undefined : typeof options.pair === 'object' ? options.pair : {}
  const others = group?.bothActive === true ? 'active' : 'standby'
  const units = Array.from({ length: count }, (_, i) => {
    const role = i === 0 ? 'active' : others
    return new Unit(`bigip${i + 1}.example.com`, role, statsLag, clockSkew)
  })
  for (const unit of units) {
    fill(unit.config, pools, poolProps)
    unit.saved = new Config()
    unit.saved.copyFrom(unit.config)
  }
  return {
    units,
    virtuals: options.virtuals ?? {},
    group: group === undefined ? undefined : (group.group ?? 'dg1'),
    autoSync: group?.autoSync ?? false,
    release: RELEASE[version],
    syncStatus: undefined,
    split: false,
    options: filled,
  }
}

function unitsOf({ units, pair = false }: FakeOptions): number {
  const least = pair === false ? 1 : 2
  const count = units ?? least
  if (Number.isInteger(count) && count >= least && count <= MOST_UNITS) return count
  const beside = least === 2 ? ' beside pair' : ''
  throw wrongOption(
    `units: expected a number from ${least} to ${MOST_UNITS}${beside}, found ${String(units)}`,
  )
}

function fill(
  config: Config,
  pools: NonNullable<FakeOptions['pools']>,
  props: NonNullable<FakeOptions['poolProps']>,
): void {
  let index = 0
  for (const [name, members] of Object.entries(pools)) {
    const pool = config.addPool(fromSegment(name), props[name])
    for (const option of members) {
      config.addMember(pool, toMember(pool.fullPath, option, index))
      index += 1
    }
  }
}

/** The backends behind members, by pool and member. */
export function toTargets(pools: NonNullable<FakeOptions['pools']>): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const [name, members] of Object.entries(pools)) {
    const pool = fromSegment(name)
    members.forEach((option, i) => {
      if (typeof option === 'string' || option.to === undefined) return
      found.set(`${pool}\0${toMember(pool, option, i).fullPath}`, option.to)
    })
  }
  return found
}
