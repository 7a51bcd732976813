/** What a server says to a health check, in the cells of `show stat`. */
import { createServer } from 'node:net'
import { startDrain } from 'drainable'
import { callContext } from 'drainable/provider'
import { describe, it } from 'vitest'
import { engines } from '../../support/engines.js'
import { until } from '../../support/haproxy.js'
import { lab, member, site } from '../../support/haproxy-lab.js'

const BODY = 'sorry\n\n"down",\n\n'
const ANSWER = `HTTP/1.1 200 OK\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`

describe.concurrent.each(engines('haproxy'))('HAProxy $version', { timeout: 60_000 }, (engine) => {
  it('is read with an empty line in it', async ({ expect }) => {
    await using it = await lab({
      engine,
      config: (port) => `${site(port, 'web')}
backend sick
  option httpchk GET /
  http-check expect status 404 on-error "said %[res.body]"
  server s1 127.0.0.1:${port('sick')} check inter 100 fall 1
  server s2 127.0.0.1:${port('s2')}
`,
    })
    const sick = createServer((socket) => {
      socket.on('error', () => undefined).on('data', () => socket.end(ANSWER))
    })
    sick.listen(it.haproxy.port('sick'), '127.0.0.1')
    try {
      const shown = (): Promise<string> => it.haproxy.cli('show stat sick 4 -1')
      await until(async () => (await shown()).includes('"said sorry'), 'the words are shown')
      await using lb = it.provider()
      const { readings } = await lb.observe('all', callContext())
      const seen = readings.map(({ ref }) => `${ref.pool}/${ref.member}`)
      expect(seen.toSorted()).toEqual(['sick/s1', 'sick/s2', 'web/s1', 'web/s2'])
      const drained = startDrain(lb, { pool: 'sick', member: 's1' }, { timeout: '20s' })
      expect(member(await drained.done)).toMatchObject({ outcome: 'idle', verifiedIdle: true })
    } finally {
      sick.close()
    }
  })
})
