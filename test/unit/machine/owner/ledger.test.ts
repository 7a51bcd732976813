import { initialState, type DrainState, type Hold } from 'drainable/machine'
import type { Change } from 'drainable/provider'
import { describe, expect, test } from 'vitest'
import {
  lacksEffect,
  ledgerOf,
  noted,
  sameChange,
} from '../../../../src/core/machine/ledger/changes.js'
import { owesUndo, whoseHold, whyLower } from '../../../../src/core/machine/ledger/owner.js'
import type { OwnChange } from '../../../../src/core/machine/state.js'
import { WEB1 } from '../member-run.js'

const drain: Change = { kind: 'hold', to: 'drain', ref: WEB1 }
const maint: Change = { kind: 'hold', to: 'maint', ref: WEB1 }
const undo: Change = { kind: 'restore', expect: 'drain', to: 'ready', ref: WEB1 }
const remove: Change = { kind: 'remove', ref: WEB1 }
const terminate: Change = { kind: 'terminate', ref: WEB1 }

function own(kind: OwnChange['kind'], to: OwnChange['to'], state: OwnChange['state'], at = 1) {
  return { kind, to, state, at }
}

function late(change: Change, lacked = true, lostAt = 5) {
  return { change, lostAt, until: null, lackedAt: lacked ? lostAt : null }
}

/** A member with this ledger, last read in one process. */
function member(hold: Partial<Hold>, incarnation = '1', found = 'ready'): DrainState {
  const state = initialState(WEB1, 0, null)
  const last = {
    scope: 'w1',
    incarnation,
    state: 'read' as const,
    sampledAt: 1,
    active: 0,
    queued: 0,
    inForce: true,
  }
  const track = {
    last,
    read: last,
    quietFrom: 0,
    livedFrom: null,
    stalled: 0,
    zeros: null,
    arrivalsAtEffect: null,
    steadySince: 0,
  }
  return {
    ...state,
    found: { identity: 'x', own: found as 'ready', serves: true, native: null },
    hold: { ...state.hold, incarnations: new Map([['w1', '1']]), ...hold },
    proof: { ...state.proof, scopes: new Map([['w1', track]]) },
  }
}

describe('the ledger', () => {
  const applied = own('hold', 'drain', 'applied')

  test('gets one entry more for another change', () => {
    expect(noted([applied], own('hold', 'maint', 'applied', 2))).toHaveLength(2)
    expect(noted([applied], own('restore', 'drain', 'applied', 2))).toHaveLength(2)
    expect(noted([applied], undefined)).toEqual([applied])
  })

  test('notes the new moment for a repeat of the newest change', () => {
    const two = [own('hold', 'maint', 'applied'), applied]
    expect(noted(two, own('hold', 'drain', 'applied', 9))).toEqual([
      own('hold', 'maint', 'applied'),
      own('hold', 'drain', 'applied', 9),
    ])
  })

  test('keeps the entry for a repeat that found it so', () => {
    expect(noted([applied], own('hold', 'drain', 'unchanged', 9))).toEqual([
      own('hold', 'drain', 'applied', 9),
    ])
  })

  test('gets one entry more for an applied change found so before', () => {
    expect(noted([own('hold', 'drain', 'unchanged')], applied)).toHaveLength(2)
  })

  test('gets one entry more for each change that was only intended', () => {
    const intended = own('hold', 'drain', 'intended')
    expect(noted([intended], intended)).toHaveLength(2)
    expect(noted([applied], intended)).toHaveLength(2)
  })

  test('gets one entry more for a repeat of an older change', () => {
    const two = [applied, own('hold', 'maint', 'applied')]
    expect(noted(two, applied)).toHaveLength(3)
  })
})

