import type { DataplaneFake } from 'drainable/testing/haproxy-dataplane'

/** Another program's write through the API, which needs a reload: a new backend. */
export async function addBackend(fake: DataplaneFake, name: string): Promise<void> {
  const { url, username, password } = fake
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  const headers = { authorization, 'content-type': 'application/json' }
  const ask = async (path: string, body?: object): Promise<string> => {
    const at = `${url}${path}`
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const response = await fetch(at, { headers, ...init })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`)
    return text
  }
  const v3 = await fetch(`${url}/v3/info`, { headers })
  await v3.arrayBuffer()
  const base = `/${v3.ok ? 'v3' : 'v2'}/services/haproxy/configuration`
  const version = Number((await ask(`${base}/version`)).trim())
  await ask(`${base}/backends?version=${version}`, { name, mode: 'http' })
}
