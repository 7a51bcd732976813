import fc from 'fast-check'
import {
  incarnationOf,
  parseEnv,
  parseInfo,
  parseProc,
} from '../../../src/adapters/haproxy-runtime/codec/replies.js'
import { parseStat } from '../../../src/adapters/haproxy-runtime/codec/stat.js'
import {
  identityOf,
  inheritedState,
  ownState,
  parseServersState,
  statusFitsMask,
} from '../../../src/adapters/haproxy-runtime/codec/state.js'
import { countTunnels, streamsTo } from '../../../src/adapters/haproxy-runtime/codec/streams.js'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const VERSIONS = ['2.6.12', '3.0.11', '3.2.26'] as const

function fixture(version: string, name: string): string {
  const url = new URL(`../../fixtures/haproxy-runtime/${version}/${name}.txt`, import.meta.url)
  return readFileSync(url, 'utf8')
}

describe.each(VERSIONS)('decoders on HAProxy %s', (version) => {
  it('reads counts by column name', () => {
    const rows = parseStat(fixture(version, 'show-stat-queue'))
    const [s1, s2] = rows.filter(({ kind }) => kind === 'server')
    expect(s1).toMatchObject({ pool: 'b_q', name: 's1', active: 1, queued: 2, status: 'no check' })
    expect(s2).toMatchObject({ name: 's2', active: 1, queued: 0 })
    expect(rows.at(-1)).toMatchObject({ kind: 'backend' })
  })

  it('reads the wanted rows of a dump as it does all of them', () => {
    const text = fixture(version, 'show-stat-queue')
    const all = parseStat(text)
    const wanted = all.filter(({ kind, name }) => kind === 'backend' || name === 's2')
    expect(wanted.length).toBeLessThan(all.length)
    expect(parseStat(text, { pool: 'b_q', names: new Set(['s2']) })).toEqual(wanted)
    expect(parseStat(text, { pool: 'b', names: new Set(['s2']) })).toEqual([])
  })

  it('counts a TCP connection and h2 requests as active', () => {
    expect(parseStat(fixture(version, 'show-stat-tcp-open'))[0]).toMatchObject({ active: 1 })
    expect(parseStat(fixture(version, 'show-stat-h2-inflight'))[0]).toMatchObject({ active: 3 })
  })

  it('adds retries to arrivals', () => {
    const [header = '', row = ''] = fixture(version, 'show-stat-csv').split('\n')
    const columns = header.slice(2).split(',')
    const cells = row.split(',')
    cells[columns.indexOf('stot')] = '7'
    cells[columns.indexOf('wretr')] = '2'
    expect(parseStat(`${header}\n${cells.join(',')}\n`)[0]?.arrivals).toBe(9)
  })

  it('reads the decimal mask', () => {
    const states = parseServersState(fixture(version, 'server-state-file-dump'))
    const mask = (name: string): number | undefined =>
      states.find((server) => server.pool === 'b' && server.name === name)?.admin
    expect([mask('s1'), mask('s2'), mask('s3')].map((admin) => ownState(admin ?? -1))).toEqual([
      'drain',
      'maint',
      'ready',
    ])
  })

  it('tells processes apart', () => {
    const info = parseInfo(fixture(version, 'show-info'))
    expect(info.version.startsWith(version)).toBe(true)
    expect(incarnationOf(info)).toBe(`host/${info.pid}/${info.start}`)
    expect(info).toMatchObject({ lived: 11_000, stopping: false, connections: 0 })
    const float = fixture(version, 'show-info')
      .replace('Uptime_sec: 11', 'Uptime_sec: 11.073140')
      .replace(/(Start_time_sec: \d+)/, '$1.762023')
    expect(parseInfo(float)).toMatchObject({
      lived: expect.closeTo(11_073.14) as unknown,
      start: info.start,
    })
  })

  it('counts the connections that carry a tunnel', () => {
    const streams = fixture(version, 'master-show-sess-all-old-worker')
    // A WebSocket and TCP, not the request in flight, not our own.
    expect(countTunnels(streams)).toBe(2)
    for (const mux of ['mux=H2', 'mux=QUIC'])
      expect(countTunnels(streams.replaceAll('mux=H1', mux))).toBe(1)
    expect(countTunnels(streams.replaceAll('state=EST', 'state=CON'))).toBe(0)
    expect(countTunnels('Permission denied')).toBe(0)
  })

  it('finds the streams that are connected to an address', () => {
    const streams = fixture(version, 'master-show-sess-all-old-worker')
    const [, address = '', port] = / server=s1 \(id=1\) addr=(.*):(\d+)$/m.exec(streams) ?? []
    const to = { address, port: Number(port) }
    const found = streamsTo(streams, 'web', to)
    expect(found.map(({ member }) => member)).toEqual(['s1', 's1'])
    expect(found.every(({ pointer }) => streams.includes(`${pointer}: [`))).toBe(true)
    expect(streamsTo(streams, 'web', { ...to, port: 0 })).toEqual(found)
    expect(streamsTo(streams, 'web', { ...to, port: 1 })).toEqual([])
    expect(streamsTo(streams, 'tcp', to)).toEqual([])
    const ipv6 = streams.replaceAll(`addr=${address}:`, 'addr=::1:')
    expect(streamsTo(ipv6, 'web', { ...to, address: '0:0:0:0:0:0:0:1' })).toEqual(found)
    expect(streamsTo('Permission denied', 'web', to)).toEqual([])
  })

  it('reads the workers of a master', () => {
    expect(parseProc(fixture(version, 'master-show-proc-before-reload')).old).toEqual([])
    const after = parseProc(fixture(version, 'master-show-proc-after-reload'))
    expect(after.current).toHaveLength(1)
    expect(after.old).toHaveLength(1)
  })
})

