import { expect, test } from 'vitest'
import { schemas } from '../../../scripts/package/schemas.js'
import { SCHEMAS } from '../../../scripts/package/written.js'

test('the schemas that are built are those that are exported', () => {
  expect(Object.keys(schemas()).sort()).toEqual([...SCHEMAS].sort())
})

test.each(Object.entries(schemas()))('%s closes every object with named fields', (_, schema) => {
  const open: string[] = []
  const visit = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return
    const { properties, additionalProperties } = value as Record<string, unknown>
    if (properties !== undefined && additionalProperties !== false) open.push(path)
    for (const [key, inside] of Object.entries(value)) visit(inside, `${path}/${key}`)
  }
  visit(schema, '')
  // A planned change has the fields of its kind.
  expect(open.filter((path) => !isChange(schema, path))).toEqual([])
})

function isChange(schema: object, path: string): boolean {
  const found = path
    .split('/')
    .slice(1)
    .reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], schema)
  return JSON.stringify(found).includes('"hold","restore","terminate","remove","add"')
}
