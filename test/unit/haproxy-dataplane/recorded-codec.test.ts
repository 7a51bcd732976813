import { describe, expect, test } from 'vitest'
import { parseConfigServer } from '../../../src/adapters/haproxy-dataplane/codec/configuration.js'
import {
  parseErrorWords,
  parseGeneration,
  parseProcessInfo,
  parseReload,
  parseRuntimeServer,
  parseRuntimeServers,
  parseStats,
  saysNotFound,
} from '../../../src/adapters/haproxy-dataplane/codec/replies.js'
import { judge } from '../../../src/adapters/haproxy-dataplane/read/state.js'
import { recordings, type Exchange, type Recording } from '../../support/dataplane-recordings.js'

const everything = () => true

/** Which decoder a good reply belongs to. */
function decode({ tree }: Recording, { request, response }: Exchange): unknown {
  const text = JSON.stringify(response.body)
  const path = request.path.split('?')[0]!.replace(/^\/v[23]/, '')
  const version = response.headers['Configuration-Version']
  if (path === '/info') return parseGeneration(tree, text)
  if (path.endsWith('/runtime/info')) return parseProcessInfo(text)
  if (path.endsWith('/stats/native')) return parseStats(text, everything)
  if (/\/reloads\/[^/]+$/.test(path)) return parseReload(text)
  const list = /\/servers$/.test(path)
  const one = /\/servers\/[^/]+$/.test(path)
  const read = request.method === 'GET' || path.includes('/runtime/')
  if (path.includes('/runtime/') && list && request.method === 'GET') {
    return parseRuntimeServers(text)
  }
  if (path.includes('/runtime/') && one) return parseRuntimeServer(text)
  if (path.includes('/configuration/') && one && read) {
    return parseConfigServer(tree, text, version)
  }
  return undefined
}

describe.each(recordings())('$name', (recording) => {
  const good = recording.exchanges.filter(
    ({ request, response }) =>
      response.status === 200 && request.method !== 'HEAD' && response.body !== '',
  )
  const bad = recording.exchanges.filter(
    ({ response }) => response.status >= 400 && response.body !== '',
  )

  test('every good reply that the adapter reads is understood', () => {
    for (const exchange of good) {
      const value = decode(recording, exchange)
      const path = exchange.request.path.split('?')[0]!
      const isRead = /\/(info|native|runtime\/(.*\/)?servers)$|\/servers\//.test(path)
      if (isRead && exchange.request.method === 'GET') {
        expect(value, path).toBeDefined()
      }
    }
  })

  test('every error is read with its words, absence too', () => {
    for (const { request, response } of bad) {
      const body =
        typeof response.body === 'string'
          ? (JSON.parse(response.body) as { message: string })
          : (response.body as { message: string })
      const words = parseErrorWords(JSON.stringify(body))
      expect(body.message.replaceAll(/\s+/g, ' ')).toContain(
        words.replace(/…$/, '').replaceAll(/\s+/g, ' '),
      )
      if (/no data for/.test(body.message)) {
        expect(saysNotFound(response.status, words), request.path).toBe(true)
      }
    }
  })
})

test.each([' dev.dirty', 'dev', ''])('an API version of %j is refused', (version) => {
  const text = JSON.stringify({ api: { version }, system: {} })
  expect(parseGeneration('v3', text)).toEqual({
    tree: 'v3',
    version: version.trim(),
    setsWeight: false,
  })
})

test('states are judged by both sources as they were recorded', () => {
  const judged = new Set<string>()
  for (const recording of recordings()) {
    const admin = new Map<string, string>()
    for (const { request, response } of recording.exchanges) {
      if (response.status !== 200) continue
      const text = JSON.stringify(response.body)
      const server = /\/runtime\/(?:backends\/[^/]+\/)?servers\/(\w+)/.exec(request.path)?.[1]
      if (server !== undefined) {
        admin.set(server, parseRuntimeServer(text).admin!)
        continue
      }
      if (!request.path.includes('stats/native')) continue
      for (const row of parseStats(text, everything).rows) {
        const said = admin.get(row.member)
        if (said === undefined || recording.topic === '09' || recording.topic === '03') continue
        const { own } = judge(row, said as 'ready')
        judged.add(`${row.status} + ${said} = ${own}`)
      }
    }
  }
  expect([...judged].sort()).toEqual([
    'DOWN + ready = ready',
    'DRAIN + drain = drain',
    'MAINT + maint = maint',
    'NOLB + ready = ready',
    'UP 1/3 + ready = ready',
    'no check + ready = ready',
  ])
})
