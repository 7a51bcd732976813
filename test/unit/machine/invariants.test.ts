import { brokenInvariants, openGoal, type DrainState } from 'drainable/machine'
import { expect, test } from 'vitest'
import { held, idle, started } from './member-run.js'

type Parts = { [K in keyof DrainState]?: Partial<DrainState[K]> | DrainState[K] }

/** A sound state with a few fields changed. */
function broken(state: DrainState, parts: Parts): readonly string[] {
  const changed = Object.fromEntries(
    Object.entries(parts).map(([key, part]) => {
      const known = state[key as keyof DrainState]
      const merge = typeof part === 'object' && part !== null && typeof known === 'object'
      return [key, merge ? { ...known, ...part } : part]
    }),
  )
  return brokenInvariants({ ...state, ...changed })
}

function only(list: readonly string[]): string {
  return list.join('; ')
}

const sound = held({ seal: 'gentle' }).lookAt(100).state
const resting = idle({ seal: 'gentle' }).state
const track = sound.proof.scopes.get('w1')!
const zeros = track.zeros!

function withZeros(first: object, last: object = {}): Map<string, typeof track> {
  const changed = { first: { ...zeros.first, ...first }, last: { ...zeros.last, ...last } }
  return new Map([['w1', { ...track, zeros: changed }]])
}

test('a sound state breaks no rule', () => {
  expect(brokenInvariants(sound)).toEqual([])
  expect(brokenInvariants(resting)).toEqual([])
})

test('idle needs a verdict and a proof', () => {
  expect(only(broken(resting, { proof: { verdict: null } }))).toContain('rests on a verdict')
  expect(only(broken(resting, { proof: { proof: null } }))).toContain('rests on a verdict')
})

test('a proof or a seal needs an idle member', () => {
  expect(only(broken(resting, { phase: 'draining' }))).toContain('only an idle or removed')
  expect(only(broken(sound, { proof: { sealed: true } }))).toContain('sealed is said only')
  const gone = idle({ seal: 'gentle' }).vanish().look().look({ after: 20 }).state
  expect(gone.proof.sealed).toBe(true)
  expect(brokenInvariants(gone)).toEqual([])
})

test('counted samples need an effect', () => {
  const list = broken(sound, { proof: { effectiveSince: null } })
  expect(list).toContain('samples count only while the wish is in effect')
  expect(list).toContain('no sample that counts is older than the effect')
})

test('counted samples are newer than the effect', () => {
  const { sampledAt } = zeros.first
  expect(only(broken(sound, { proof: { effectiveSince: sampledAt + 1 } }))).toContain('older')
  expect(only(broken(sound, { proof: { effectiveSince: sampledAt } }))).toContain('older')
})

test.each([
  ['work in the first sample', { active: 1 }, {}],
  ['queued work in the first sample', { queued: 1 }, {}],
  ['a first sample that could not be read', { state: 'unread' }, {}],
  ['a first sample of another process', { incarnation: 'x' }, {}],
  ['other arrivals in the first sample', { arrivals: 1 }, {}],
  ['work in the last sample', {}, { active: 1 }],
])('%s', (_, first, last) => {
  expect(broken(sound, { proof: { scopes: withZeros(first, last) } })).toEqual([
    'every sample that counts is a whole zero of one process',
  ])
})

test('an ended process is not kept', () => {
  const scopes = new Map([
    ['w2', { ...track, zeros: null, last: { ...track.last, state: 'ended' as const } }],
  ])
  expect(only(broken(sound, { proof: { scopes } }))).toContain('is dropped')
})

test('a wish needs the goal to drain', () => {
  const goal = openGoal({ of: 'ours', until: null, lateUntil: null })
  expect(only(broken(sound, { goal }))).toContain('nothing is wished')
})

test('no more is confirmed than wished', () => {
  expect(only(broken(sound, { hold: { confirmed: 'maint' } }))).toContain('at most what is wished')
  expect(only(broken(sound, { hold: { wish: 'none' } }))).toContain('at most what is wished')
})

test('a watch changes nothing', () => {
  const { state } = started({ goal: { kind: 'watch' }, own: 'ready' }).look()
  const pending = { change: { kind: 'remove' as const, ref: state.ref }, before: 'ready' as const }
  const changes = [
    { kind: 'hold' as const, to: 'drain' as const, state: 'applied' as const, at: 1 },
  ]
  expect(only(broken(state, { hold: { pending } }))).toContain('a watch changes nothing')
  expect(only(broken(state, { hold: { changes } }))).toContain('a watch changes nothing')
})

test('a restored member owes nothing', () => {
  const { state } = held().look().open().look().answer().look().settle()
  expect(state.ending.ended?.outcome).toBe('restored')
  const pending = { change: { kind: 'remove' as const, ref: state.ref }, before: 'ready' as const }
  const changes = [
    { kind: 'hold' as const, to: 'drain' as const, state: 'applied' as const, at: 1 },
  ]
  expect(only(broken(state, { hold: { pending } }))).toContain('owes nothing')
  expect(only(broken(state, { hold: { changes } }))).toContain('owes nothing')
})

test('an end needs a start, and a settled or removed state an end', () => {
  const ended = { outcome: 'idle' as const, at: 0, error: null }
  expect(only(broken(resting, { ending: { ended } }))).toContain('has its moment')
  expect(only(broken(sound, { ending: { settled: true } }))).toContain('has an outcome')
  expect(only(broken(sound, { phase: 'removed' }))).toContain('removed is the end')
})

test('a refused change needs a time', () => {
  const change = { kind: 'hold' as const, ref: sound.ref, to: 'drain' as const }
  const entry = { change, lostAt: 1_000, lackedAt: null }
  const refused = (until: number | null) =>
    only(broken(sound, { hold: { late: [{ ...entry, until, refused: true }] } }))
  expect(refused(null)).toContain('half made')
  expect(refused(1_000)).toBe('')
  expect(only(broken(sound, { hold: { late: [{ ...entry, until: null }] } }))).toBe('')
})

test('an idle proved at the start was proved here', () => {
  expect(started().state.proof).toMatchObject({ isForeign: false })
})