describe('the list of changes in a ticket', () => {
  test('is the ledger, the late changes and the change under way', () => {
    const changes = [own('hold', 'drain', 'applied')]
    const pending = { change: undo, before: 'drain' as const }
    const state = member({ changes, late: [late(maint)], pending, confirmedAt: 7 })
    expect(ledgerOf(state)).toEqual([
      ...changes,
      own('hold', 'maint', 'intended', 5),
      own('restore', 'ready', 'intended', 7),
    ])
  })

  test('has one entry for two lost answers to one change', () => {
    const state = member({ late: [late(drain), late(drain, true, 6), late(maint, true, 7)] })
    expect(ledgerOf(state)).toEqual([
      own('hold', 'drain', 'intended', 5),
      own('hold', 'maint', 'intended', 7),
    ])
  })

  test('has no entry for a lost change that is in place already', () => {
    const changes = [own('hold', 'drain', 'applied'), own('hold', 'maint', 'unchanged')]
    const state = member({ changes, late: [late(drain), late(maint), late(undo)] })
    expect(ledgerOf(state).slice(2)).toEqual([
      own('hold', 'maint', 'intended', 5),
      own('restore', 'ready', 'intended', 5),
    ])
  })

  test('has an entry for a lost change of another kind to the same state', () => {
    const back: Change = { kind: 'restore', expect: 'maint', to: 'drain', ref: WEB1 }
    const changes = [own('hold', 'drain', 'applied')]
    expect(ledgerOf(member({ changes, late: [late(back)] }))).toHaveLength(2)
  })

  test('has no entry for an addition', () => {
    const add: Change = { kind: 'add', address: '10.0.0.9', port: 80, ref: WEB1 }
    expect(ledgerOf(member({ late: [late(add)] }))).toEqual([])
  })
})

describe('two changes are the same', () => {
  test('by kind and goal', () => {
    expect(sameChange(drain, { ...drain, identity: 'x' })).toBe(true)
    expect(sameChange(drain, maint)).toBe(false)
    expect(sameChange(remove, terminate)).toBe(false)
    expect(sameChange(drain, { kind: 'restore', expect: 'maint', to: 'drain', ref: WEB1 })).toBe(
      false,
    )
  })

  test('by the state before, for an undo', () => {
    expect(sameChange(undo, { ...undo })).toBe(true)
    expect(sameChange(undo, { ...undo, expect: 'maint' })).toBe(false)
  })
})

describe('a state shows that a change was not carried out', () => {
  test.each([
    ['a hold on a lower state', drain, 'ready', true],
    ['a hold on its state', drain, 'drain', false],
    ['a hold on a higher state', drain, 'maint', false],
    ['an undo on another state', undo, 'drain', true],
    ['an undo on its state', undo, 'ready', false],
    ['any change on an unknown state', drain, 'unknown', false],
    ['a removal on any state', remove, 'drain', true],
    ['a removal on an unknown state', remove, 'unknown', true],
  ] as const)('%s', (_, change, state, lacks) => {
    expect(lacksEffect(change, state)).toBe(lacks)
  })
})

