import { systemClock } from '../../../provider/clock.js'
import type { Lab } from '../rest/call.js'
import { Config, toMember } from './config.js'
import { fromSegment } from '../rest/names.js'
import type { FakeOptions } from '../options.js'
import { Unit } from './unit.js'

const RELEASE = {
  '13.1': '13.1.5',
  '15.1': '15.1.10',
  '17.1': '17.1.1',
  '17.5': '17.5.1',
  '21.0': '21.0.0',
} as const

/** The units as the options describe them, with every default filled in. */
// eslint-disable-next-line complexity -- a default for each option
export function toLab(options: FakeOptions): Lab {
  const pair = options.pair === true ? {} : options.pair === false ? undefined : options.pair
  const version = options.version ?? '15.1'
  const statsLag = options.statsLag ?? 0
  const skew = options.clockSkew ?? 0
  const units = [new Unit('bigip1.example.com', 'active', statsLag, skew)]
  if (pair !== undefined) {
    const role = pair.bothActive === true ? 'active' : 'standby'
    units.push(new Unit('bigip2.example.com', role, statsLag, skew))
  }
  const pools = options.pools ?? { web: ['10.0.0.1:80', '10.0.0.2:80'] }
  for (const unit of units) {
    fill(unit.config, pools, options.poolProps ?? {})
    unit.saved = new Config()
    unit.saved.copyFrom(unit.config)
  }
  return {
    units,
    virtuals: options.virtuals ?? {},
    group: pair === undefined ? undefined : (pair.group ?? 'dg1'),
    autoSync: pair?.autoSync ?? false,
    release: RELEASE[version],
    syncStatus: undefined,
    split: false,
    options: {
      pools,
      poolProps: options.poolProps ?? {},
      host: options.host ?? '127.0.0.1',
      username: options.username ?? 'admin',
      password: options.password ?? 'secret',
      version,
      role: options.role ?? 'admin',
      tokenTimeout: options.tokenTimeout ?? 1_200,
      maxTokens: options.maxTokens ?? 100,
      lockAfter: options.lockAfter ?? Infinity,
      loginNeedsBasic: options.loginNeedsBasic ?? false,
      clockSkew: skew,
      statsLag,
      checkDelay: options.checkDelay ?? 0,
      latency: options.latency ?? 0,
      clock: options.clock ?? systemClock,
      ephemeralsRefuse: options.ephemeralsRefuse ?? false,
      persistDelete: options.persistDelete ?? 'works',
      nodeStats: options.nodeStats ?? true,
      allStats: options.allStats ?? true,
      fqdnInherits: options.fqdnInherits ?? true,
      connectionDelete: options.connectionDelete ?? true,
    },
  }
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
