import { HttpRequestInterceptor } from '@mswjs/interceptors/http'
import { http, HttpResponse } from 'msw'
import { defineNetwork, InterceptorSource } from 'msw/experimental'
import { citrixAdc, type CitrixAdcOptions } from 'drainable/citrix-adc'
import type { MemberRef, PresentReading, Snapshot } from 'drainable/provider'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { shortPauses } from '../../support/short-pauses.js'

/** An appliance with answers written by hand, for replies that no fake and no build would send. */
export const network = defineNetwork({
  sources: [new InterceptorSource({ interceptors: [new HttpRequestInterceptor()] })],
  handlers: [],
  context: { quiet: true },
  onUnhandledFrame: 'error',
})

export const ADC = 'https://adc.example'
export const NITRO = `${ADC}/nitro/v1`
export const WEB1: MemberRef = { pool: 'sg', member: 'web1:80' }
export const OK = { errorcode: 0, message: 'Done', severity: 'NONE' }

export const GROUP = {
  servicegroupname: 'sg',
  servicetype: 'HTTP',
  downstateflush: 'ENABLED',
  state: 'ENABLED',
}
export const MEMBER = {
  servicegroupname: 'sg',
  ip: '10.0.0.1',
  port: 80,
  svrstate: 'UP',
  weight: '1',
  servername: 'web1',
}
export const STAT = {
  primaryipaddress: '10.0.0.1',
  primaryport: 80,
  state: 'UP',
  surgecount: '0',
  svrestablishedconn: '0',
  curreusepool: '0',
}

export interface Seen {
  readonly line: string
  readonly cookie: string | null
  readonly user: string | null
  readonly body: string
}

export const seen: Seen[] = []

/** Everything a reading takes, each answer replaceable by its type. */
export function appliance(answers: Readonly<Record<string, (seen: Seen) => Response>> = {}) {
  const usual: Readonly<Record<string, (seen: Seen) => Response>> = {
    login: () =>
      HttpResponse.json(
        { ...OK, sessionid: '##A+B/C' },
        {
          status: 201,
          headers: { 'set-cookie': 'NITRO_AUTH_TOKEN=%23%23A%2BB%2FC; path=/nitro/v1' },
        },
      ),
    clusterinstance: () => HttpResponse.json(OK),
    hanode: () => HttpResponse.json({ ...OK, hanode: [{ hacurstatus: 'NO' }] }),
    system: () => HttpResponse.json({ ...OK, system: { starttime: 'Fri Nov 20 07:00:00 2026' } }),
    'config/servicegroup': () => HttpResponse.json({ ...OK, servicegroup: [GROUP] }),
    servicegroup_servicegroupmember_binding: () =>
      HttpResponse.json({ ...OK, servicegroup_servicegroupmember_binding: [MEMBER] }),
    'stat/servicegroup': () =>
      HttpResponse.json({
        ...OK,
        servicegroup: [{ servicegroupname: 'sg', servicegroupmember: [STAT] }],
      }),
    ...answers,
  }
  return http.all(`${NITRO}/*`, async ({ request }) => {
    const [tree, type] = new URL(request.url).pathname.split('/').slice(3)
    const one: Seen = {
      line: `${request.method} ${tree ?? ''}/${type ?? ''}${new URL(request.url).search}`,
      cookie: request.headers.get('cookie'),
      user: request.headers.get('x-nitro-user'),
      body: await request.text(),
    }
    seen.push(one)
    const answer = usual[`${tree ?? ''}/${type ?? ''}`] ?? usual[type ?? '']
    const nobody = { errorcode: 258, message: 'No such resource', severity: 'ERROR' }
    return answer?.(one) ?? HttpResponse.json(nobody, { status: 404 })
  })
}

export const ctx = {
  signal: new AbortController().signal,
  clock: shortPauses(),
}

export function provider(options: Partial<CitrixAdcOptions> = {}) {
  return citrixAdc({ url: ADC, username: 'u', password: 'p', ...options })
}

export async function look(refs: readonly MemberRef[] = [WEB1]): Promise<Snapshot> {
  await using adc = provider()
  return await adc.observe(refs, ctx)
}

export async function present(): Promise<PresentReading> {
  const [reading] = (await look()).readings
  if (reading?.present !== true) throw new Error('not present')
  return reading
}

/** Called once by each file of tests: the answers are those of one test. */
export function useHandWritten(): void {
  beforeAll(() => network.enable())
  afterEach(() => {
    network.resetHandlers()
    seen.length = 0
  })
  afterAll(() => network.disable())
}
