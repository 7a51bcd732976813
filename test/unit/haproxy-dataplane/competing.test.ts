import { setTimeout as pause } from 'node:timers/promises'
import { startDrain } from 'drainable'
import { startFake, type DataplaneFake } from 'drainable/testing/haproxy-dataplane'
import { request } from 'undici'
import { expect, test } from 'vitest'
import { connect } from '../../support/dataplane.js'

const NAMES = Array.from({ length: 12 }, (_, i) => `web${i + 1}`)
const TEN = NAMES.slice(0, 10)
const headers = {
  authorization: `Basic ${Buffer.from('admin:secret').toString('base64')}`,
  'content-type': 'application/json',
}

/** Where a write took long, as on a loaded machine, the next one comes after this time all the same, ms. */
const LONGEST_PAUSE = 10_000

/**
 * Another client, which changes the weight of one server again and again under the version that it read.
 *
 * @returns the weight that it was told to be written last
 */
async function writes(fake: DataplaneFake, name: string, stop: AbortSignal): Promise<number> {
  const path = `${fake.url}/v3/services/haproxy/configuration/backends/other/servers/${name}`
  let last = 1
  for (let weight = 2; !stop.aborted; weight = (weight % 200) + 1) {
    const began = performance.now()
    const read = await request(path, { headers })
    const line = (await read.body.json()) as object
    const version = String(read.headers['configuration-version'])
    const body = JSON.stringify({ ...line, weight })
    const reply = await request(`${path}?version=${version}`, { method: 'PUT', headers, body })
    await reply.body.dump()
    if (reply.statusCode === 200) last = weight
    // as long as thirty writes take, so that one of our writes meets them now and then on any machine
    const ms = Math.min(LONGEST_PAUSE, 30 * (performance.now() - began))
    await pause(ms, undefined, { signal: stop }).catch(() => undefined)
  }
  return last
}

const backendOf = (text: string, pool: string): string =>
  text.split(/^(?=backend )/m).find((section) => section.startsWith(`backend ${pool}`)) ?? ''

test(
  'ten durable drains beside three writers end, and no write is lost',
  { timeout: 240_000 },
  async () => {
    const web = NAMES.map((name) => ({ name, weight: 7 }))
    const others = ['a', 'b', 'c']
    await using fake = await startFake({
      pools: { web, other: others.map((name) => ({ name, weight: 1 })) },
    })
    const before = fake.config
    const stop = new AbortController()
    const writers = others.map((name) => writes(fake, name, stop.signal))
    try {
      // Ten at once in one process: on a loaded machine an answer can be late.
      const options = { durable: true, maintCuts: false, callTimeout: '30s' } as const
      await using first = connect(fake, options)
      await using second = connect(fake, options)
      const runs = TEN.map((member, i) =>
        startDrain(i % 2 === 0 ? first : second, { pool: 'web', member }, { timeout: '2m' }),
      )
      const reports = await Promise.all(runs.map((run) => run.done))
      expect(reports.map(({ outcome, error }) => error ?? outcome)).toEqual(TEN.map(() => 'idle'))
      for (const name of TEN) expect(fake.config).toMatch(new RegExp(`server ${name} .*weight 0`))
      const undone = await Promise.all(runs.map((run) => run.restore()))
      expect(undone.map(({ outcome, error }) => error ?? outcome)).toEqual(
        TEN.map(() => 'restored'),
      )
    } finally {
      stop.abort()
      await Promise.allSettled(writers)
    }
    expect(backendOf(fake.config, 'web').replaceAll(' enabled', '')).toBe(backendOf(before, 'web'))
    for (const [i, weight] of (await Promise.all(writers)).entries()) {
      expect(fake.config).toMatch(new RegExp(`server ${others[i]!} .*weight ${weight}\\b`))
    }
  },
)
