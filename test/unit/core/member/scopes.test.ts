import { describe, expect, test } from 'vitest'
import { held, idle, started, type MemberRun } from './member-run.js'

const busy = { active: 2, queued: 1 }

function lost(run: MemberRun): readonly (readonly [string, number])[] {
  return run.proof.lost.map(({ scope, active }) => [scope, active] as const)
}

function known(run: MemberRun): readonly string[] {
  return [...run.proof.scopes.keys()]
}

describe('a process that has ended', () => {
  test('is dropped and counted', () => {
    const run = held({ scopes: { w2: {} } })
      .scope('w2', { state: 'ended' })
      .look()
    expect(known(run)).toEqual(['w1'])
    expect(run.proof.ended).toBe(1)
  })

  test('is counted once, however often it is said', () => {
    const run = held({ scopes: { w2: {} } })
      .scope('w2', { state: 'ended' })
      .look()
      .look()
    expect(run.proof.ended).toBe(1)
  })

  test('is counted once if it was never seen alive', () => {
    const run = held({ scopes: { w2: { state: 'ended' }, w3: { state: 'ended' } } }).look()
    expect(run.proof.ended).toBe(1)
  })

  test('is counted beside those that were never seen alive', () => {
    const run = held({ scopes: { w2: {} } })
      .scope('w2', { state: 'ended' })
      .look()
    run.unlist('w2').scope('w3', { state: 'ended' }).look()
    expect(run.proof.ended).toBe(1)
  })

  test('leaves what it held last as lost', () => {
    const run = held({ scopes: { w2: busy } })
      .scope('w2', { state: 'ended' })
      .look()
    expect(lost(run)).toEqual([['w2', 3]])
    expect(run.proof.lost[0]?.at).toBe(run.iso(run.now))
  })

  test('leaves queued work as lost, too', () => {
    const run = held({ scopes: { w2: { queued: 1 } } })
      .scope('w2', { state: 'ended' })
      .look()
    expect(lost(run)).toEqual([['w2', 1]])
  })

  test('leaves nothing lost if it held nothing', () => {
    const run = held({ scopes: { w2: {} } })
      .scope('w2', { state: 'ended' })
      .look()
    expect(lost(run)).toEqual([])
  })

  test('leaves what it held before it could not be read', () => {
    const run = held({ scopes: { w2: busy } }).scope('w2', {
      state: 'unread',
      active: 0,
      queued: 0,
    })
    run.look().scope('w2', { state: 'ended' }).look()
    expect(lost(run)).toEqual([['w2', 3]])
  })

  test('leaves nothing lost if it was never read', () => {
    const run = held({ scopes: { w2: { ...busy, state: 'unread' } } })
    run.look().scope('w2', { state: 'ended' }).look()
    expect(lost(run)).toEqual([])
  })

  test('leaves a loss that stays in the report', () => {
    const run = held({ scopes: { w2: busy } })
      .scope('w2', { state: 'ended' })
      .look()
    run.unlist('w2').idle()
    expect(lost(run)).toEqual([['w2', 3]])
    expect(run.codes).toEqual(['old-scope'])
  })

  test('leaves a loss beside the earlier ones', () => {
    const run = held({ scopes: { w2: busy, w3: { active: 1 } } }).scope('w2', { state: 'ended' })
    run.look().scope('w3', { state: 'ended' }).look()
    expect(lost(run)).toEqual([
      ['w2', 3],
      ['w3', 1],
    ])
  })

  test('is a new one when its name comes back', () => {
    const run = held({ scopes: { w2: {} } })
      .scope('w2', { state: 'ended' })
      .look()
    run.scope('w2', { state: 'read' }).lookAt(900).lookAt(1_000).lookAt(1_899)
    expect(run.phase).toBe('draining')
    expect(run.lookAt(1_900).phase).toBe('idle')
  })
})

