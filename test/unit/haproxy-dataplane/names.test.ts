import { describe, expect, test } from 'vitest'
import { isName, pathsOf } from '../../../src/adapters/haproxy-dataplane/codec/paths.js'
import {
  parseProcessInfo,
  parseRuntimeServers,
  parseStats,
} from '../../../src/adapters/haproxy-dataplane/codec/replies.js'

describe('names that a URL would fold', () => {
  test.each(['.', '..', '', 'a/b', 'a b', '%2e%2e'])('are refused: %j', (name) => {
    expect(isName(name)).toBe(false)
  })

  test.each(['v2', 'v3'] as const)('never reach a path of %s', (tree) => {
    const paths = pathsOf(tree)
    for (const name of ['.', '..', '']) {
      for (const make of [
        () => paths.server('be', name),
        () => paths.configServer('be', name, { version: 1 }),
        () => paths.transaction(name),
        () => paths.reload(name),
      ]) {
        expect(make).toThrow(expect.objectContaining({ code: 'INVALID_OPTIONS' }))
        expect(make).toThrow(/expected letters, digits/)
      }
    }
  })
})

describe('a damaged reply', () => {
  const row = {
    type: 'server',
    name: 's1',
    backend_name: 'be',
    stats: { status: 'UP', scur: 1, qcur: 0, stot: 9, wretr: 0, weight: 1 },
  }
  const stats = (rows: unknown): string => JSON.stringify({ runtimeAPI: 'x', stats: rows })
  const read = (text: string) => parseStats(text, () => true).rows

  test('is lost wherever it is cut', () => {
    const text = stats([row])
    for (let at = 1; at < text.length; at += 1) {
      expect(() => read(text.slice(0, at))).toThrow(
        expect.objectContaining({ code: 'CONNECTION_LOST' }),
      )
    }
  })

  test.each<[string, unknown]>([
    ['rows that are a text', 'none'],
    ['a row without a name', [{ ...row, name: '' }]],
    ['a row without a backend', [{ ...row, backend_name: undefined }]],
    ['a count below 0', [{ ...row, stats: { ...row.stats, scur: -1 } }]],
    ['a queue below 0', [{ ...row, stats: { ...row.stats, scur: 1, qcur: -1 } }]],
    ['half a count', [{ ...row, stats: { ...row.stats, qcur: 0.5 } }]],
    ['a count that is a text', [{ ...row, stats: { ...row.stats, scur: '1' } }]],
  ])('%s is malformed', (_, rows) => {
    expect(read(stats([row]))).toHaveLength(1)
    expect(() => read(stats(rows))).toThrow(expect.objectContaining({ code: 'MALFORMED_REPLY' }))
  })

  test.each<[string, object]>([
    ['no address', { name: 's1', port: 80 }],
    ['an address of null', { name: 's1', address: null, port: 80 }],
    ['port -1', { name: 's1', address: '10.0.0.1', port: -1 }],
    ['port 65536', { name: 's1', address: '10.0.0.1', port: 65_536 }],
  ])('a server with %s is malformed, without another identity', (_, server) => {
    expect(() => parseRuntimeServers(JSON.stringify([server]))).toThrow(
      expect.objectContaining({ code: 'MALFORMED_REPLY' }),
    )
  })

  test('any text is not an address, and no process has the pid 0', () => {
    const server = (address: string): string => JSON.stringify([{ name: 's1', address, port: 80 }])
    for (const address of ['10.0.0.1', '2001:db8::1', '', '-', '/run/app.sock']) {
      expect(parseRuntimeServers(server(address))[0]?.address).toBe(address)
    }
    expect(() => parseRuntimeServers(server('web1'))).toThrow(/usable 0.address/)
    expect(() => parseProcessInfo('{"info":{"pid":0,"uptime":1}}')).toThrow(/expected/)
  })
})
