import { describe, expect, test } from 'vitest'
import { TestIo } from '../../support/command.js'
import { products } from './products.js'

const NODE = process.execPath
/** A COMMAND that ends well only if it was told its member. */
const TOLD = ['--', NODE, '-e', 'process.exit(process.env.DRAINABLE_MEMBER ? 0 : 9)']

/** An idle is verified, or the product can't tell: both are ends that go on. */
const IDLE = [0, 10]

describe.concurrent.each(Object.entries(products))('the command on the fake of %s', (_, open) => {
  test('drains, runs COMMAND and makes ready again', async () => {
    await using lb = await open()
    using io = new TestIo(lb.env)
    const { changed, command, ready, ticket, exitCode, error } = await io.document(
      'drain',
      lb.url,
      lb.a,
      ...lb.flags,
      ...['--timeout', '30s', '--keep-ready', '1', '--expect', '1'],
      ...TOLD,
    )
    expect(error).toBeUndefined()
    expect(IDLE).toContain(exitCode)
    expect({ changed, command, ticket }).toEqual({
      changed: true,
      command: { status: 0, signal: null },
      ticket: undefined,
    })
    expect(ready?.members).toHaveLength(1)
    const { members = [] } = await io.document('status', lb.url, lb.a, ...lb.flags)
    expect(members.map(({ own }) => own)).toEqual(['ready'])
  })

  test('plans, drains, lists and restores, each with a document that fits', async () => {
    await using lb = await open()
    using io = new TestIo(lb.env)
    const plan = await io.document('plan', lb.url, lb.a, ...lb.flags)
    expect(plan.plan?.text).not.toBe('')
    const drained = await io.document('drain', lb.url, lb.a, ...lb.flags, '--timeout', '30s')
    expect(IDLE).toContain(drained.exitCode)
    expect(drained.ticket).toBeTypeOf('string')
    const watched = await io.document('watch', lb.url, lb.a, ...lb.flags, '--until-idle')
    expect(watched.exitCode).toBe(0)
    const ready = await io.document('ready', lb.url, lb.a, lb.b, ...lb.flags)
    expect([ready.exitCode, ready.error]).toEqual([0, undefined])
    // This process is the owner of the ticket and lives, so nothing is left over for others.
    expect((await io.document('orphans', lb.url, ...lb.flags)).orphans).toEqual([])
    const restored = await io.document('restore', lb.url, ...lb.flags)
    expect([restored.exitCode, restored.error?.code]).toEqual([6, 'NOT_FOUND'])
  })

  test('rolls one server after the other', async () => {
    await using lb = await open()
    using io = new TestIo(lb.env)
    const lines = await io.lines(
      'roll',
      lb.url,
      lb.a,
      lb.b,
      ...lb.flags,
      ...['--timeout', '30s', '--group', 'ref', '--no-wait-healthy'],
      ...TOLD,
    )
    const last = lines.at(-1)
    expect([last?.type, last?.error, last?.roll?.outcome]).toEqual(['result', undefined, 'done'])
    expect(lines.filter(({ type }) => type === 'act')).toHaveLength(2)
  })

  test('refuses another number of members before any change', async () => {
    await using lb = await open()
    using io = new TestIo(lb.env)
    const { exitCode, changed, error } = await io.document(
      'drain',
      lb.url,
      lb.pool,
      ...lb.flags,
      ...['--expect', '7'],
    )
    expect([exitCode, changed, error?.code]).toEqual([4, false, 'REJECTED'])
  })

  test('says in words what a status is', async () => {
    await using lb = await open()
    using io = new TestIo(lb.env)
    const { code, out } = await io.play('status', lb.url, ...lb.flags)
    expect(code).toBe(0)
    expect(out).toMatch(/^member +address +state +health +serves +active +queued\n/)
  })
})
