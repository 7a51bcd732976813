import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { endpointConditionsPage } from '../../../scripts/endpoint-docs/page.js'

test('docs/endpoint-conditions.md agrees with the code', () => {
  const url = new URL('../../../docs/endpoint-conditions.md', import.meta.url)
  const hint = 'run: node --import ./scripts/source.mjs scripts/endpoint-docs/main.ts'
  expect(readFileSync(url, 'utf8'), hint).toBe(endpointConditionsPage())
})

test('the table of pull 4946 is as it was there', () => {
  const page = endpointConditionsPage()
  const rows = page.split('\n').filter((line) => /^\| [1-7] \| A /.test(line))
  const cells = rows.map((row) =>
    row
      .split('|')
      .map((cell) => cell.trim())
      .slice(3, -1),
  )
  expect(cells).toEqual([
    ['HEALTHY', 'HEALTHY', 'UNKNOWN', 'UNKNOWN', '**serve**'],
    ['UNHEALTHY', 'UNHEALTHY', 'ABSENT', 'DRAINING', '**drain**'],
    ['UNHEALTHY', 'UNHEALTHY', 'ABSENT', 'DRAINING', '**drain**'],
    ['HEALTHY', 'HEALTHY', 'DRAINING', 'DRAINING', '**serve**'],
    [
      'A HEALTHY, B UNHEALTHY',
      'A HEALTHY, B UNHEALTHY',
      'A DRAINING, B ABSENT',
      'A DRAINING, B DRAINING',
      '**A serve, B drain**',
    ],
    [
      'A DRAINING, B HEALTHY',
      'A DRAINING, B HEALTHY',
      'A DRAINING, B UNKNOWN',
      'A DRAINING, B UNKNOWN',
      '**A drain, B serve**',
    ],
    [
      'A DRAINING, B HEALTHY',
      'A ABSENT, B HEALTHY',
      'A ABSENT, B UNKNOWN',
      'A DRAINING, B UNKNOWN',
      '**A drain, B serve**',
    ],
  ])
})
