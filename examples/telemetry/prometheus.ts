/** Prometheus: counters and gauges of drains in its text format, for a page `/metrics` of your own. */
import { subscribe } from 'node:diagnostics_channel'
import type { ChangeMessage, DrainMessage, FaultMessage, LookMessage } from 'drainable'

/** Begins to count. @returns what gives the page */
export function countDrains(): () => string {
  const values = new Map<string, number>()
  const add = (name: string, labels: Record<string, string>, by: number, set = false): void => {
    const all = Object.entries(labels).map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    const key = `drainable_${name}{${all.join(',')}}`
    values.set(key, set ? by : (values.get(key) ?? 0) + by)
  }
  subscribe('drainable:drain', (message) => {
    const { provider, instance, verb, event } = message as DrainMessage
    if (event.type === 'load') {
      const { pool, member } = event.ref
      add('in_flight', { provider, instance, pool, member }, event.active + event.queued, true)
    }
    if (event.type === 'end' && verb === 'drain') {
      const labels = { provider, instance, outcome: event.outcome }
      add('drains_total', labels, 1)
      add('drain_seconds_sum', labels, event.report.elapsed / 1000)
    }
  })
  subscribe('drainable:change', (message) => {
    const { provider, instance, kind, status } = message as ChangeMessage
    add('changes_total', { provider, instance, kind, status }, 1)
  })
  subscribe('drainable:look', (message) => {
    const { provider, instance, error, took } = message as LookMessage
    add('looks_total', { provider, instance, code: error?.code ?? '' }, 1)
    add('look_seconds_sum', { provider, instance }, took / 1000)
  })
  subscribe('drainable:fault', (message) => {
    const { provider, instance, error } = message as FaultMessage
    add('faults_total', { provider, instance, code: error.code }, 1)
  })
  return () => [...values].map(([key, value]) => `${key} ${value}\n`).join('')
}
