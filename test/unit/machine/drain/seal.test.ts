import { describe, expect, test } from 'vitest'
import { failure, held, idle, started, type MemberRun, type RunOptions } from '../member-run.js'

/** A run whose seal is under way. */
function sealing(options: RunOptions = {}): MemberRun {
  const run = held({ seal: 'gentle', ...options })
  run.lookAt(100).lookAt(1_000)
  if (run.sent !== 'hold maint') throw new Error(`no seal: ${run.sent}`)
  return run
}

describe('at the verdict the hold is raised to maint', () => {
  test('before idle is said', () => {
    expect(sealing().all('idle')).toEqual([])
  })

  test('if maint is gentle', () => {
    expect(sealing().sent).toBe('hold maint')
  })

  test('with the identity of the member', () => {
    expect(sealing().change.identity).toBe('10.0.0.1:80')
  })

  test('not if maint cuts', () => {
    const run = idle({ seal: 'gentle', maint: 'cuts' })
    expect(run.sentSoFar).toEqual(['hold drain'])
    expect(run.state.proof.sealed).toBe(false)
  })

  test('not if the effect of maint is unknown', () => {
    expect(idle({ seal: 'gentle', maint: 'unknown' }).sentSoFar).toEqual(['hold drain'])
  })

  test('if the reading says that it is gentle for this member', () => {
    const run = held({ seal: 'gentle', maint: 'cuts', present: { maint: 'gentle' } })
    expect(run.lookAt(100).lookAt(1_000).sent).toBe('hold maint')
  })

  test('not if the reading says that it cuts for this member', () => {
    expect(idle({ seal: 'gentle', present: { maint: 'cuts' } }).sentSoFar).toEqual(['hold drain'])
  })

  test('if maint cuts and the caller wants it', () => {
    const run = held({ seal: 'always', maint: 'cuts' }).lookAt(100).lookAt(1_000)
    expect(run.sent).toBe('hold maint')
  })

  test('not if the product has no maint', () => {
    const run = idle({ seal: 'always', ladder: ['ready', 'drain'] })
    expect(run.sentSoFar).toEqual(['hold drain'])
  })

  test('not if the reading says that this member has none', () => {
    expect(idle({ seal: 'always', present: { maint: 'none' } }).sentSoFar).toEqual(['hold drain'])
  })

  test('not if the caller does not want it', () => {
    expect(idle({ seal: 'never' }).sentSoFar).toEqual(['hold drain'])
  })

  test('not if the member is in maint already', () => {
    const run = idle({ seal: 'gentle', hold: 'maint' })
    expect(run.sentSoFar).toEqual(['hold maint'])
    expect(run.state.proof.sealed).toBe(true)
  })

  test('not if the product says that the member is sealed', () => {
    const run = idle({ seal: 'gentle', present: { sealed: true } })
    expect(run.sentSoFar).toEqual(['hold drain'])
    expect(run.state.proof.sealed).toBe(true)
  })

  test('after a pause, once the verdict is found anew', () => {
    const run = held({ seal: 'gentle' })
    run.lookAt(100).lookAt(1_000).refuse(failure('CONFLICT', true)).lookAt(1_100)
    expect(run.sent).toBe(null)
    expect(run.state.proof.verdict).toBe(null)
    expect(run.lookAt(1_250).sent).toBe('hold maint')
  })
})

describe('one snapshot after the seal must show the verdict', () => {
  test('which makes it idle and sealed', () => {
    const run = sealing().answer().look()
    expect(run.phase).toBe('idle')
    expect(run.state.proof.sealed).toBe(true)
    expect(run.outcome).toBe('idle')
  })

  test('and must be asked for after the seal was confirmed', () => {
    const run = sealing().wait(50).answer()
    run.look({ asked: run.now - 20 })
    expect(run.phase).toBe('draining')
    expect(run.look().phase).toBe('idle')
  })

  test('with numbers from after the seal was confirmed', () => {
    const run = sealing().answer().look({ after: 10, stale: 10 })
    expect(run.phase).toBe('draining')
    expect(run.look({ after: 10, stale: 19 }).phase).toBe('idle')
  })

  test('with all processes read', () => {
    const run = sealing().answer().scope('w1', { state: 'unread' }).look()
    expect(run.phase).toBe('draining')
  })

  test('and the proof is that of the verdict', () => {
    const run = sealing()
    const at = run.iso(run.now)
    run.answer().look()
    expect(run.all('idle')[0]?.proof.samples.at(-1)?.at).toBe(at)
  })
})

