import { checkFlag, checkText, checkWord, isObject, refuse } from '../check.js'

/** Endpoints as far as they are compared with nodes, or an error that names the place. */
export function checkEndpoints(subject: string, path: string, given: unknown): void {
  if (!Array.isArray(given)) refuse(subject, path, given, 'a list of endpoints')
  for (let i = 0; i < given.length; i++) {
    const one: unknown = given[i]
    if (!isObject(one)) refuse(subject, `${path}[${i}]`, one, 'an endpoint')
    const { nodeName, conditions, intent, note } = one
    checkText(subject, `${path}[${i}].nodeName`, nodeName)
    checkText(subject, `${path}[${i}].note`, note)
    if (intent !== undefined)
      checkWord(subject, `${path}[${i}].intent`, intent, ['none', 'soft', 'hard'])
    if (conditions === undefined || conditions === null) continue
    if (!isObject(conditions)) refuse(subject, `${path}[${i}].conditions`, conditions, 'an object')
    for (const name of ['ready', 'serving', 'terminating'])
      checkFlag(subject, `${path}[${i}].conditions.${name}`, conditions[name])
  }
}
