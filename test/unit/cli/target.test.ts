import { describe, expect, test } from 'vitest'
import { parseTargets } from '../../../src/cli/target.js'

describe('a target', () => {
  test.each([
    ['web/web1', { pool: 'web', member: 'web1' }],
    ['web/', { pool: 'web' }],
    ['10.0.0.7', { address: '10.0.0.7' }],
    ['10.0.0.7:8080', { address: '10.0.0.7', port: 8080 }],
    ['2001:db8::1', { address: '2001:db8::1' }],
    ['[2001:db8::1]:80', { address: '2001:db8::1', port: 80 }],
    ['web/10.0.0.7:80', { pool: 'web', member: '10.0.0.7:80' }],
    ['/Common/web/10.0.0.7:80', { pool: '/Common/web', member: '10.0.0.7:80' }],
    ['/Common/web//Common/10.0.0.7:80', { pool: '/Common/web', member: '/Common/10.0.0.7:80' }],
    ['web//run/app.sock', { pool: 'web', member: '/run/app.sock' }],
  ])('%s is read', (text, expected) => {
    expect(parseTargets([text])).toEqual(expected)
  })

  test('several members are a list', () => {
    expect(parseTargets(['web/a', 'web/b'])).toEqual([
      { pool: 'web', member: 'a' },
      { pool: 'web', member: 'b' },
    ])
  })

  test('a pool of a roll needs no slash', () => {
    expect(parseTargets(['web'], { poolAlone: true })).toEqual({ pool: 'web' })
    expect(() => parseTargets(['web'])).toThrow("'web' is no member, pool or address")
  })

  test.each([
    ['east:web/web1', { pool: 'web', member: 'web1', balancer: 'east' }],
    ['east:10.0.0.7:80', { address: '10.0.0.7', port: 80, balancer: 'east' }],
    ['north:web/web1', { pool: 'north:web', member: 'web1' }],
  ])('of one of several balancers has its name before it: %s', (text, expected) => {
    expect(parseTargets([text], { balancers: ['east', 'west'] })).toEqual(expected)
  })

  test('a pool beside members is refused', () => {
    expect(() => parseTargets(['web/a', 'api/'])).toThrow(
      "'api/' is no member, and beside another target only a member can stand",
    )
  })

  test.each(['', '/', 'web', '10.0.0.7:0', '10.0.0.7:70000'])("'%s' is refused", (text) => {
    expect(() => parseTargets([text])).toThrow(/the target: .*expected/)
  })
})