describe('what came in before the seal starts the proof anew', () => {
  test.each([
    ['an arrival', { arrivals: 101 }],
    ['a fall of arrivals', { arrivals: 99 }],
    ['work in flight', { active: 1 }],
    ['queued work', { queued: 1 }],
    ['another incarnation', { incarnation: 'w1.2' }],
    ['a process not in force', { inForce: false }],
    ['a process that stayed at drain', { admin: 'drain' as const }],
  ])('%s', (_, figures) => {
    const run = sealing().answer().scope('w1', figures).look()
    expect(run.phase).toBe('draining')
    expect(run.state.proof.verdict).toBe(null)
  })

  test('a process that joined', () => {
    const run = sealing().answer().scope('w2', { arrivals: 0 }).look()
    expect(run.phase).toBe('draining')
    expect(run.state.proof.verdict).toBe(null)
  })

  test('in any one process', () => {
    const run = held({ seal: 'gentle', scopes: { w2: {} } })
      .lookAt(100)
      .lookAt(1_000)
      .answer()
    expect(run.scope('w1', { arrivals: 101 }).look().phase).toBe('draining')
  })

  test('but not a process that ended', () => {
    const run = held({ seal: 'gentle', scopes: { w2: {} } })
      .lookAt(100)
      .lookAt(1_000)
      .answer()
    expect(run.scope('w2', { state: 'ended' }).look().phase).toBe('idle')
  })

  test('but not a process at drain that admits no client', () => {
    const run = sealing().answer().scope('w1', { admin: 'drain', open: false }).look()
    expect(run.phase).toBe('idle')
  })

  test('and the drain goes on under maint by the whole rule', () => {
    const run = sealing().answer().mark().scope('w1', { arrivals: 101 }).lookAt(500)
    run.lookAt(1_000).lookAt(1_499)
    expect(run.phase).toBe('draining')
    run.lookAt(1_500)
    expect(run.phase).toBe('idle')
    expect(run.sentSoFar).toEqual(['hold drain', 'hold maint'])
    expect(run.state.proof.sealed).toBe(true)
  })
})

test('a foreign maint that an old process did not take is not a seal', () => {
  const scopes = { old: { old: true, admin: 'drain' as const } }
  const run = held({ seal: 'never', scopes }).set({ own: 'maint' }).looks(2_000)
  expect(run.phase).toBe('idle')
  expect(run.state.proof.sealed).toBe(false)
})

describe('a seal that is refused', () => {
  test('for good leaves the verdict: idle without it', () => {
    const run = sealing().refuse(failure('UNSUPPORTED')).look()
    expect(run.phase).toBe('idle')
    expect(run.state.proof.sealed).toBe(false)
    expect(run.outcome).toBe('idle')
  })

  test('is a fault', () => {
    expect(sealing().refuse(failure('UNSUPPORTED')).said).toEqual(['fault'])
  })

  test('for good is not tried again', () => {
    const run = sealing().refuse(failure('UNSUPPORTED')).scope('w1', { arrivals: 101 }).look()
    expect(run.looks(5_000).phase).toBe('idle')
    expect(run.sentSoFar).toEqual(['hold drain', 'hold maint'])
  })

  test('for good is not tried again after a put-back either', () => {
    const run = sealing().refuse(failure('UNSUPPORTED')).look()
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look({ after: 300 })
    expect(run.answer().idle().sentSoFar).toEqual(['hold drain', 'hold maint', 'hold drain'])
  })

  test('for now is tried again only for a new verdict', () => {
    const run = sealing().refuse(failure('CONFLICT', true)).scope('w1', { arrivals: 101 })
    expect(run.look({ after: 250 }).sent).toBe(null)
  })

  test('for good with work since is proved anew', () => {
    const run = sealing().refuse(failure('UNSUPPORTED')).scope('w1', { arrivals: 101 }).look()
    expect(run.phase).toBe('draining')
  })

  test('for now is retried', () => {
    const run = sealing().refuse(failure('CONFLICT', true)).look({ after: 250 })
    expect(run.sent).toBe('hold maint')
  })

  test('for now three times is given up', () => {
    const run = sealing()
    for (let i = 0; i < 3; i += 1) run.refuse(failure('CONFLICT', true)).look({ after: 5_000 })
    expect(run.phase).toBe('idle')
    expect(run.state.proof.sealed).toBe(false)
    expect(run.sentSoFar).toEqual(['hold drain', ...Array<string>(3).fill('hold maint')])
  })

  test('but carried out raises no more than wished', () => {
    const run = sealing().refuse(failure('CONFLICT', true)).set({ own: 'maint' }).look()
    expect(run.state.hold).toMatchObject({ wish: 'drain', confirmed: 'drain' })
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look({ after: 300 })
    expect(run.sent).toBe('hold drain')
  })

  test('leaves the drain as what is wished', () => {
    const run = sealing().refuse(failure('CONFLICT', true))
    expect(run.state.hold.wish).toBe('drain')
    expect(run.look().phase).toBe('draining')
  })
})

