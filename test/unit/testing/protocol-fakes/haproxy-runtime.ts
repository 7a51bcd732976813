import { haproxyRuntime } from 'drainable/haproxy-runtime'
import { startFake, type HaproxyFake } from 'drainable/testing/haproxy-runtime'
import { ask } from '../haproxy-runtime/ask.js'
import type { Said, Subject } from './client.js'

const ref = { pool: 'web', member: 'web1' }

async function said(fake: HaproxyFake, line: string): Promise<Said> {
  const text = await ask(fake.socket, `${line}\n`)
  if (text === '') throw new Error('closed without an answer')
  return { ok: !/denied|Unknown command/.test(text), text }
}

export const subject: Subject = {
  start: (more) => startFake({ pools: { web: ['web1', 'web2'] }, master: true, ...more }),
  ref,
  change: (fake: HaproxyFake) => said(fake, 'set server web/web1 state drain'),
  read: (fake: HaproxyFake) => said(fake, 'show version'),
  line: /^set server/,
  isDone: (fake: HaproxyFake) => fake.adminMask(ref) === 8,
  words: /^Permission denied$/m,
  deaf: async (fake: HaproxyFake) => {
    fake.fail({ match: /^set server/, how: 'silent' })
    return { lb: haproxyRuntime({ socket: fake.socket }), ref }
  },
}
