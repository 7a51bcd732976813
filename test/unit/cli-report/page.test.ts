import { DrainableError, type RollEvent } from 'drainable'
import { describe, expect, it } from 'vitest'
import { at, drainReport, goodDrain, load, memberReport, rollReport, web1 } from './events.js'
import { numberRows, pageOf, textOf } from './pages.js'

const evil = `<script>alert("1")</script>'&\u001b[31m\u202e`

describe('a page of one drain', () => {
  const html = pageOf(goodDrain(), {
    verb: 'drain',
    exitCode: 0,
    changed: true,
    balancer: { name: 'haproxy-runtime', instance: 'unix:/run/admin.sock' },
    report: drainReport(memberReport()),
  })
  const text = textOf(html)

  it('says the verdict and the sentence of its proof', () => {
    expect(text).toContain('✓ idle, verified after 2 s')
    expect(text).toContain('nothing is left')
    expect(text).toContain('0: done: idle and verified')
  })

  it('names the balancer, the beginning and the end', () => {
    expect(text).toContain('haproxy-runtime, unix:/run/admin.sock')
    expect(text).toContain('2026-03-01T12:00:00.000Z')
    expect(text).toContain('2026-03-01T12:00:02.000Z, after 2 s')
  })

  it('ends the band of idle where the member is made ready again', () => {
    const restored = drainReport(memberReport({ outcome: 'restored', verifiedIdle: false }))
    const opened = pageOf([
      ...goodDrain(),
      { type: 'end', at: at(3_000), outcome: 'restored', report: restored },
      load(4_000, { phase: 'active', own: 'ready', active: 9 }),
    ])
    const bands = [...opened.matchAll(/class="band phase-(\w+)" x="([\d.]+)%"/g)]
    expect(bands.map(([, ...band]) => band.join(' '))).toContain('active 75')
    expect(textOf(opened)).toContain('✓ idle, verified')
    expect(textOf(opened)).toContain('3.00 s made ready again')
  })

  it('lists its events in order, each with a number and its time', () => {
    const marks = [...html.matchAll(/<li><b>(\d+)<\/b><span>([^<]*)<\/span><span>([^<]*)/g)]
    expect(marks.map(([, ...cells]) => cells.join(' | '))).toEqual([
      '1 | 0.01 s | the hold is in force in every process',
      '2 | 0.01 s | state on the balancer: ready -&gt; drain',
      '3 | 2.00 s | idle: nothing is left',
    ])
  })

  it('has the numbers of each look as a row', () => {
    expect(numberRows(html)).toEqual([
      ['12:00:00.000', '0.00 s', 'active', 'ready', 'up', '5', '0', '2', '', '2 in flight', ''],
      ['12:00:00.015', '0.01 s', 'draining', 'drain', 'up', '5', '0', '1', '', '2 in flight', ''],
      ['12:00:00.700', '0.70 s', 'draining', 'drain', 'up', '3', '3', '0', '', '2 in flight', ''],
      ['12:00:01.000', '1.00 s', 'draining', 'drain', 'up', '0', '0', '0', '', '', ''],
    ])
  })

  it('says for how long each reason was the first one', () => {
    expect(text).toContain('Waited for in-flight 1 s.')
  })

  it('asks for nothing and runs nothing', () => {
    expect(html).not.toMatch(/<script|<link|<img|<iframe|\bon\w+=|href=|src=|@import|url\((?!#)/i)
    expect(html).toContain(`content="default-src 'none'; style-src 'unsafe-inline'"`)
  })

  it('gives each picture a title and each table its headers', () => {
    expect(html).toMatch(
      /<svg class="lane" role="img"[^>]*aria-label="web\/web1 over time: at most 5/,
    )
    expect(html).toMatch(/<title>web\/web1 over time/)
    expect(html.match(/<th /g)).toHaveLength(html.match(/<th scope="col"/g)!.length)
  })
})

describe('a page', () => {
  it('escapes every text from outside', () => {
    const ref = { pool: evil, member: evil, balancer: evil }
    const error = new DrainableError('UNREACHABLE', evil)
    const why = [{ code: 'in-flight', ref, text: evil, hint: evil }] as const
    const proof = { ...memberReport().proof!, text: evil }
    const lost = [{ scope: evil, active: 1, at: evil, note: evil }]
    const member = memberReport({ ref, proof, why, error, lost, outcome: 'timeout' })
    const events: readonly RollEvent[] = [
      load(0, { ref, why, own: evil as 'ready', health: evil as 'up', phase: evil as 'idle' }),
      { type: 'phase', at: at(5), ref, from: evil as 'active', to: evil as 'idle' },
      { type: 'fault', at: at(10), ref, error },
      { type: 'act', at: at(20), ref, refs: [ref], attempt: 1 },
      { type: 'failed', at: at(30), ref, refs: [ref], error },
      { type: 'idle', at: at(30), ref, proof },
      { type: 'end', at: at(40), outcome: 'timeout', report: drainReport(member) },
      {
        type: 'roll-end',
        at: at(50),
        report: rollReport({
          servers: [
            { address: evil, refs: [ref], outcome: 'failed', attempts: 1, times: {}, error },
          ],
        }),
      },
    ]
    const html = pageOf(events, {
      verb: 'roll',
      exitCode: 1,
      balancer: { name: evil, instance: evil },
      ticket: evil,
      roll: rollReport({ leftDrained: [ref] }),
      error: { code: evil, message: evil },
    })
    expect(html).not.toMatch(/<script|alert\("/)
    expect(html).not.toMatch(/(?!\n)\p{Cc}|\p{Cf}/u)
    expect(html).not.toMatch(/="[^"]*<[^"]*"/)
    expect(textOf(html)).toContain(`<script>alert("1")</script>'&`)
  })

  it('of a drain that did not begin says why', () => {
    const error = { code: 'UNREACHABLE', message: 'no such socket' }
    const text = textOf(pageOf([], { verb: 'drain', changed: false, exitCode: 7, error }))
    expect(text).toContain('✗ no such socket')
    expect(text).toContain('7: the balancer can not be reached')
    expect(text).toContain('No member was looked at.')
  })

  it('of a command that ended at once does not claim an end', () => {
    const text = textOf(pageOf(goodDrain().slice(0, 4)))
    expect(text).toContain('✗ ended at once by a second signal: the end is not known')
    expect(text).not.toContain('✓')
  })

  it('marks an idle that is not verified, with the reasons', () => {
    const why = [{ code: 'persistence', ref: web1, text: 'clients can come back' }] as const
    const report = drainReport(memberReport({ verifiedIdle: false, why }))
    const events: readonly RollEvent[] = [
      load(0),
      { type: 'end', at: at(9), outcome: 'idle', report },
    ]
    const text = textOf(pageOf(events, { verb: 'drain', changed: true, exitCode: 10, report }))
    expect(text).toContain('! idle, not verified')
    expect(text).toContain('clients can come back')
    expect(text).not.toContain('✓')
  })

  it('marks numbers that are lower bounds', () => {
    const [row] = numberRows(pageOf([load(0, { active: 0, complete: false }), load(100)]))
    expect(row?.slice(5, 8)).toEqual(['≥ 0', '≥ 0', '≥ 0'])
  })

  it('draws no line of the lower bounds into the line of the counts', () => {
    const html = pageOf([load(0), load(10, { active: 0, complete: false }), load(20), load(30)])
    const line = /<path class="active" d="([^"]*)"/.exec(html)?.[1]
    expect(line?.match(/M/g)).toHaveLength(2)
    expect(line).not.toMatch(/V/)
    expect(html).toContain('<rect class="unread"')
  })

  it('of forty members names their pool, and has a lane and a table for each', () => {
    const refs = Array.from({ length: 40 }, (_, i) => ({ pool: 'web', member: `w${i}` }))
    const html = pageOf(refs.flatMap(goodDrain))
    expect(textOf(html)).toContain('Drain of 40 members in web')
    expect(html.match(/<section class="member">/g)).toHaveLength(40)
    expect(html.match(/<table class="numbers">/g)).toHaveLength(40)
    expect(html.match(/<div class="row">/g)).toHaveLength(41)
  })

  it('bounds what it shows of a drain of many looks, and says so', () => {
    const looks = Array.from({ length: 9_999 }, (_, i) => load(i * 100, { active: i % 7 }))
    const html = pageOf(looks)
    expect(numberRows(html).length).toBeLessThanOrEqual(120)
    expect(textOf(html)).toMatch(/rows of 9999 looks/)
  })

  it('counts an event that repeats instead of repeating it', () => {
    const error = new DrainableError('UNREACHABLE', 'no answer')
    const faults = Array.from({ length: 5_000 }, (_, i): RollEvent => ({
      type: 'fault',
      at: at(i * 10),
      ref: web1,
      error,
    }))
    const text = textOf(pageOf(faults))
    expect(text).toContain('fault: no answer (5000 times, for the last time at 49.99 s)')
  })
})

describe('a page of a roll', () => {
  const [a, b, c] = ['a', 'b', 'c'].map((member) => ({ pool: 'web', member }))
  const error = new DrainableError('ACTION_FAILED', 'COMMAND exited with 1')
  const roll = rollReport({
    outcome: 'stopped',
    servers: [
      {
        address: '10.0.0.1',
        refs: [a!],
        outcome: 'done',
        attempts: 1,
        times: { drain: 2_000, act: 900, healthy: 500 },
        drained: drainReport(),
      },
      { address: '10.0.0.2', refs: [b!], outcome: 'failed', attempts: 2, times: {}, error },
      { address: '10.0.0.3', refs: [c!], outcome: 'untouched', attempts: 0, times: {} },
    ],
    leftDrained: [b!],
  })
  const html = pageOf(
    [
      { type: 'batch', at: at(0), refs: [a!] },
      ...goodDrain(a),
      { type: 'act', at: at(2_100), ref: a!, refs: [a!], attempt: 1 },
      { type: 'ready', at: at(3_000), ref: a!, refs: [a!] },
      { type: 'healthy', at: at(3_500), ref: a!, refs: [a!] },
      load(4_000, { ref: b! }),
      { type: 'act', at: at(4_500), ref: b!, refs: [b!], attempt: 1 },
      { type: 'failed', at: at(5_000), ref: b!, refs: [b!], error },
      { type: 'roll-end', at: at(5_000), report: roll },
    ],
    { verb: 'roll', exitCode: 12, roll },
  )
  const text = textOf(html)

  it('has a row for each server, also for one that was not reached', () => {
    for (const words of [
      '10.0.0.1 web/a ✓ done 1 2 s 900 ms 500 ms',
      '10.0.0.2 web/b ✗ failed, COMMAND ran 2 times 2 COMMAND exited with 1',
      '10.0.0.3 web/c ! untouched 0',
    ])
      expect(text).toContain(words)
  })

  it('gives each server its own axis of time', () => {
    const section = text.slice(text.indexOf('Server 10.0.0.2: web/b'))
    expect(section).toContain('0.50 s COMMAND began')
  })

  it('marks where COMMAND began and ended', () => {
    expect(text).toContain('2.10 s COMMAND began')
    expect(text).toContain('3.00 s COMMAND ended')
    expect(text).toContain('1.00 s COMMAND ended')
  })

  it('shows a server as idle until it is made ready, and no longer', () => {
    const section = html.slice(html.indexOf('Server 10.0.0.1: web/a'))
    const bands = [...section.matchAll(/class="band phase-(\w+)" x="([\d.]+)%"/g)].slice(0, 4)
    expect(bands.map(([, phase]) => phase)).toEqual(['active', 'draining', 'idle', 'active'])
    expect(Number(bands[3]?.[2])).toBeCloseTo((3_000 / 3_500) * 100, 1)
  })

  it('says what it left drained', () => {
    expect(text).toContain('Left drained web/b')
  })
})
