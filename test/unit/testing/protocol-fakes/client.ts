import { request as plain } from 'node:http'
import { request as secure } from 'node:https'
import type { DrainableProvider, MemberRef } from 'drainable/provider'
import type { ProtocolFake } from 'drainable/testing'

/** What a client saw of one request. */
export interface Said {
  /** Whether an answer came and was not an error. */
  readonly ok: boolean
  readonly text: string
}

/** One product, as far as a test of its fake has to know it. One file a fake, named as its entry. */
export interface Subject {
  /** With the member of {@link Subject.ref} ready. */
  start(more?: object): Promise<ProtocolFake>
  readonly ref: MemberRef
  /** Sends the product's own command for a drain; where it has none, one that changes nothing. */
  change(fake: never): Promise<Said>
  /** Asks for something that is always answered the same. */
  read(fake: never): Promise<Said>
  /** Matches the line of the change, and no other. */
  readonly line: RegExp
  /** Whether the change was carried out; undefined where the product has none. */
  readonly isDone?: (fake: never) => boolean | Promise<boolean>
  /** What the product says where it is made to fail. */
  readonly words: RegExp
  /** A provider of it; from then on no change of that provider gets an answer. */
  deaf(fake: never): Promise<Deaf>
}

/** A provider whose changes get no answer, and a member of its balancer. */
export interface Deaf {
  readonly lb: DrainableProvider
  readonly ref: MemberRef
}

/** A client without a pool: each request has a connection of its own. It rejects where no whole answer comes. */
export function send(
  { url, ca = '' }: { readonly url: string; readonly ca?: string },
  line: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Said> {
  const [method = 'GET', path = '/'] = line.split(' ')
  return new Promise((resolve, reject) => {
    const secured = url.startsWith('https:')
    const options = { method, headers: { 'content-type': 'application/json', ...headers } }
    const sent = secured
      ? secure(`${url}${path}`, { ...options, ca, agent: false })
      : plain(`${url}${path}`, { ...options, agent: false })
    sent.on('error', reject)
    sent.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        resolve({ ok: response.statusCode === 200, text: Buffer.concat(chunks).toString() })
      })
    })
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

/** The header of HTTP's own login. */
export function basic({ username, password }: { username: string; password: string }) {
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` }
}