describe('the owner of a state while a member is to be opened', () => {
  const applied = own('hold', 'drain', 'applied')

  test.each([
    ['one that we set', [applied], [], 'drain', '1', 'ours'],
    ['one that we did not set', [applied], [], 'maint', '1', 'theirs'],
    ['one where nothing is known of us', [], [], 'drain', '1', 'theirs'],
    ['one that was so before us', [own('hold', 'drain', 'unchanged')], [], 'drain', '1', 'theirs'],
    ['one that was intended', [own('hold', 'drain', 'intended')], [], 'drain', '1', 'unknown'],
    ['another than intended', [own('hold', 'drain', 'intended')], [], 'maint', '1', 'theirs'],
    [
      'one of two that were intended',
      [own('hold', 'drain', 'intended'), own('hold', 'maint', 'intended')],
      [],
      'maint',
      '1',
      'unknown',
    ],
    ['one that may be late', [], [late(drain)], 'drain', '1', 'ours'],
    ['one that may be late, never missed', [], [late(drain, false)], 'drain', '1', 'unknown'],
    [
      'one of two that may be late, never missed',
      [],
      [late(maint, false), late(drain, false)],
      'drain',
      '1',
      'unknown',
    ],
    ['another than may be late', [], [late(drain, false)], 'maint', '1', 'theirs'],
    ['one where a removal may be late', [], [late(remove, false)], 'drain', '1', 'theirs'],
    [
      'an intended raise over our own',
      [applied, own('hold', 'maint', 'intended')],
      [],
      'maint',
      '1',
      'ours',
    ],
    [
      'a raise over our own that may be late',
      [applied],
      [late(maint, false)],
      'maint',
      '1',
      'ours',
    ],
    ['one beside a late removal', [applied], [late(remove, false)], 'maint', '1', 'theirs'],
    [
      'our own below an intended raise',
      [applied, own('hold', 'maint', 'intended')],
      [],
      'drain',
      '1',
      'ours',
    ],
    [
      'our own below an applied raise, in the same process',
      [applied, own('hold', 'maint', 'applied')],
      [],
      'drain',
      '1',
      'theirs',
    ],
    [
      'our own below an applied raise, in another process',
      [applied, own('hold', 'maint', 'applied')],
      [],
      'drain',
      '2',
      'ours',
    ],
    [
      'the door that the lost undo of another drain has opened',
      [applied],
      [late({ kind: 'restore', ref: WEB1, expect: 'drain', to: 'ready' })],
      'ready',
      '1',
      'theirs',
    ],
    [
      'a raise that ours found done already',
      [applied, own('hold', 'maint', 'unchanged')],
      [],
      'maint',
      '1',
      'theirs',
    ],
    [
      'one that was never ours, in another process',
      [applied, own('hold', 'drain', 'applied')],
      [],
      'maint',
      '2',
      'theirs',
    ],
    [
      'one that was only intended before ours, in another process',
      [own('hold', 'maint', 'intended'), applied],
      [],
      'maint',
      '2',
      'theirs',
    ],
    [
      'the first step of our undo',
      [own('hold', 'maint', 'applied'), own('restore', 'drain', 'applied')],
      [],
      'drain',
      '1',
      'ours',
    ],
    [
      'the state before the first step of our undo',
      [own('hold', 'maint', 'applied'), own('restore', 'drain', 'applied')],
      [],
      'maint',
      '1',
      'theirs',
    ],
    [
      'a removal of ours beside it',
      [applied, own('remove', null, 'applied')],
      [],
      'drain',
      '1',
      'ours',
    ],
  ] as const)('%s', (_, changes, lost, state, incarnation, whose) => {
    expect(whoseHold(member({ changes, late: lost }, incarnation), state)).toBe(whose)
  })
})

describe('the reason why a member is lower than wished', () => {
  const wish = 'maint' as const

  test.each([
    ['nothing was held yet', {}, 'ready', '1', 'ready', 'unset'],
    ['it was set lower before a hold of ours changed it', {}, 'ready', '1', 'drain', 'theirs'],
    ['a reload set it lower before that', {}, 'ready', '2', 'drain', 'unset'],
    ['its state was not known before', {}, 'ready', '1', 'unknown', 'unset'],
    [
      'a hold of ours stands in the ledger',
      { changes: [own('hold', 'drain', 'intended')] },
      'ready',
      '1',
      'drain',
      'unset',
    ],
    ['only the raise is missing', { confirmed: 'drain', wish }, 'drain', '1', 'ready', 'raise'],
    ['another client lowered it', { confirmed: 'drain', wish }, 'ready', '1', 'ready', 'theirs'],
    ['a reload forgot it', { confirmed: 'drain', wish }, 'ready', '2', 'ready', 'forgotten'],
    [
      'an undo of ours may have come through',
      { confirmed: 'drain', wish, late: [late(undo)] },
      'ready',
      '1',
      'ready',
      'unset',
    ],
    [
      'an undo of ours to drain may have come through',
      {
        confirmed: 'maint',
        wish,
        late: [late({ kind: 'restore', expect: 'maint', to: 'drain', ref: WEB1 })],
      },
      'drain',
      '1',
      'ready',
      'theirs',
    ],
  ] as const)('%s', (_, hold, state, incarnation, found, cause) => {
    expect(whyLower(member(hold, incarnation, found), state)).toBe(cause)
  })
})

describe('an undo is due', () => {
  test.each([
    ['after a hold that changed it', { changes: [own('hold', 'drain', 'applied')] }, true],
    ['after a hold that was intended', { changes: [own('hold', 'drain', 'intended')] }, true],
    ['not after one that found it so', { changes: [own('hold', 'drain', 'unchanged')] }, false],
    ['not after a cut', { changes: [own('terminate', null, 'applied')] }, false],
    ['while a change is under way', { pending: { change: drain, before: 'ready' } }, true],
    ['while one may be late', { late: [late(drain)] }, true],
    ['not where nothing was done', {}, false],
  ] as const)('%s', (_, hold, owes) => {
    expect(owesUndo(member(hold))).toBe(owes)
  })
})
