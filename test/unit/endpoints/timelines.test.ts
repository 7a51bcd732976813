import { readFileSync } from 'node:fs'
import { mapEndpoints, mergeSlices, normaliseConditions } from 'drainable/endpoints'
import { describe, expect, test, vi } from 'vitest'
import { conditionsWritten } from './pod-model.js'

interface Timeline {
  readonly recordedFrom: string
  readonly frames: readonly { readonly at: number; readonly slices: readonly unknown[] }[]
}

const NAMES = [
  ...['rolling-update-slow-prestop', 'single-replica', 'readiness-flap'],
  ...['node-deletion', 'node-drain', 'node-shutdown'],
]

describe.each(NAMES)('%s, as recorded', (name) => {
  const url = new URL(`../../../examples/endpoints/${name}.json`, import.meta.url)
  const { recordedFrom, frames } = JSON.parse(readFileSync(url, 'utf8')) as Timeline

  test('names its source, and its frames are in order', () => {
    expect(recordedFrom).toMatch(/^kube-apiserver v1\.\d+\.\d+ with the upstream EndpointSlice/)
    const times = frames.map(({ at }) => at)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
  })

  test('has only conditions that the model writes', () => {
    for (const { slices } of frames) {
      for (const { conditions } of mergeSlices(slices)) {
        const said = normaliseConditions(conditions)
        const { serving: podReady, terminating: deleting } = said
        expect(conditionsWritten({ podReady, deleting, publish: false })).toEqual(said)
      }
    }
  })

  test('has an endpoint serving in every frame with one that answers', () => {
    for (const { slices } of frames) {
      const decisions = mapEndpoints(mergeSlices(slices, { port: 'http' }))
      expect(decisions.some(({ action }) => action === 'serve')).toBe(
        decisions.some(({ serving }) => serving),
      )
    }
  })
})

test('the example prints its known plans', async () => {
  const lines: string[] = []
  const log = vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line))
  try {
    await import('../../../examples/endpoints.js')
  } finally {
    log.mockRestore()
  }
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(
    '../../fixtures/endpoint-conditions/example-plans.txt',
  )
})
