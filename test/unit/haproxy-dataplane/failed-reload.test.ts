import { drain, ready, startDrain } from 'drainable'
import { startFake, type DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { change, connect, present, rig, until } from '../../support/dataplane.js'
import { addBackend } from '../../support/dataplane-writer.js'

const WEB1 = { pool: 'web', member: 'web1' }
const COMPLAINT = 'config: unknown keyword'

test('a removal whose reload fails reports that the file was rolled back', async () => {
  await using r = await rig({ reloadDelay: 10 }, { membership: 'configuration' })
  const { config } = r.fake
  r.fake.refuseReload(COMPLAINT)
  const result = await change(r.lb, { kind: 'remove', ref: WEB1 })
  expect(result).toMatchObject({ status: 'rejected', error: { code: 'REJECTED' } })
  const { message } = (result as { error: Error }).error
  expect(message).toContain(COMPLAINT)
  expect(message).toContain("rolled the file back, which still has it; it is 'no check'")
  expect(r.fake.config).toBe(config)
  expect(await present(r.lb, WEB1)).toMatchObject({ own: 'ready', serves: true })
})

test('a removing drain whose reload fails leaves the member held, as said', async () => {
  const options = { membership: 'configuration', maintCuts: false } as const
  await using r = await rig({ reloadDelay: 10 }, options)
  r.fake.refuseReload(COMPLAINT)
  const drained = drain(r.lb, WEB1, { timeout: '60s', until: 'removed' })
  await expect(drained).rejects.toThrow("rolled the file back, which still has it; it is 'MAINT'")
  expect((await present(r.lb, WEB1)).own).toBe('maint')
})

test('an addition whose reload fails is refused, and not in the file', async () => {
  const config = `defaults
  default-server inter 1s
backend web
  server web1 127.0.0.1:8001
`
  await using r = await rig({ config, reloadDelay: 10 }, { membership: 'configuration' })
  r.fake.refuseReload(COMPLAINT)
  const ref = { pool: 'web', member: 'web9' }
  const result = await change(r.lb, { kind: 'add', ref, address: '127.0.0.1', port: 8009 })
  expect(result).toMatchObject({ status: 'rejected' })
  expect((result as { error: Error }).error.message).toContain('it was not added')
  expect(r.fake.config).toBe(config)
})

/** A write by another program whose reload HAProxy will refuse. */
async function brokenByOthers(fake: DataplaneFake): Promise<void> {
  fake.refuseReload(COMPLAINT)
  await addBackend(fake, 'others')
}

describe.concurrent('a foreign reload that fails after a durable write', () => {
  const pools = { web: ['web1', 'web2'].map((name) => ({ name, weight: 7 })) }
  const durable = { durable: true, maintCuts: false } as const
  const lineOf = ({ config }: DataplaneFake): string => /server web1 .*/.exec(config)?.[0] ?? ''

  test('sets the file back to the last reload that succeeded', async () => {
    await using fake = await startFake({ pools, reloadDelay: Infinity })
    await using lb = connect(fake)
    const { config } = fake
    await fake.run('set server web/web1 state ready')
    await brokenByOthers(fake)
    expect(fake.config).not.toBe(config)
    await fake.advanceReload()
    expect(fake.config).toBe(config)
    expect(await present(lb, WEB1)).toMatchObject({ own: 'ready', serves: true })
  })

  test('leaves HAProxy drained, and the file without the mark', async () => {
    await using r = await rig({ pools, reloadDelay: Infinity }, durable)
    await brokenByOthers(r.fake)
    expect((await change(r.lb, { kind: 'hold', ref: WEB1, to: 'drain' })).status).toBe('applied')
    expect(lineOf(r.fake)).toContain('weight 0')
    await r.fake.advanceReload()
    expect(lineOf(r.fake)).toContain('weight 7')
    expect((await present(r.lb, WEB1)).own).toBe('drain')
  })

  test('brings the marks back after ready(), which says so', async () => {
    await using r = await rig({ pools, reloadDelay: Infinity }, durable)
    await change(r.lb, { kind: 'hold', ref: WEB1, to: 'maint' })
    await acceptReload(r.fake)
    await brokenByOthers(r.fake)
    const { members } = await ready(r.lb, WEB1, { timeout: '60s' })
    expect(lineOf(r.fake)).toContain('weight 7')
    expect(JSON.stringify(members[0])).toContain('one that fails brings them back')
    await r.fake.advanceReload()
    expect(lineOf(r.fake)).toContain('weight 0 disabled')
  })

  test('leads to a mark that the next reload sets again, if it comes later', async () => {
    await using r = await rig({ pools, reloadDelay: Infinity }, durable)
    const run = startDrain(r.lb, WEB1, { timeout: '60s', seal: false })
    expect((await run.done).outcome).toBe('idle')
    expect(lineOf(r.fake)).toContain('weight 0')
    await brokenByOthers(r.fake)
    await r.fake.advanceReload()
    expect(lineOf(r.fake)).toContain('weight 7')
    expect((await present(r.lb, WEB1)).own).toBe('drain')
    await r.fake.reload()
    await until('it is in the file', () => Promise.resolve(lineOf(r.fake).includes('weight 0')))
    await until('it is drained', async () => (await present(r.lb, WEB1)).own === 'drain')
    await run.restore()
    expect(lineOf(r.fake)).toContain('weight 7')
    expect(await present(r.lb, WEB1)).toMatchObject({ own: 'ready', serves: true })
  })
})

/** A reload through the API that succeeds: what is in the file is the last known good. */
async function acceptReload(fake: DataplaneFake): Promise<void> {
  await addBackend(fake, 'accepted')
  await fake.advanceReload()
}