describe('after the seal maint is the wish', () => {
  test('and is put back after a reload', () => {
    const run = sealing().answer().look()
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2', arrivals: 0 }).look()
    expect(run.sent).toBe('hold maint')
  })

  test('and a client that lowers it to drain overrules it', () => {
    const run = sealing().answer().look().set({ own: 'drain' }).look()
    expect(run.all('overruled')[0]).toMatchObject({ expected: 'maint', found: 'drain' })
  })

  test('and a reload is answered with drain first, if maint cuts', () => {
    const run = held({ seal: 'always', maint: 'cuts' }).lookAt(100).lookAt(1_000).answer().look()
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2', active: 3 }).look()
    expect(run.sent).toBe('hold drain')
    run.answer().scope('w1', { active: 0 }).mark().lookAt(10).lookAt(1_010)
    expect(run.sent).toBe('hold maint')
  })

  test('and a process that kept drain needs the whole rule, if maint cuts', () => {
    const run = held({ seal: 'always', maint: 'cuts' }).lookAt(100).lookAt(1_000).answer().look()
    run.set({ own: 'drain' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.said).toContain('idle-lost')
    expect(run.sent).toBe(null)
    expect(run.state.hold.wish).toBe('drain')
    run.mark().lookAt(100).lookAt(500).lookAt(1_100)
    expect(run.sent).toBe('hold maint')
  })

  test('and a client that lowers it to drain overrules it, if maint cuts', () => {
    const run = held({ seal: 'always', maint: 'cuts' }).lookAt(100).lookAt(1_000).answer().look()
    expect(run.set({ own: 'drain' }).look().outcome).toBe('overruled')
  })

  test('and a reapply proves before it seals again, if maint cuts', () => {
    const run = held({ seal: 'always', maint: 'cuts', onOverrule: 'reapply' })
    run.lookAt(100).lookAt(1_000).answer().look().set({ own: 'drain' }).look().mark()
    expect(run.lookAt(250).sent).toBe(null)
    expect(run.looks(1_500).sentSoFar.filter((sent) => sent === 'hold maint')).toHaveLength(2)
  })

  test('and a second seal needs one look, if maint cuts', () => {
    const run = held({ seal: 'always', maint: 'cuts' }).lookAt(100).lookAt(1_000).answer().look()
    run.settle().set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2', active: 3 }).look()
    run.answer().scope('w1', { active: 0, arrivals: 5 }).mark().lookAt(10).lookAt(1_010)
    expect(run.sent).toBe('hold maint')
    expect(run.answer().look().phase).toBe('idle')
  })

  test('and an escalation is put straight back, if maint cuts', () => {
    const run = held({ maint: 'cuts', onTimeout: 'terminate', escalateAfter: 500 })
    run.scope('w1', { active: 1 }).lookAt(500).answer().look()
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe('hold maint')
    run.refuse(failure('CONFLICT', true))
    expect(run.look({ after: 250 }).sent).toBe('hold maint')
  })

  test('and a maint that was asked for is put straight back, if it cuts', () => {
    const run = idle({ hold: 'maint', maint: 'cuts', onTimeout: 'terminate' })
    run.set({ own: 'ready' }).scope('w1', { incarnation: 'w1.2' }).look()
    expect(run.sent).toBe('hold maint')
  })
})

describe('a seal whose answer was lost', () => {
  test('is sent again if it is not there', () => {
    expect(sealing().lose().look().sent).toBe('hold maint')
  })

  test('is there: one more look must show the verdict', () => {
    const run = sealing().lose('done').look()
    expect(run.phase).toBe('draining')
    expect(run.look().phase).toBe('idle')
  })

  test('is sent again however often that happens', () => {
    const run = sealing()
    for (let i = 0; i < 6; i += 1) run.lose().look({ after: 5_000 })
    expect(run.sent).toBe('hold maint')
    expect(run.all('idle')).toEqual([])
    expect(run.answer().idle().state.proof.sealed).toBe(true)
  })

  test('does not count among those that were refused', () => {
    const run = sealing().refuse(failure('CONFLICT', true)).look({ after: 5_000 })
    run.lose().look({ after: 5_000 }).lose().look({ after: 5_000 })
    expect(run.state.proof.sealFailures).toBe(1)
    expect(run.sent).toBe('hold maint')
  })

  test('is not there: the verdict is found anew', () => {
    const run = sealing().lose().look()
    expect(run.state.proof.verdict).toBe(null)
  })
})

test('idle is said once the member is sealed, and only once', () => {
  const run = started({ seal: 'gentle' }).hold().idle().looks(3_000)
  expect(run.all('idle')).toHaveLength(1)
})

describe('a found seal that a client opens before the run has its outcome', () => {
  const found = (seal: 'gentle' | 'never') => started({ own: 'maint', seal }).look().answer().idle()

  test('is not reported any more', () => {
    const run = found('never')
    expect(run.state.proof.sealed).toBe(true)
    run.set({ own: 'drain' }).look()
    expect(run.said).toContain('idle-lost')
    expect(run.looks(2_000).phase).toBe('idle')
    expect(run.state.proof.sealed).toBe(false)
  })

  test('is set again if a seal is wished', () => {
    const run = found('gentle').set({ own: 'drain' }).looks(2_000)
    expect(run.sentSoFar.at(-1)).toBe('hold maint')
  })

  test('is left open once the outcome was said', () => {
    const run = found('never').settle().set({ own: 'drain' }).look()
    expect(run.said).not.toContain('idle-lost')
  })
})
