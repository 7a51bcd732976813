import { ready, select } from 'drainable'
import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake } from 'drainable/testing/haproxy-runtime'
import { expect, test } from 'vitest'
import { cli } from '../../support/haproxy.js'
import { WEB1 } from './rig.js'

test('ready() says that weight 0 keeps a server out of balancing, and leaves the weight', async () => {
  await using fake = await startFake({ pools: { web: ['web1', 'web2'] } })
  await using lb = haproxyRuntime({ socket: fake.socket })
  const socket = fake.socket as string
  await cli(socket, 'set server web/web1 weight 0')
  await cli(socket, 'set server web/web1 state drain')
  const { members } = await ready(lb, WEB1)
  expect(members[0]!.hints).toEqual(['weight 0 keeps it out of balancing'])
  expect((await select(lb, WEB1))[0]).toMatchObject({ own: 'ready', weight: 0, serves: false })
})
