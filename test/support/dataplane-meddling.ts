import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An answer in place of the fake's own. */
interface Answer {
  readonly status: number
  readonly body: unknown
}

/** In front of a fake: something happens between a request like this and its answer, or it gets another answer. */
export async function meddling(
  target: string,
  match: RegExp,
  meddle: () => Promise<void>,
  instead: () => Answer | undefined = () => undefined,
): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer((request, response) => {
    const pass = async (): Promise<void> => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const { authorization = '', 'content-type': type } = request.headers
      const method = request.method ?? 'GET'
      const reply = await fetch(`${target}${request.url ?? ''}`, {
        method,
        headers: { authorization, ...(type === undefined ? {} : { 'content-type': type }) },
        ...(chunks.length === 0 ? {} : { body: Buffer.concat(chunks) }),
      })
      const text = await reply.text()
      const isMeant = match.test(`${method} ${request.url ?? ''}`)
      if (isMeant) await meddle()
      const other = isMeant ? instead() : undefined
      response.writeHead(other?.status ?? reply.status, {
        'content-type': 'application/json',
        'configuration-version': reply.headers.get('configuration-version') ?? '',
      })
      response.end(other ? JSON.stringify(other.body) : text)
    }
    void pass()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
