import type { DataplaneFake } from 'drainable/testing/haproxy-dataplane'

/** Another program's write through the API, which needs a reload: a new backend. */
export function addBackend(fake: DataplaneFake, name: string): Promise<void> {
  return post(fake, () => 'backends', { name, mode: 'http' })
}

/** The same: a new server, where its backend has a `default-server`. */
export function addServer(fake: DataplaneFake, pool: string, name: string): Promise<void> {
  const line = { name, address: '127.0.0.1', port: 8_009 }
  return post(fake, (v3) => (v3 ? `backends/${pool}/servers` : `servers?backend=${pool}`), line)
}

async function post(
  fake: DataplaneFake,
  pathOf: (v3: boolean) => string,
  line: object,
): Promise<void> {
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
  const path = pathOf(v3.ok)
  const mark = path.includes('?') ? '&' : '?'
  await ask(`${base}/${path}${mark}version=${version}`, line)
}
