import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'

/** A bare answer of the fake, as a client without any library sees it. */
export interface Answer {
  readonly status: number
  readonly text: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly json: Record<string, unknown>
}

/** Sends one request as it stands, and takes whatever comes. */
export function send(
  fake: { readonly url: string; readonly ca: string },
  line: string,
  body?: unknown,
  headers: Record<string, string> = { 'X-NITRO-USER': 'admin', 'X-NITRO-PASS': 'secret' },
): Promise<Answer> {
  const [method = 'GET', path = '/'] = line.split(' ')
  const url = new URL(`${fake.url}/nitro/v1${path}`)
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest
  const text = typeof body === 'string' ? body : body === undefined ? '' : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const call = request(
      url,
      {
        method,
        ca: fake.ca,
        agent: false,
        headers: { 'content-type': 'application/json', ...headers },
      },
      (reply) => {
        const chunks: Buffer[] = []
        reply.on('data', (chunk: Buffer) => chunks.push(chunk))
        reply.on('error', reject)
        reply.on('end', () => {
          const answer = Buffer.concat(chunks).toString('utf8')
          let json: Record<string, unknown> = {}
          try {
            json = JSON.parse(answer) as Record<string, unknown>
          } catch {
            // Empty bodies and HTML are answers too.
          }
          resolve({
            status: reply.statusCode ?? 0,
            text: answer,
            headers: { ...reply.headers },
            json,
          })
        })
      },
    )
    call.on('error', reject)
    call.end(text)
  })
}

/** The rows of a reply. */
export function rows(answer: Answer, type: string): Record<string, unknown>[] {
  return (answer.json[type] ?? []) as Record<string, unknown>[]
}
