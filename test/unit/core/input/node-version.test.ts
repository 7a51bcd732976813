import { readFileSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { drain } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { fakeProvider } from 'drainable/testing'

const versions = Object.getOwnPropertyDescriptor(process, 'versions')!

afterEach(() => Object.defineProperty(process, 'versions', versions))

function run(node: string | undefined): void {
  Object.defineProperty(process, 'versions', { ...versions, value: { ...process.versions, node } })
}

const make = () => fakeProvider({ pools: { web: ['web1', 'web2'] } })
const refused = {
  code: 'UNSUPPORTED',
  message: expect.stringMatching(
    /^drainable needs Node\.js 22\.19 or newer, and this is /,
  ) as unknown,
}

test.each(['20.20.2', '22.18.0', '18.0.0'])('Node %s is refused by a factory', (node) => {
  run(node)
  expect(() => haproxyRuntime({ socket: '/run/haproxy/admin.sock' })).toThrow(
    expect.objectContaining(refused),
  )
})

test('Node 20 is refused by a verb before anything is asked', async () => {
  const lb = make()
  run('20.20.2')
  await expect(drain(lb, { pool: 'web', member: 'web1' })).rejects.toMatchObject(refused)
  expect(lb.requests).toEqual([])
})

test.each(['22.19.0', '24.9.0', '26.0.0-nightly', undefined])('%s is accepted', async (node) => {
  run(node)
  await using lb = haproxyRuntime({ socket: '/run/haproxy/admin.sock' })
  expect(lb.name).toBe('haproxy-runtime')
})

test('the oldest accepted Node is that of the manifest', () => {
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    engines: { node: string }
  }
  expect(engines.node).toBe('>=22.19')
})
