import { checkFlag, checkText, isObject, refuse } from '../check.js'
import type { Node } from './node.js'

/** A Node as far as it is read here, or an error that names the place. */
export function checkNode(subject: string, node: unknown, path: string): Node {
  if (!isObject(node)) refuse(subject, path, node, 'a Node')
  for (const part of ['metadata', 'spec', 'status']) {
    const value = node[part]
    if (value !== undefined && value !== null && !isObject(value)) {
      refuse(subject, `${path}.${part}`, value, 'an object')
    }
  }
  const metadata = isObject(node.metadata) ? node.metadata : {}
  checkText(subject, `${path}.metadata.name`, metadata.name)
  const named = typeof metadata.name === 'string' ? `${path} (${metadata.name})` : path
  const { labels } = metadata
  if (labels !== undefined && labels !== null && !isObject(labels)) {
    refuse(subject, `${named}.metadata.labels`, labels, 'an object')
  }
  const spec = isObject(node.spec) ? node.spec : {}
  checkFlag(subject, `${named}.spec.unschedulable`, spec.unschedulable)
  checkList(subject, `${named}.spec.taints`, spec.taints, ['key'])
  const status = isObject(node.status) ? node.status : {}
  checkList(subject, `${named}.status.addresses`, status.addresses, ['type', 'address'])
  checkList(subject, `${named}.status.conditions`, status.conditions, ['type', 'status'])
  return node
}

/** A list of objects that have these texts. */
function checkList(subject: string, path: string, list: unknown, texts: readonly string[]): void {
  if (list === undefined || list === null) return
  if (!Array.isArray(list)) refuse(subject, path, list, 'a list')
  for (const [i, one] of list.entries()) {
    if (!isObject(one)) refuse(subject, `${path}[${i}]`, one, 'an object')
    for (const key of texts) {
      if (typeof one[key] !== 'string') refuse(subject, `${path}[${i}].${key}`, one[key], 'a text')
    }
  }
}
