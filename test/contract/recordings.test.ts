import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { startFake as startCitrix } from 'drainable/testing/citrix-adc'
import { startFake as startBigip } from 'drainable/testing/f5-bigip'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))

interface Recorded {
  readonly status: number | null
  readonly out: string
}

async function record(name: string, env: Readonly<Record<string, string>>): Promise<Recorded> {
  const args = ['--import', `${root}scripts/source.mjs`, `${root}examples/recordings/${name}.ts`]
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env } })
  let out = ''
  const take = (chunk: string): void => void (out += chunk)
  child.stdout.setEncoding('utf8').on('data', take)
  child.stderr.setEncoding('utf8').on('data', take)
  const [status] = (await once(child, 'close')) as [number | null]
  return { status, out }
}

const SECRETS = /payroll|10\.9\.8\.7|127\.0\.0\.1|jdoe|s3cret|anRlc3Q/i
const USER = { username: 'jdoe', password: 's3cret' }

/** A service group and a pool whose names nobody else is to see. */
async function bigip(): Promise<Awaited<ReturnType<typeof startBigip>>> {
  return startBigip({ ...USER, tls: false, pools: { payroll: ['10.9.8.7:80'] } })
}
async function citrix(): Promise<Awaited<ReturnType<typeof startCitrix>>> {
  return startCitrix({ ...USER, tls: false, pools: { payroll: ['10.9.8.7:80'] } })
}

describe.each([
  ['trofs-between-visits', citrix, 'payroll', /"svrstate":"UP"/],
  ['total-requests', citrix, 'payroll', /"nested":"0","single":"0"/],
  ['statistics-lag', bigip, '/Common/payroll', /"member":"member-1"/],
  ['rest-framework-start', bigip, '/Common/payroll', /"what":"ready"/],
] as const)('the recording %s', (name, start, pool, shown) => {
  test('asks by GET alone, and shows nothing of its owner', async () => {
    await using fake = await start()
    if (name === 'rest-framework-start') {
      const body = { code: 404, message: "user jdoe: pool '/Common/payroll' at 10.9.8.7 is gone" }
      fake.fail({ match: /failover/, how: 'status', status: 404, body })
    }
    const { status, out } = await record(name, {
      RECORD_URL: fake.url,
      RECORD_USER: USER.username,
      RECORD_PASSWORD: USER.password,
      RECORD_POOL: pool,
      RECORD_SERVER: '10.9.8.7',
      RECORD_SECONDS: '1',
    })
    expect(out).toMatch(shown)
    expect(status).toBe(0)
    expect(new Set(fake.requests.map(({ method }) => method))).toEqual(new Set(['GET']))
    expect(out).not.toMatch(SECRETS)
    for (const line of out.trim().split('\n'))
      expect(() => JSON.parse(line) as unknown).not.toThrow()
  })
})
