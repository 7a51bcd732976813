import { describe, expect, test } from 'vitest'
import { nextOf, type Standing } from '../../../src/core/calls/run/run-group.js'

const at = (state: Standing['state'], idle: Standing['idle'] = null): Standing => ({ state, idle })

describe('runs that end together', () => {
  test.each<[string, readonly Standing[], readonly string[]]>([
    ['wait while one is open', [at('ended'), at('open')], ['wait', 'wait']],
    ['close together', [at('ended'), at('ended')], ['close', 'close']],
    ['wait for each ticket', [at('closed'), at('closing')], ['wait', 'wait']],
    ['stand once all are closed', [at('closed'), at('closed')], ['stand', 'stand']],
    ['go on if one has lost idle', [at('closed'), at('lost')], ['goOn', 'goOn']],
    ['close the others of one that is closed', [at('closed'), at('ended')], ['wait', 'close']],
    ['wait for each ticket also where one is lost', [at('lost'), at('closing')], ['wait', 'wait']],
    ['wait while one that went on is open', [at('lost'), at('open')], ['wait', 'wait']],
  ])('%s', (_, runs, next) => {
    expect(nextOf(runs)).toEqual(next)
  })

  test('look once more if last seen before another became idle', () => {
    const early = at('ended', { from: 1_000, seen: 4_000 })
    const late = at('ended', { from: 5_000, seen: 6_000 })
    expect(nextOf([early, late])).toEqual(['look', 'wait'])
  })

  test('close if each was seen after all were idle', () => {
    const first = at('ended', { from: 1_000, seen: 5_000 })
    const last = at('ended', { from: 5_000, seen: 6_000 })
    expect(nextOf([first, last])).toEqual(['close', 'close'])
  })

  test('need no look at idle ones if another has not ended as idle', () => {
    const early = at('ended', { from: 1_000, seen: 4_000 })
    expect(nextOf([early, at('ended')])).toEqual(['close', 'close'])
  })

  test('of which there is only one need no other look', () => {
    expect(nextOf([at('ended', { from: 5_000, seen: 4_000 })])).toEqual(['close'])
  })
})
