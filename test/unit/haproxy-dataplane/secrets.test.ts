import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { haproxyDataplane } from 'drainable/haproxy-dataplane'
import { startFake } from 'drainable/testing/haproxy-dataplane'
import { describe, expect, test } from 'vitest'
import { connect, context } from '../../support/dataplane.js'

const WEB1 = { pool: 'web', member: 'web1' }

describe.concurrent('secrets', () => {
  async function answering(reply: (login: string) => string, status: number) {
    const server = createServer((request, response) => {
      response.writeHead(status).end(reply(request.headers.authorization ?? ''))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const lb = haproxyDataplane({
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      username: 'drainer',
      password: 'correct-horse-battery-staple',
    })
    const error: unknown = await lb.observe([WEB1], context()).catch((e: unknown) => e)
    await lb.close()
    server.closeAllConnections()
    server.close()
    return error instanceof Error ? error.message : ''
  }

  test('are hidden on a page with status 200 that shows the request header', async () => {
    const login = Buffer.from('drainer:correct-horse-battery-staple').toString('base64')
    const message = await answering((header) => `<html>Authorization: ${header}</html>`, 200)
    expect(message).toContain('<html>Authorization: Basic')
    expect(message).not.toContain(login)
  })

  test.each([200, 500])('are hidden at the end of what is shown of a %d', async (status) => {
    const message = await answering(() => `${'x'.repeat(188)}correct-horse-battery-staple`, status)
    expect(message).toContain('xxx')
    expect(message).not.toContain('correct-hor')
  })
})

test('an abort does not wait for a password that does not come', async () => {
  await using fake = await startFake()
  await using lb = connect(fake, { password: () => new Promise<string>(() => undefined) })
  const controller = new AbortController()
  const ended = lb.observe([WEB1], context(controller.signal)).catch((e: unknown) => e)
  setTimeout(() => controller.abort('enough'), 20)
  const late = new Promise((resolve) => setTimeout(() => resolve('still waiting'), 1_000))
  expect(await Promise.race([ended, late])).toBe('enough')
})
