/** What the API refuses of an object, and what its selectors select, as far as the tests need it. */
import type { Stored } from './server.js'

export interface Wrong {
  readonly status: number
  readonly text: string
}

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const LABEL_VALUE = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/
const QUALIFIED =
  /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/
const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/
const MOST_OF_A_CONFIG_MAP = 1_048_576

/** Why an object can't be written. */
export function check(path: string, given: Partial<Stored>): Wrong | undefined {
  const { metadata } = given
  if (metadata?.name === undefined) return invalid('metadata.name: Required value')
  if (!SUBDOMAIN.test(metadata.name) || metadata.name.length > 253)
    return invalid(`metadata.name: Invalid value: "${metadata.name}"`)
  const { labels = {}, annotations = {} } = metadata as Partial<
    Record<string, Readonly<Record<string, string>>>
  >
  for (const [key, value] of Object.entries(labels))
    if (!QUALIFIED.test(key) || !LABEL_VALUE.test(value) || value.length > 63)
      return invalid(`metadata.labels: Invalid value: "${key}=${value}"`)
  for (const key of Object.keys(annotations))
    if (!QUALIFIED.test(key)) return invalid(`metadata.annotations: Invalid value: "${key}"`)
  if (path.includes('/leases')) return checkLease(given['spec'])
  if (path.includes('/configmaps')) return checkConfigMap(given['data'])
  return undefined
}

function checkLease(spec: unknown): Wrong | undefined {
  const { leaseDurationSeconds, leaseTransitions, acquireTime, renewTime } = spec as Readonly<
    Record<string, unknown>
  >
  if (!Number.isInteger(leaseDurationSeconds) || Number(leaseDurationSeconds) <= 0)
    return invalid('spec.leaseDurationSeconds: must be greater than 0')
  if (!Number.isInteger(leaseTransitions) || Number(leaseTransitions) < 0)
    return invalid('spec.leaseTransitions: must be greater than or equal to 0')
  for (const time of [acquireTime, renewTime])
    if (time !== undefined && (typeof time !== 'string' || !MICRO_TIME.test(time)))
      return { status: 400, text: 'parsing time: not a MicroTime' }
  return undefined
}

function checkConfigMap(data: unknown): Wrong | undefined {
  const values = Object.entries(data as Readonly<Record<string, unknown>>)
  const size = values.reduce((sum, [key, text]) => sum + key.length + String(text).length, 0)
  if (values.some(([, text]) => typeof text !== 'string'))
    return { status: 400, text: 'json: cannot unmarshal into Go struct field ConfigMap.data' }
  return size > MOST_OF_A_CONFIG_MAP
    ? invalid(`[]: Too long: may not be more than ${MOST_OF_A_CONFIG_MAP} bytes`)
    : undefined
}

function invalid(text: string): Wrong {
  return { status: 422, text }
}

/** Whether the selectors of a list or a watch select an object. */
export function matches(object: Stored, query: URLSearchParams): boolean {
  const field = query.get('fieldSelector')
  if (field !== null && field !== `metadata.name=${object.metadata.name}`) return false
  const selector = query.get('labelSelector')
  if (selector === null) return true
  const labels = (object.metadata['labels'] ?? {}) as Readonly<Record<string, string>>
  const [, key = '', names = ''] = /^(\S+) in \(([^)]*)\)$/.exec(selector) ?? []
  if (key === '') return Object.hasOwn(labels, selector)
  return names.split(',').includes(labels[key] ?? '')
}
