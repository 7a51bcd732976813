import { openGoal } from 'drainable/machine'
import { searchCase, type SearchCase } from './search-case.js'

export type { SearchCase } from './search-case.js'

const HELD = ['look', 'applied', 'look'] as const
const IDLE = [...HELD, 'look', 'look'] as const
const SEALED = [...IDLE, 'applied', 'look'] as const
/** What happens to the member as a whole, and what ends a run from outside: searched in cases of their own. */
const GONE = [/^member/, /damaged/]
const OUTSIDE = [/^abort$/, /^yield$/, /^settle$/, /^release$/, /^overdue$/]

export const CASES: readonly SearchCase[] = [
  searchCase({
    name: 'drain',
    without: [...GONE, ...OUTSIDE, /^undo$/],
    ways: { 'a hold': HELD, 'an idle member': IDLE },
    depth: 4,
  }),
  searchCase({
    name: 'drain, work hidden for a time',
    policy: { blind: 90, freshness: 0, settle: 0 },
    world: { blind: 90, persistent: false },
    without: [...GONE, ...OUTSIDE, /^undo$/, /long/, /refused/, /lost/],
    ways: { 'a hold': HELD },
    depth: 5,
  }),
  searchCase({
    name: 'drain with a seal',
    policy: { seal: 'gentle' },
    without: [...GONE, ...OUTSIDE, /^undo$/],
    ways: { 'a seal under way': IDLE, 'a sealed member': SEALED },
    depth: 4,
  }),
  searchCase({
    name: 'drain with a seal that cuts',
    policy: { seal: 'always', maint: 'cuts' },
    without: [...GONE, ...OUTSIDE, /^undo$/, /b blurs/],
    ways: { 'a seal under way': IDLE, 'a sealed member': SEALED },
    depth: 4,
  }),
  searchCase({
    name: 'drain, whoever opens it',
    policy: { onOverrule: 'reapply' },
    without: [...GONE, ...OUTSIDE, /^undo$/, /^b/],
    ways: { 'a hold': HELD },
    depth: 4,
  }),
  searchCase({
    name: 'drain of a member that goes or is replaced',
    world: { listsAll: true },
    without: [...OUTSIDE, /^undo$/, /^operator/, /refused/],
    second: 'unborn',
    ways: { 'a hold': HELD },
    depth: 4,
  }),
  searchCase({
    name: 'drain until removed',
    policy: { until: 'removed' },
    without: [...OUTSIDE, /^undo$/, /^b/],
    ways: { 'a removal under way': IDLE },
    depth: 4,
  }),
  searchCase({
    name: 'drain with a deadline that cuts',
    policy: { onTimeout: 'terminate', escalateAfter: 100 },
    timeout: 200,
    without: [...GONE, /^undo$/, /^yield$/, /^b blurs/, /^operator/],
    ways: { 'a hold of busy work': ['look', 'a gets work', 'applied', 'look'] },
    depth: 4,
  }),
  searchCase({
    name: 'drain until removed, with a deadline that cuts',
    policy: {
      until: 'removed',
      onTimeout: 'terminate',
      seal: 'gentle',
      maint: 'cuts',
      lateBound: 2_000,
    },
    timeout: 200,
    without: [...GONE, ...OUTSIDE, /^undo$/, /^b/, /^operator/],
    ways: {
      'a hold whose answer was lost': ['look', 'answer lost, done', 'look'],
      'a removal under way': IDLE,
    },
    depth: 4,
  }),
  searchCase({
    name: 'drain, held and let go',
    without: [...GONE, /^overdue$/],
    ways: { 'an idle member': IDLE, 'a settled one': [...IDLE, 'settle'] },
    depth: 4,
  }),
  searchCase({
    name: 'undo',
    policy: { seal: 'gentle' },
    without: [
      /damaged/,
      /^member/,
      /^b/,
      /gets work/,
      /^overdue$/,
      /^settle$/,
      /^release$/,
      /^yield$/,
    ],
    ways: {
      'an undo': [...HELD, 'undo'],
      'an undo of a hold under way': ['look', 'undo'],
      'an undo of a lost hold': ['look', 'answer lost, may be late', 'undo'],
      'an undo of a lost seal': [...IDLE, 'answer lost, may be late', 'undo'],
      'an undo of a sealed member': [...SEALED, 'undo'],
    },
    depth: 4,
  }),
  searchCase({
    name: 'undo of a member drained before',
    policy: { hold: 'maint' },
    own: 'drain',
    without: [
      /damaged/,
      /^member/,
      /^b/,
      /gets work/,
      /^overdue$/,
      /^settle$/,
      /^release$/,
      /^yield$/,
    ],
    ways: { 'an undo': [...HELD, 'undo'] },
    depth: 4,
  }),
  searchCase({
    name: 'ready',
    goal: openGoal({ of: 'anybody', until: 30_000, lateUntil: null }),
    own: 'maint',
    without: [/gets work/, /^b/, /^settle$/, /^release$/],
    depth: 4,
  }),
  searchCase({
    name: 'watch',
    goal: { kind: 'watch' },
    own: 'drain',
    without: [/^abort$/],
    ways: { 'an idle member': ['look', 'look', 'look'] },
    depth: 4,
  }),
]