describe('a process that is not listed any more', () => {
  test('is unread', () => {
    const run = held({ scopes: { w2: {} } })
      .unlist('w2')
      .look()
    expect(run.proof.scopes.get('w2')?.last.state).toBe('unread')
  })

  test('has ended if the look lists every process', () => {
    const run = held({ scopes: { w2: {} } })
      .unlist('w2')
      .look({ ended: 'unlisted' })
    expect(known(run)).toEqual(['w1'])
    expect(run.proof.ended).toBe(1)
  })

  test('has ended if the look names it', () => {
    const run = held({ scopes: { w2: {} } })
      .unlist('w2')
      .look({ ended: ['w2'] })
    expect(known(run)).toEqual(['w1'])
  })

  test('is unread if the look names another one', () => {
    const run = held({ scopes: { w2: {} } })
      .unlist('w2')
      .look({ ended: ['w3'] })
    expect(known(run)).toEqual(['w1', 'w2'])
  })

  test('is lost with its work if the look says that it has ended', () => {
    const run = held({ scopes: { w2: busy } })
      .unlist('w2')
      .look({ ended: ['w2'] })
    expect(lost(run)).toEqual([['w2', 3]])
  })

  test('goes on with its proof when it is listed again', () => {
    const run = held({ scopes: { w2: {} } })
      .unlist('w2')
      .lookAt(300)
      .scope('w2')
      .lookAt(400)
    expect(run.lookAt(1_000).phase).toBe('idle')
  })

  test('has not ended when it is named and listed', () => {
    const run = held({ scopes: { w2: {} } }).look({ ended: ['w2'] })
    expect(known(run)).toEqual(['w1', 'w2'])
  })
})

describe('a process that lost its memory', () => {
  test('leaves what it held last as lost', () => {
    const run = held({ scopes: { w2: busy } }).scope('w2', {
      incarnation: 'w2.2',
      active: 0,
      queued: 0,
    })
    expect(lost(run.look())).toEqual([['w2', 3]])
  })

  test('leaves nothing lost if it held nothing', () => {
    const run = held({ scopes: { w2: {} } })
      .scope('w2', { incarnation: 'w2.2' })
      .look()
    expect(lost(run)).toEqual([])
  })

  test('leaves nothing lost if its work is listed under another name', () => {
    const run = held({ scopes: { w2: busy } })
    run.scope('w2', { incarnation: 'w2.2', active: 0, queued: 0 })
    run.scope('w3', { ...busy, incarnation: 'w2.1' }).look()
    expect(lost(run)).toEqual([])
  })

  test('is recognised by the reading from before it could not be read', () => {
    const run = held({ scopes: { w2: busy } }).scope('w2', { state: 'unread', incarnation: '' })
    run.look().scope('w2', { state: 'read', incarnation: 'w2.2' }).look()
    expect(lost(run)).toEqual([['w2', 3]])
  })

  test('is not recognised while it can not be read', () => {
    const run = held({ scopes: { w2: busy } }).scope('w2', { state: 'unread', incarnation: 'x' })
    expect(lost(run.look())).toEqual([])
  })

  test('counts its arrivals after the effect anew', () => {
    const run = held().look().scope('w1', { incarnation: 'w1.2', arrivals: 7 }).look()
    expect(run.proof.scopes.get('w1')?.arrivalsAtEffect).toBe(7)
  })
})

describe('the memory of a process', () => {
  test('has its first arrivals after the effect', () => {
    const run = held().look().scope('w1', { arrivals: 105 }).look()
    expect(run.proof.scopes.get('w1')?.arrivalsAtEffect).toBe(100)
  })

  test('has no arrivals from before the effect', () => {
    const run = held().scope('w1', { arrivals: 105 }).look()
    expect(run.proof.scopes.get('w1')?.arrivalsAtEffect).toBe(105)
  })

  test('has the moment since when its load is the same', () => {
    const run = held({ scopes: { w1: { active: 1 } } })
      .lookAt(500)
      .lookAt(700)
    expect(run.proof.scopes.get('w1')?.steadySince).toBe(run.origin)
    run.scope('w1', { active: 2 }).lookAt(900)
    expect(run.proof.scopes.get('w1')?.steadySince).toBe(run.origin + 900)
  })

  test('has its arrivals anew after it was not in force', () => {
    const run = held().look().scope('w1', { arrivals: 103, inForce: false }).look()
    run.scope('w1', { arrivals: 105, inForce: true }).look()
    expect(run.proof.scopes.get('w1')?.arrivalsAtEffect).toBe(105)
  })

  test('has no arrivals if none are counted', () => {
    const run = held({ scopes: { w1: { arrivals: undefined as never } } }).look()
    expect(run.proof.scopes.get('w1')?.arrivalsAtEffect).toBe(null)
  })

  test('has its newest figures while it can not be read', () => {
    const run = held({ scopes: { w1: { active: 1 } } }).scope('w1', { state: 'unread', active: 0 })
    expect(run.look().proof.scopes.get('w1')?.read?.active).toBe(1)
  })
})

