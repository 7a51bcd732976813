import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { tooOld } from '../../../src/cli/node-version.js'

test.each(['18.20.0', '20.19.1', '22.18.9'])('Node %s is refused in one line', (version) => {
  expect(tooOld(version)).toBe(`drainable: this is Node.js ${version}, and it needs 22.19 or newer`)
})

test.each(['22.19.0', '24.0.0', '26.1.0'])('Node %s is taken', (version) => {
  expect(tooOld(version)).toBeUndefined()
})

test('the oldest Node is that of package.json', () => {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')
  const { engines } = JSON.parse(text) as { engines: { node: string } }
  expect(tooOld('1.0.0')).toContain(engines.node.replace('>=', ''))
})
