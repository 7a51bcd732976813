import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  isLineTooLong,
  isWorkerGone,
  ReplySplitter,
  splitChange,
  splitReplies,
} from '../../../src/adapters/haproxy-runtime/codec/replies.js'

const FIXTURES = new URL('../../fixtures/haproxy-runtime/', import.meta.url)

/** Recorded replies that end with an empty line. */
function recorded(): { name: string; text: string }[] {
  return ['2.6.12', '3.0.11', '3.2.26'].flatMap((version) =>
    readdirSync(new URL(`${version}/`, FIXTURES))
      .filter((file) => /^(show-(stat-csv|stat-queue|servers|info|version)|master-show)/.test(file))
      .map((file) => ({
        name: `${version}/${file}`,
        text: readFileSync(new URL(`${version}/${file}`, FIXTURES), 'utf8'),
      })),
  )
}

describe('framing of replies', () => {
  it.each([
    'HTTP/1.1 400 Bad request\r\nContent-length: 90\r\n\r\n<html>',
    '<html><body><h1>400 Bad request</h1>',
  ])('names an HTTP server behind the address: %j', (text) => {
    expect(() => splitReplies(text, 6)).toThrow(/an HTTP server answers there: expected the 'stats/)
  })

  it.each(recorded())('$name: whole, byte by byte, and followed by the next reply', ({ text }) => {
    expect(text.endsWith('\n\n')).toBe(true)
    const body = text.slice(0, -2)
    expect(new ReplySplitter().push(text)).toEqual([body])
    const slow = new ReplySplitter()
    expect(Array.from(text).flatMap((byte) => slow.push(byte))).toEqual([body])
    expect(splitReplies(`${text}\n${text}admin\n\n`, 4)).toEqual([body, '', body, 'admin'])
    expect(() => splitReplies(text.slice(0, -1), 1)).toThrow(/after 0 of 1 replies/)
  })

  // As 2.6.12 answers where a check has `on-error "body %[res.body]"`.
  it.each(['"body a\n\n""b,"', '"\n\n\n"', '"a\n\n","!""\n\n"', '"a\n"'])(
    'takes an empty line in a cell of show stat for a part of it: %j',
    (cell) => {
      const stat = `# pxname,svname,last_chk,\nweb,s1,${cell},\nweb,s2,,`
      const text = `${stat}\n\n\n${stat}\n\n`
      expect(splitReplies(text, 3)).toEqual([stat, '', stat])
      const slow = new ReplySplitter()
      expect(Array.from(text).flatMap((byte) => slow.push(byte))).toEqual([stat, '', stat])
      for (let cut = 0; cut < stat.length + 2; cut += 1)
        expect(() => splitReplies(text.slice(0, cut), 1)).toThrow(/after 0 of 1 replies/)
    },
  )

  it('takes a quote in any other reply for a letter', () => {
    expect(splitReplies('a "b\n\nc\n\n', 2)).toEqual(['a "b', 'c'])
  })

  it('finds every reply in any chunks', () => {
    const reply = fc
      .array(fc.string({ minLength: 1, unit: fc.constantFrom('a', ',', ' ', '#', '1') }), {
        maxLength: 5,
      })
      .map((lines) => lines.join('\n'))
    fc.assert(
      fc.property(fc.array(reply), fc.array(fc.nat({ max: 7 })), (replies, cuts) => {
        const text = replies.map((body) => (body === '' ? '\n' : `${body}\n\n`)).join('')
        const splitter = new ReplySplitter()
        const found: string[] = []
        let at = 0
        for (const cut of cuts) {
          found.push(...splitter.push(text.slice(at, at + cut)))
          at += cut
        }
        found.push(...splitter.push(text.slice(at)))
        expect(found).toEqual(replies)
        expect(splitter.rest).toBe('')
      }),
    )
  })

  it('takes a reply to a change that ends with one newline (2.6)', () => {
    const info = 'Pid: 1\n\n'
    expect(splitChange(`${info}No such server.\n`, 1)).toEqual({
      info: 'Pid: 1',
      reply: 'No such server.',
    })
    expect(splitChange(`${info}\n\nNo such server.\n\n`, 3).reply).toBe('No such server.')
    expect(splitChange(`${info}\n`, 1).reply).toBe('')
  })

  it.each(['', 'Pid: 1', 'Pid: 1\n', 'Pid: 1\n\n', 'Pid: 1\n\n\n', 'Pid: 1\n\n\nNo such'])(
    'loses a truncated answer to two changes: %j',
    (text) => {
      expect(() => splitChange(text, 2)).toThrow(
        expect.objectContaining({ code: 'CONNECTION_LOST', retryable: true }),
      )
    },
  )

  it('says how many replies are missing, and never invents one', () => {
    expect(() => splitReplies('admin\n\n', 2)).toThrow(
      expect.objectContaining({
        code: 'CONNECTION_LOST',
        message: expect.stringContaining('1 of 2') as unknown,
      }),
    )
    expect(() => splitReplies('', 1)).toThrow(expect.objectContaining({ code: 'CONNECTION_LOST' }))
  })

  it('knows the two replies that end a conversation early', () => {
    expect(isWorkerGone("Can't find the target PID matching the prefix '@!99999'\n")).toBe(true)
    expect(isWorkerGone('admin\n\n')).toBe(false)
    expect(isLineTooLong('The command line is too big for the buffer size. Please chan')).toBe(true)
  })
})
