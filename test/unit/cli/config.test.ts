import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readConfig, type Config } from '../../../src/cli/config.js'

function read(content: unknown): { readonly folder: string; readonly config: Config } {
  const folder = mkdtempSync(join(tmpdir(), 'drainable-config-'))
  try {
    const file = join(folder, 'drainable.json')
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
    return { folder, config: readConfig(file) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe('a configuration', () => {
  test('has its paths relative to its folder', () => {
    const { folder, config } = read({
      $schema: './config.schema.json',
      balancers: {
        edge: 'haproxy:/run/a.sock',
        big: { url: 'bigip+https://b1', passwordFile: 'secret', tls: { ca: 'ca.pem' } },
      },
      tickets: 'tickets',
      onMissing: 'fail',
    })
    expect(config).toEqual({
      balancers: {
        edge: { url: 'haproxy:/run/a.sock' },
        big: {
          url: 'bigip+https://b1',
          passwordFile: join(folder, 'secret'),
          tls: { ca: join(folder, 'ca.pem') },
        },
      },
      tickets: join(folder, 'tickets'),
      onMissing: 'fail',
    })
  })

  test('of the page is a configuration', () => {
    const page = readFileSync(new URL('../../../docs/command.md', import.meta.url), 'utf8')
    const [, text = ''] = /```json\n(\{\n {2}"\$schema"[\s\S]*?)```/.exec(page) ?? []
    expect(Object.keys(read(JSON.parse(text) as object).config.balancers)).toEqual(['edge', 'big'])
  })

  test('an unknown field is named', () => {
    expect(() => read({ balancers: {}, ticket: 'x' })).toThrow(/ticket/)
  })

  test.each<[object, string]>([
    [{ a: { urll: 'x' } }, "balancers.a: unknown option 'urll', did you mean 'url'?"],
    [{ a: { url: 3 } }, 'balancers.a.url: expected a text, found a number'],
    [
      { a: { url: 'x', tls: { caa: 'x' } } },
      "balancers.a.tls: unknown option 'caa', did you mean 'ca'?",
    ],
    [{ a: '' }, 'balancers.a.url: expected a text that is not empty'],
    [{ a: [1] }, 'balancers.a: expected an object, found a list'],
    [{}, 'balancers: expected at least one balancer'],
    [{ all: 'x' }, "balancers: 'all' is no name: "],
    [{ 'a b': 'x' }, "balancers: 'a b' is no name: "],
  ])('what is wrong with a balancer is named: %j', (balancers, words) => {
    expect(() => read({ balancers })).toThrow(words)
  })

  test('a password in it is refused, and not repeated', () => {
    const text = { balancers: { a: { url: 'bigip+https://b', password: 'hunter2' } } }
    expect(() => read(text)).toThrow(/balancers/)
    expect(() => read(text)).not.toThrow(/hunter2/)
  })

  test('text that is not JSON is not repeated', () => {
    expect(() => read('{"password": hunter2}')).toThrow('it is not JSON')
    expect(() => read('{"password": hunter2}')).not.toThrow(/hunter2/)
  })

  test('a file that is missing is named', () => {
    expect(() => readConfig('/nowhere/drainable.json')).toThrow(
      '--config /nowhere/drainable.json: it can not be read (ENOENT)',
    )
  })
})
