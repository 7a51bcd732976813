import { describe, expect, test } from 'vitest'
import { ReceiptBook } from '../../../src/adapters/envoy/sources/receipts.js'

describe('receipts', () => {
  test('are pending, acked, nacked with the words, or disconnected', () => {
    let now = 0
    const book = new ReceiptBook(() => now)
    const stream = {}
    book.subscribe(stream, 'n1', undefined, 'web')
    book.sent(stream, 'web', 1)
    expect(book.of('web')).toMatchObject([{ node: 'n1', state: 'pending' }])
    now = 5
    book.acked(stream, 'web', 1)
    expect(book.of('web')[0]?.state).toBe('acked')
    expect(book.of('web')[0]?.ackedAt(1)).toBe(5)
    expect(book.of('web')[0]?.ackedAt(2)).toBeUndefined()
    book.sent(stream, 'web', 2)
    expect(book.of('web')[0]?.state).toBe('pending')
    book.nacked(stream, 'web', 2, 'bad weight')
    expect(book.of('web')[0]).toMatchObject({ state: 'nacked', error: 'bad weight' })
    book.gone(stream)
    expect(book.of('web')[0]?.state).toBe('disconnected')
    expect(book.isConnected('n1')).toBe(false)
  })

  test('of an earlier publication need no new proof by later ones', () => {
    let now = 0
    const book = new ReceiptBook(() => now)
    const stream = {}
    book.subscribe(stream, 'n1', undefined, 'web')
    for (let seq = 1; seq <= 5; seq++) {
      now = seq * 10
      book.sent(stream, 'web', seq)
      book.acked(stream, 'web', seq)
    }
    book.sent(stream, 'web', 6)
    expect(book.of('web')[0]?.ackedAt(2)).toBe(20)
    expect(book.of('web')[0]?.ackedAt(6)).toBeUndefined()
  })

  test('pass to the next stream of a node; two streams are two proxies', () => {
    const book = new ReceiptBook(() => 1)
    const [first, second, third] = [{}, {}, {}]
    book.subscribe(first, 'n1', undefined, 'web')
    book.acked(first, 'web', 1)
    book.gone(first)
    book.subscribe(second, 'n1', undefined, 'web')
    expect(book.of('web')[0]?.ackedAt(1)).toBe(1)
    book.subscribe(third, 'n1', undefined, 'web')
    expect(book.of('web')).toHaveLength(1)
    expect(book.of('web')[0]?.ackedAt(1)).toBeUndefined()
    book.gone(third)
    book.drop('n1')
    expect(book.of('web')[0]?.ackedAt(1)).toBe(1)
    book.unsubscribe(second, 'web')
    expect(book.of('web')).toEqual([])
  })
})
