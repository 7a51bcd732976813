/** OpenTelemetry: a span a roll, with the drain, the act and the way back to health of each server as its children. */
import { subscribe } from 'node:diagnostics_channel'
import { context, SpanStatusCode, trace, type Span } from '@opentelemetry/api'
import type { DrainMessage, MemberRef, RollMessage } from 'drainable'

const GOOD = /^(idle|removed|done|ready|healthy)$/
const named = (ref?: MemberRef): string => (ref ? `${ref.pool}/${ref.member}` : '')

export function traceDrains(tracer = trace.getTracer('drainable')): void {
  const spans = new Map<string, Span>()
  const rolls = new Map<string, string>()
  const begin = (key: string, name: string, at: string, parent = ''): void => {
    const above = spans.get(parent)
    const within = above ? trace.setSpan(context.active(), above) : context.active()
    spans.set(key, tracer.startSpan(name, { startTime: Date.parse(at) }, within))
  }
  const end = (key: string, at: string, outcome: string): void => {
    const code = SpanStatusCode[GOOD.test(outcome) ? 'OK' : 'ERROR']
    spans.get(key)?.setStatus({ code, message: outcome }).end(Date.parse(at))
    spans.delete(key)
  }
  subscribe('drainable:drain', (message) => {
    const { run, verb, event } = message as DrainMessage
    const server = event.type === 'begin' ? named(event.refs[0]) : ''
    if (event.type === 'begin') begin(run, `${verb} ${server}`, event.at, rolls.get(server))
    else if (event.type === 'end') end(run, event.at, event.outcome)
    else if (event.type !== 'load') spans.get(run)?.addEvent(event.type, Date.parse(event.at))
  })
  subscribe('drainable:roll', (message) => {
    const { run, event } = message as RollMessage
    if (event.type === 'begin') begin(run, 'roll', event.at)
    if (event.type === 'roll-end') end(run, event.at, event.report.outcome)
    if (event.type === 'batch') for (const ref of event.refs) rolls.set(named(ref), run)
    const stage = { act: 'act', ready: 'health' }[event.type as string]
    if ('ref' in event) end(run + named(event.ref), event.at, event.type) // its stage until now
    if ('ref' in event && stage)
      begin(run + named(event.ref), `${stage} ${named(event.ref)}`, event.at, run)
  })
}
