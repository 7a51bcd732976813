import { describe, expect, test } from 'vitest'
import { isAtLeast, parseVersion } from '../../../src/kit/version.js'

describe('a version', () => {
  test.each([
    ['15.1.10', [15, 1, 10], '15.1.10'],
    ['2.6.12-1+deb12u4', [2, 6, 12], '2.6.12-1+deb12u4'],
    ['3.4-dev1', [3, 4, 0], '3.4-dev1'],
    ['v3.2.13 a1b2c3d', [3, 2, 13], '3.2.13'],
    ['0ab1/1.39.3-dev/Clean/RELEASE/BoringSSL', [1, 39, 3], '1.39.3-dev'],
  ])('%s', (text, [major, minor, patch], whole) => {
    expect(parseVersion(text)).toEqual({ major, minor, patch, text: whole })
  })

  test.each(['nginx', '', '17', 'x1.2.3', `${'a'.repeat(300)} 1.2.3`])(
    'is undefined for %j',
    (text) => {
      expect(parseVersion(text)).toBeUndefined()
    },
  )

  test('is compared by numbers', () => {
    const version = parseVersion('1.39.3')!
    const later: [number, number, number?][] = [
      [1, 39, 4],
      [1, 40],
      [2, 0],
    ]
    const not: [number, number, number?][] = [
      [1, 39, 3],
      [1, 9, 12],
      [0, 99],
    ]
    expect(later.filter((other) => isAtLeast(version, ...other))).toEqual([])
    expect(not.filter((other) => !isAtLeast(version, ...other))).toEqual([])
  })
})
