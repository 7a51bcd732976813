/**
 * A random story of drains over several balancers, each with a truth of its own: they differ in product, pace and latency;
 * they hang, refuse, are away, reload, and have operators. What is said of them together is compared with the truth of each.
 */
import fc from 'fast-check'
import type { AdminState, Policy } from 'drainable'
import { fakeClock, type FakeClock } from 'drainable/testing'
import { CombinedJudge } from './combined/judge.js'
import { Side } from './combined/side.js'
import { Users, type Chain, type Held, type Target } from './combined/user.js'
import { withHost } from './user/host.js'
import { UserProcess } from './user/user-process.js'
import { FATES } from './world/control-plane.js'
import { keyOf } from './world/member.js'

/** The first value of each is the plainest: a story that fails is made as plain as it can be. */
const side = fc.record({
  seed: fc.nat(1_000_000),
  maint: fc.constantFrom('gentle', 'gentle', 'cuts', 'none'),
  countsArrivals: fc.constantFrom(true, true, true, false),
  freshness: fc.constantFrom(0, 0, 300),
  blind: fc.constantFrom(0, 0, 1_100),
  lateBound: fc.constantFrom(200, 200, 3_000),
  latency: fc.constantFrom(2, 10, 40, 600),
  minInterval: fc.constantFrom(50, 100, 200, 1_000),
  takes: fc.constantFrom(0, 0, 300),
  units: fc.boolean(),
  afterReload: fc.constantFrom('forgets', 'forgets', 'state-file', 'either'),
  checked: fc.boolean(),
  removes: fc.boolean(),
  rough: fc.boolean(),
  busy: fc.boolean(),
})

const policy = fc.record({
  timeout: fc.constantFrom(6_000, 12_000, 20_000),
  settle: fc.constantFrom('200ms', '0ms', '1s'),
  onTimeout: fc.constantFrom('fail', 'fail', 'proceed', 'terminate'),
  until: fc.constantFrom('idle', 'idle', 'idle', 'removed'),
  seal: fc.constantFrom(undefined, undefined, true, false),
  keepReady: fc.constantFrom(0, 1),
  onMinimum: fc.constantFrom('wait', 'fail'),
  onOverrule: fc.constantFrom('fail', 'reapply'),
  onAbort: fc.constantFrom('leave', 'restore'),
  onUnreachable: fc.constantFrom('wait', 'fail'),
  kept: fc.constantFrom('store', 'caller', 'returned'),
})

const KINDS = [
  'start',
  'drain',
  'steps',
  'work',
  'work',
  'hang',
  'fail',
  'fail for good',
  'unread',
  'fate',
  'reload',
  'restart',
  'operator',
  'operator',
  'restore',
  'release',
  'abort',
  'peek',
  'ready',
  'watch',
  'resume',
  'undo',
  'crash',
] as const

const step = fc.record({
  kind: fc.constantFrom(...KINDS),
  side: fc.nat(2),
  what: fc.nat(11),
  ms: fc.integer({ min: 1, max: 5_000 }),
  after: fc.integer({ min: 0, max: 2_500 }),
})

/** Several balancers, what is begun first, and what happens then. */
export const combinedStory = fc.record({
  sides: fc.array(side, { minLength: 2, maxLength: 3 }),
  policies: fc.array(policy, { minLength: 1, maxLength: 3 }),
  first: fc.record({
    kind: fc.constantFrom('start', 'drain', 'steps'),
    target: fc.nat(11),
    awayFor: fc.constantFrom(0, 0, 0, 700, 4_000),
  }),
  steps: fc.array(step, { maxLength: 14 }),
  twoProcesses: fc.boolean(),
  tidy: fc.array(fc.constantFrom('restore', 'release', 'abort', 'crash'), {
    minLength: 1,
    maxLength: 4,
  }),
})

type Story = typeof combinedStory extends fc.Arbitrary<infer T> ? T : never
type Step = Story['steps'][number]

/** The story of a seed. */
export function combinedOf(seed: number): Story {
  const [story] = fc.sample(combinedStory, { seed, numRuns: 1 })
  if (story === undefined) throw new Error('no story')
  return story
}

const KEYS = ['a', 'b', 'c']
const STATES: readonly AdminState[] = ['ready', 'drain', 'maint']
/** Longest time that everything still open may take once all is calm, in milliseconds. */
const CALM_LIMIT = 150_000

class CombinedPlay {
  readonly judge: CombinedJudge
  readonly #told: Story
  readonly #clock: FakeClock = fakeClock(1_000, Date.UTC(2026, 0, 1))
  readonly #users: Users
  readonly #sides: readonly Side[]
  readonly #processes: UserProcess[] = []
  #chains = 0
  #born = 0