describe('the mask of a server', () => {
  it.each([
    [0, 'ready', undefined],
    [1, 'maint', undefined],
    [2, 'ready', 'maint'],
    [3, 'maint', 'maint'],
    [4, 'ready', undefined], // "disabled" in the configuration, made ready since
    [5, 'maint', undefined],
    [8, 'drain', undefined],
    [12, 'drain', undefined],
    [16, 'ready', 'drain'],
    [24, 'drain', 'drain'],
    [32, 'ready', 'maint'],
    [33, 'maint', 'maint'],
    [40, 'drain', 'maint'],
    [64, 'ready', undefined],
  ] as const)('%i is own %s, inherited %s', (admin, own, inherited) => {
    expect(ownState(admin)).toBe(own)
    expect(inheritedState(admin)).toBe(inherited)
  })

  it.each([
    ['UP', 0, true],
    ['UP 1/3', 8, false],
    ['no check', 64, true],
    ['no check', 1, false],
    ['DRAIN', 8, true],
    ['DRAIN 1/3', 16, true],
    ['DRAIN (agent)', 0, false],
    ['DRAIN', 9, false],
    ['MAINT', 1, true],
    ['MAINT (via b/s1)', 2, true],
    ['MAINT (resolution)', 40, true],
    ['MAINT', 8, false],
    ['DOWN', 8, true],
    ['DOWN 1/2', 1, false],
    ['NOLB', 0, true],
    ['something new', 8, true],
  ] as const)('%s with mask %i: can both be true? %s', (status, admin, fits) => {
    expect(statusFitsMask(status, admin)).toBe(fits)
  })
})

it('columns are found by the header of each reply', () => {
  const header = '# pxname,svname,qcur,scur,stot,status,iid,sid,type'
  const reversed = `# ${header.slice(2).split(',').reverse().join()}`
  const row = 'web,s1,2,1,7,UP,3,1,2'
  for (let turn = 0; turn < 2; turn += 1) {
    const [one] = parseStat(`${header}\n${row}\n`)
    const [other] = parseStat(`${reversed}\n${row.split(',').reverse().join()}\n`)
    expect(one).toMatchObject({ pool: 'web', name: 's1', active: 1, queued: 2, arrivals: 7 })
    expect(other).toEqual(one)
  }
})

describe('replies to another question', () => {
  it.each([
    ['show stat', () => parseStat('Unknown command')],
    ['show stat without scur', () => parseStat('# pxname,svname,\nweb,s1,\n')],
    ['show servers state', () => parseServersState("Can't find server.")],
    [
      'a line without a mask',
      () =>
        parseServersState(
          '1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight\n3 web 1\n',
        ),
    ],
    ['show info', () => parseInfo('HTTP/1.1 400 Bad request')],
    ['show proc', () => parseProc('Unknown command')],
  ] as const)('%s', (_name, read) => {
    expect(read).toThrow(expect.objectContaining({ code: 'MALFORMED_REPLY' }))
  })

  it('never give a zero for a count that is not a number', () => {
    const text = fixture('3.2.26', 'show-stat-csv')
    const [header = '', row = ''] = text.split('\n')
    const cells = row.split(',')
    cells[header.slice(2).split(',').indexOf('scur')] = ''
    expect(() => parseStat(`${header}\n${cells.join(',')}\n`)).toThrow(
      expect.objectContaining({ code: 'MALFORMED_REPLY' }),
    )
  })

  it('throw no other error', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        for (const parse of [parseStat, parseServersState, parseInfo, parseProc]) {
          try {
            parse(text)
          } catch (error) {
            expect(error).toMatchObject({ code: 'MALFORMED_REPLY' })
          }
        }
      }),
    )
  })

  it('may have other column orders, unknown columns and quoted cells', () => {
    const text =
      '# svname,new,pxname,type,iid,sid,stot,status,scur,qcur,last_chk,\ns1,"a, ""b""",web,2,3,1,5,UP,1,2,"x,\ny",\n'
    expect(parseStat(text)).toEqual([
      expect.objectContaining({ pool: 'web', name: 's1', active: 1, queued: 2, arrivals: 5 }),
    ])
  })
})

describe('the identity of a server', () => {
  const [state] = parseServersState(fixture('3.2.26', 'show-servers-state-all'))
  if (state === undefined) throw new Error('no state')

  it('is address and port, not the id', () => {
    expect(identityOf(state)).toBe('127.0.0.1:20601')
    expect(identityOf({ ...state, sid: '99' })).toBe(identityOf(state))
    expect(identityOf({ ...state, address: '2001:db8::1' })).toBe('[2001:db8::1]:20601')
  })

  it('changes with another address, and is empty for a name without one', () => {
    expect(identityOf({ ...state, address: '127.0.0.2' })).toBe('127.0.0.2:20601')
    expect(identityOf({ ...state, address: '-' })).toBe('-:20601')
    expect(identityOf({ ...state, address: '-', resolved: true })).toBe('')
  })
})

describe('small replies', () => {
  it('show env', () => {
    expect(parseEnv('HAPROXY_MWORKER=1\n', 'HAPROXY_MWORKER')).toBe('1')
    expect(parseEnv('Variable not found\n', 'HAPROXY_MWORKER')).toBeUndefined()
    expect(parseEnv('Permission denied\n', 'HAPROXY_MWORKER')).toBeUndefined()
  })
})