describe('the proof', () => {
  test('has every process in both samples', () => {
    const { samples } = idle({ scopes: { w2: {} } }).all('idle')[0]!.proof
    expect(samples.map(({ scopes }) => scopes.map(({ scope }) => scope))).toEqual([
      ['w1', 'w2'],
      ['w1', 'w2'],
    ])
  })

  test('names the oldest number of each sample', () => {
    const run = held({ scopes: { w2: {} } })
      .lookAt(100)
      .lookAt(1_000)
    const { samples } = run.all('idle')[0]!.proof
    expect(samples.map(({ at }) => at)).toEqual([
      run.iso(run.origin + 100),
      run.iso(run.origin + 1_000),
    ])
  })

  test('names the oldest number of a sample if processes differ', () => {
    const run = held({ scopes: { w2: { behind: 40 } } })
      .lookAt(100)
      .lookAt(1_100)
    expect(run.all('idle')[0]?.proof.samples[0]?.at).toBe(run.iso(run.origin + 60))
  })

  test('says that arrivals were unchanged', () => {
    expect(idle().all('idle')[0]?.proof.arrivals).toBe('unchanged')
  })

  test('has two samples even if one process needs only one', () => {
    const run = held({ scopes: { w1: { active: 1 }, w2: {} } }).lookAt(500)
    run.scope('w1', { active: 0, released: true }).lookAt(2_000)
    expect(run.phase).toBe('idle')
    expect(run.all('idle')[0]?.proof.samples).toHaveLength(2)
  })

  test('says it of one process', () => {
    expect(idle().all('idle')[0]?.proof.text).toContain('on 1 process in samples')
  })

  test('says that one sample was enough', () => {
    const run = held({ scopes: { w1: { active: 1 } } }).lookAt(500)
    run.scope('w1', { active: 0, released: true }).lookAt(2_000)
    expect(run.all('idle')[0]?.proof.text).toContain('in one sample, which the product itself')
  })

  test('says the widest spread of its samples', () => {
    const run = held({ scopes: { w2: { active: 1 } } })
      .lookAt(500)
      .scope('w2', { active: 0 })
    run.lookAt(1_500).lookAt(2_000)
    expect(run.all('idle')[0]?.proof.text).toContain('in samples 1.5 s apart')
  })

  test('says that arrivals are not counted', () => {
    const run = idle({ scopes: { w1: { arrivals: undefined as never } } })
    expect(run.all('idle')[0]?.proof.text).toContain('this product does not count arrivals')
  })

  test('says that every process has ended', () => {
    const run = held().scope('w1', { state: 'ended' }).look()
    expect(run.all('idle')[0]?.proof.text).toContain('every process that could hold work')
  })

  test('says how many processes there are and how many more ended', () => {
    const run = held({ scopes: { w2: {}, w3: {} } })
      .scope('w3', { state: 'ended' })
      .idle()
    expect(run.all('idle')[0]?.proof.text).toContain('on 2 processes (1 more ended)')
  })

  test('says how far its samples are apart', () => {
    const run = held().lookAt(100).lookAt(1_000)
    expect(run.all('idle')[0]?.proof.text).toContain('in samples 900 ms apart')
  })

  test('says for how long nothing arrived', () => {
    const run = held().lookAt(100).lookAt(2_000)
    expect(run.all('idle')[0]?.proof.text).toContain('nothing arrived for 2 s')
  })

  test('is complete for a member in maint from before', () => {
    const run = started({ own: 'maint' }).look().answer('unchanged').mark().lookAt(10)
    run.lookAt(1_000)
    expect(run.all('idle')[0]?.proof.samples).toHaveLength(2)
  })
})

test('a process that restarted with one request in flight is lost', () => {
  const run = held({ scopes: { w1: { active: 1 } } }).look()
  run.scope('w1', { incarnation: 'w1.2', active: 0 }).look()
  expect(run.proof.lost).toMatchObject([{ scope: 'w1', active: 1 }])
})

test('a process that was never read has no figures', () => {
  const run = started({ scopes: { w2: { state: 'unread' } } }).look()
  expect(run.proof.scopes.get('w2')).toMatchObject({ read: null, zeros: null, stalled: 0 })
})