  constructor(told: Story, trace: ((line: string) => void) | undefined) {
    this.#told = told
    const tell = (text: string): void =>
      trace?.(`${String(Math.round(this.#clock.now())).padStart(7)} ${text}`)
    this.judge = new CombinedJudge(this.#clock, tell)
    this.#sides = told.sides.map((own, n) => {
      const key = KEYS[n] ?? 'z'
      tell(`${key}: ${JSON.stringify(own)}`)
      const pools = new Map([
        ['web', ['web1', 'web2']],
        [`only-${key}`, ['own1', 'own2']],
      ])
      return new Side(key, own, pools, this.#clock, tell, this.judge)
    })
    this.judge.sides.push(...this.#sides)
    this.#users = new Users(this.judge)
  }

  get clock(): FakeClock {
    return this.#clock
  }

  async play(): Promise<void> {
    const { first, steps, twoProcesses } = this.#told
    for (let n = twoProcesses ? 2 : 1; n > 0; n -= 1) this.#begin(n - 1)
    for (const one of this.#sides) one.start()
    const [, slow] = this.#sides
    if (slow !== undefined && first.awayFor > 0)
      slow.plane.failingUntil = this.#clock.now() + first.awayFor
    this.#drain(first.kind, first.target, first.target * 200)
    for (const one of steps) {
      await this.#clock.advance(one.after)
      this.#happen(one)
    }
    await this.#clock.advance(1_000)
    await this.#calm()
    await this.#undoWhatIsLeft()
  }

  #begin(slot: number): void {
    this.#born += 1
    const process = new UserProcess(this.#born, this.#clock)
    this.#users.begin(process)
    this.#processes[slot] = process
  }

  #process(n: number): UserProcess {
    const found = this.#processes[n % this.#processes.length]
    if (found === undefined) throw new Error('no process')
    return found
  }

  // --- what is drained

  #target(n: number): Target {
    const all = this.#sides.map(({ key }) => key)
    const [a = 'a', b = 'b'] = all
    const on = (balancer: string, member: string) => ({ pool: 'web', member, balancer })
    const targets: readonly Target[] = [
      all.map((key) => on(key, 'web1')),
      [on(a, 'web1'), on(b, 'web2')],
      { address: '192.0.2.1' },
      [on(a, 'web1'), on(a, 'web2'), on(b, 'web1')],
      { address: '192.0.2.2' },
      { pool: `only-${b}` },
      [{ pool: `only-${a}`, member: 'own1' }, on(b, 'web1')],
      { pool: 'web', balancer: b },
    ]
    return targets[n % targets.length] ?? on(a, 'web1')
  }

