import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseReply, rowsOf } from '../../../src/adapters/citrix-adc/codec/nitro.js'
import { JsonValue } from '../../../src/kit/json.js'
import { classify } from '../../../src/adapters/citrix-adc/codec/errors.js'
import { toCounts, toMember } from '../../../src/adapters/citrix-adc/codec/rows.js'

const source = { provider: 'citrix-adc', what: 'GET' }

function json(value: unknown): JsonValue {
  return new JsonValue(value, source)
}

describe.skipIf(!existsSync(new URL('../../../../shared/fixtures/citrix', import.meta.url)))(
  'recorded replies of appliances',
  () => {
    const SHARED = new URL('../../../../shared/fixtures/citrix/', import.meta.url)
    const recorded = (name: string): { response: { body: Record<string, unknown> } } =>
      JSON.parse(readFileSync(new URL(name, SHARED), 'utf8')) as never

    test('an idle service reads as idle', () => {
      const { body } = recorded('stat-service.recorded.json').response
      const counts = rowsOf({ body: json(body) }, 'service').map((row) => toCounts(row, ''))
      expect(counts).toMatchObject([
        { active: 0, queued: 0, pooled: 2, surplus: 0, arrivals: 15_133 },
        { active: 0, queued: 0, pooled: 0 },
      ])
    })

    test('one server on two ports is two members', () => {
      const { body } = recorded('config-servicegroup-members.recorded.json').response
      const type = 'servicegroup_servicegroupmember_binding'
      const members = rowsOf({ body: json(body) }, type).map(
        (row) => toMember('sgtest', row).member,
      )
      expect(members).toEqual(['10.112.121.184:80', '10.112.121.184:81'])
    })

    test('every recorded error has a code', () => {
      const { errors } = JSON.parse(
        readFileSync(new URL('errors.recorded.json', SHARED), 'utf8'),
      ) as {
        errors: { status: number | null; raw_body: string | null; errorcode: number }[]
      }
      for (const { status, raw_body, errorcode } of errors) {
        if (status === null || raw_body === null) continue
        const reply = parseReply(status, raw_body)
        expect(reply.errorcode).toBe(errorcode)
        expect(['refused', 'credentials', 'relogin']).toContain(classify(reply))
      }
    })
  },
)
