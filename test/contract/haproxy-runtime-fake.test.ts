import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { startFake } from 'drainable/testing/haproxy-runtime'
import { ask } from '../unit/testing/haproxy-runtime/ask.js'

const recorded = new URL('../fixtures/haproxy-runtime/', import.meta.url)

describe.each([
  ['2.6', '2.6.12'],
  ['3.0', '3.0.11'],
  ['3.2', '3.2.26'],
] as const)('the fake beside the recordings of %s', (version, folder) => {
  const fixture = (name: string): Promise<string> =>
    readFile(new URL(`${folder}/${name}.txt`, recorded), 'utf8')

  test('has the columns of show stat, in their order', async () => {
    await using fake = await startFake({ version })
    const [header] = (await ask(fake.socket, 'show stat\n')).split('\n')
    expect(header).toBe((await fixture('show-stat-csv')).split('\n')[0])
  })

  test('has the lines of show info, in their order', async () => {
    await using fake = await startFake({ version })
    const names = (text: string): string[] =>
      text.split('\n').map((line) => line.split(':')[0] ?? '')
    expect(names(await ask(fake.socket, 'show info\n'))).toEqual(names(await fixture('show-info')))
  })

  test('lists its processes before and after a reload', async () => {
    await using fake = await startFake({ version, master: true })
    const shape = (text: string): string => {
      return text.replaceAll(/^\d+ +/gm, 'PID ').replaceAll(/\d+d\d\dh\d\dm\d\ds/g, 'AGE')
    }
    const proc = async (): Promise<string> => shape(await ask(fake.master!, 'show proc;quit\n'))
    expect(await proc()).toBe(shape(await fixture('master-show-proc-before-reload')))
    await fake.occupy({ pool: 'web', member: 'web1' })
    await fake.reload()
    expect(await proc()).toBe(shape(await fixture('master-show-proc-after-reload')))
  })

  test('shows a queue and requests in flight as they were recorded', async () => {
    const wanted = rows(await fixture('show-stat-tcp-open'))
    await using fake = await startFake({
      version,
      pools: { b_tcp: ['t1'] },
      frontends: { f_tcp: { pool: 'b_tcp', mode: 'tcp' } },
    })
    await fake.occupy({ pool: 'b_tcp', member: 't1' })
    const found = rows(await ask(fake.socket, 'show stat b_tcp 4 -1\n'))
    const differing = Object.keys(wanted[0]!).filter((key) => wanted[0]![key] !== found[0]![key])
    // What belongs to the recorded machine, not to the product.
    expect(
      differing.filter(
        (key) => !['lastchg', 'iid', 'addr', 'lastsess', 'rate', 'connect'].includes(key),
      ),
    ).toEqual([])
  })
})

function rows(text: string): Record<string, string>[] {
  const [header = '', ...lines] = text.trim().split('\n')
  const names = header.slice(2).split(',')
  return lines.map((line) => {
    const values = line.split(',')
    return Object.fromEntries(names.map((name, i) => [name, values[i] ?? '']))
  })
}
