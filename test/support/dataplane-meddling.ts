import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** In front of a fake: another client does something between a request like this and its answer. */
export async function meddling(
  target: string,
  match: RegExp,
  meddle: () => Promise<void>,
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
      if (match.test(`${method} ${request.url ?? ''}`)) await meddle()
      response.writeHead(reply.status, {
        'content-type': 'application/json',
        'configuration-version': reply.headers.get('configuration-version') ?? '',
      })
      response.end(text)
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