  /** All that a target can hit. */
  #keysOf(target: Target): ReadonlySet<string> {
    const given = [target].flat() as readonly {
      pool?: string
      member?: string
      balancer?: string
      address?: string
    }[]
    const keys = this.#sides.flatMap(({ key, truth }) =>
      [...truth.members.values()].flatMap(({ ref, identities: [first] }) => {
        const isHit = given.some(
          ({ pool, member, balancer, address }) =>
            (balancer ?? key) === key &&
            (pool ?? ref.pool) === ref.pool &&
            (member ?? ref.member) === ref.member &&
            (address === undefined || first?.identity.startsWith(`${address}:`) === true),
        )
        return isHit ? [`${key} ${keyOf(ref)}`] : []
      }),
    )
    return new Set(keys)
  }

  #chain(n: number): Chain {
    const { policies } = this.#told
    const { kept, seal, until, onTimeout, ...rest } = policies[n % policies.length] ?? policies[0]!
    const target = this.#target(n)
    const removes = until === 'removed' && onTimeout === 'proceed'
    const given: Policy = {
      ...rest,
      ...(seal === undefined ? {} : { seal }),
      until,
      onTimeout: removes ? 'remove' : onTimeout,
      ifUnsupported: 'proceed',
    }
    this.#chains += 1
    return {
      id: `d${this.#chains}`,
      target,
      keys: this.#keysOf(target),
      policy: given,
      kept,
      saved: undefined,
      stepping: false,
      undone: undefined,
    }
  }

  #drain(kind: 'start' | 'drain' | 'steps', what: number, ms: number): void {
    const process = this.#process(what)
    const chain = this.#chain(what)
    if (kind === 'start') this.#users.start(chain, process)
    else if (kind === 'drain') this.#users.drain(chain, process, ms)
    else this.#users.steps(chain, process)
  }

  // --- what happens

  #happen({ kind, side: at, what, ms }: Step): void {
    const one = this.#sides[at % this.#sides.length]
    if (one === undefined) return
    const { plane, truth } = one
    const keys = [...truth.members.keys()]
    const key = keys[what % keys.length] ?? ''
    const users = this.#users
    const until = this.#clock.now() + ms
    const process = this.#process(what)
    const held = users.held[what % Math.max(1, users.held.length)]
    const chain = users.chains[what % Math.max(1, users.chains.length)]
    switch (kind) {
      case 'start':
      case 'drain':
      case 'steps':
        this.#drain(kind, what, ms)
        break
      case 'work':
        one.work(key, ms)
        break
      case 'hang':
        plane.frozenUntil = until
        truth.tell(`hangs for ${ms} ms`)
        break
      case 'fail':
        plane.failingUntil = until
        truth.tell(`can't be read for ${ms} ms`)
        break
      case 'fail for good':
        plane.failingForGoodUntil = until
        truth.tell(`refuses to be read for ${ms} ms`)
        break
      case 'unread':
        for (const each of truth.current()) each.unreadUntil = until
        truth.tell(`its process can't be read for ${ms} ms`)
        break
      case 'fate':
        plane.planned.push(FATES[what % FATES.length] ?? 'done')
        break
      case 'reload':
      case 'restart':
        one.reload(kind)
        break
      case 'operator':
        one.operator(key, STATES[ms % STATES.length] ?? 'ready')
        break
      case 'ready':
        users.ready(this.#chain(what), process)
        break
      case 'watch':
        users.watch(this.#chain(what), process, ms)
        break
      case 'crash':
        this.#crash(what)
        break
      default:
        if (held !== undefined) this.#letGo(kind, held)
        if (chain !== undefined) this.#goOn(kind, chain, process)
    }
  }

  #letGo(kind: Step['kind'] | Story['tidy'][number], held: Held): void {
    const users = this.#users
    if (kind === 'restore') users.restoreHandle(held)
    else if (kind === 'release') users.release(held)
    else if (kind === 'abort') users.abort(held)
    else if (kind === 'peek') users.peek(held)
  }

  #goOn(kind: Step['kind'], chain: Chain, process: UserProcess): void {
    if (kind === 'resume') this.#users.resume(chain, process)
    else if (kind === 'undo') this.#users.restoreTicket(chain, process)
  }

  #crash(n: number): void {
    const slot = n % this.#processes.length
    this.#users.crash(this.#process(slot))
    this.#begin(slot)
  }

  // --- the end

  /** Nothing goes wrong from here on: each user lets go, in one way or another. */
  async #calm(): Promise<void> {
    this.judge.truth.tell('calm from here on')
    for (const one of this.#sides) one.calm()
    await this.#clock.advance(6_000)
    const { tidy } = this.#told
    for (const chain of this.#users.chains) chain.stepping = false
    for (const [n, held] of [...this.#users.held].entries()) {
      const how = tidy[n % tidy.length]
      if (!this.#users.held.includes(held)) continue
      if (how === 'crash') this.#crash(this.#processes.indexOf(held.call.process))
      else this.#letGo(how ?? 'release', held)
    }
    this.#users.endActions()
    await this.#settle()
    for (const held of [...this.#users.held]) this.#users.release(held)
    await this.#settle()
  }

  async #settle(): Promise<void> {
    const until = this.#clock.now() + CALM_LIMIT
    await this.#clock.advance(0)
    while (this.#users.waiting.open().length > 0 && this.#clock.now() < until)
      await this.#clock.advance(200)
    for (const { what } of this.#users.waiting.open())
      this.judge.fault('silent end', `${what} never settles`)
  }

  /** The ticket that was kept is enough to undo a drain; what is left drained is named. */
  async #undoWhatIsLeft(): Promise<void> {
    if (this.judge.faults.length > 0) return
    await this.#clock.advance(5_000)
    this.#begin(0)
    for (const chain of this.#users.chains) {
      this.#users.restoreTicket(chain, this.#process(0))
      await this.#settle()
    }
    await this.#clock.advance(4_000)
    this.#judgeLeft()
  }

  #judgeLeft(): void {
    const named = new Set(
      this.#users.chains.flatMap(({ undone }) =>
        (undone?.members ?? []).flatMap(({ ref, outcome }) =>
          outcome === 'restored' ? [] : [`${ref.balancer} ${keyOf(ref)}`],
        ),
      ),
    )
    for (const one of this.#sides)
      for (const { key, ref } of one.truth.members.values())
        if (one.isOurs(ref) && !named.has(`${one.key} ${key}`))
          this.judge.fault('left', `${one.key} ${key} is left drained, and no undo names it`)
  }
}

/** Plays a story. @returns what must never be, and was */
export async function playCombined(
  told: Story,
  trace?: (line: string) => void,
): Promise<{ readonly faults: readonly string[]; readonly counts: ReadonlyMap<string, number> }> {
  const play = new CombinedPlay(told, trace)
  const { clock, judge } = play
  const leave = withHost({ wall: () => clock.wall(), uptime: () => clock.now(), random: () => 0.5 })
  const unhandled = (error: unknown): void =>
    judge.fault('unhandled', `an unhandled rejection: ${String(error)}`)
  process.on('unhandledRejection', unhandled)
  try {
    await play.play()
  } finally {
    leave()
    process.off('unhandledRejection', unhandled)
  }
  const { faults, counts } = judge
  return { faults, counts }
}
