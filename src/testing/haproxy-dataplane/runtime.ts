import { ok, refuse, type Answer } from './answer.js'
import { invalid, readBody, target, textOf, type Api, type Call } from './call.js'
import { command, runtimeServers } from './runtime-view.js'

const ADMIN = ['ready', 'maint', 'drain']
const OPERATIONAL = ['up', 'down', 'stopping']

/** Servers of a backend. One that is not there looks like a HAProxy that is not there. */
export async function list(api: Api, call: Call): Promise<Answer> {
  const { backend } = target(api, call)
  const servers = await runtimeServers(api.cli, api.generation, backend)
  if (servers !== undefined) return ok(servers)
  if (api.generation.tree === 'v2') return ok([])
  refuse(api.generation.early ? 500 : 404, `no data for ${backend}: not found`)
}

export async function one(api: Api, call: Call): Promise<Answer> {
  return ok(await find(api, call, 404))
}

/** Sends only what differs from what was read, so 200 is no proof. */
export async function replace(api: Api, call: Call): Promise<Answer> {
  const { backend, server } = target(api, call)
  const body = readBody(api, call.text)
  const admin = textOf(body['admin_state'])
  const operational = textOf(body['operational_state'])
  if (admin !== undefined && !ADMIN.includes(admin)) {
    invalid(api, `admin_state in body should be one of [${ADMIN.join(' ')}]`, 606)
  }
  if (operational !== undefined && !OPERATIONAL.includes(operational)) {
    invalid(api, `operational_state in body should be one of [${OPERATIONAL.join(' ')}]`, 606)
  }
  if (/\s/.test(backend)) {
    // passed through to the command line as it is
    await command(api.cli, `set server ${backend}/${server} state ${admin ?? ''}`)
  }
  const found = await find(api, call, api.generation.early ? 500 : 404)
  const at = `${backend}/${server}`
  if (operational !== undefined && operational !== found['operational_state']) {
    await command(api.cli, `set server ${at} health ${operational}`)
  }
  if (admin !== undefined && admin !== found['admin_state']) {
    await command(api.cli, `set server ${at} state ${admin}`)
  }
  if (api.generation.chi) {
    const { weight, address, port } = body
    if (weight !== undefined && weight !== found['weight']) {
      await command(api.cli, `set server ${at} weight ${Number(weight)}`)
    }
    if (address !== undefined && (address !== found['address'] || port !== found['port'])) {
      await command(api.cli, `set server ${at} addr ${textOf(address) ?? ''} port ${Number(port)}`)
    }
  }
  return ok(await find(api, call, 404))
}

export async function add(api: Api, call: Call): Promise<Answer> {
  const { backend } = target(api, call)
  const body = readBody(api, call.text)
  const { name, address, port, check, weight } = body
  if (typeof name !== 'string' || name === '') refuse(400, 'the new server must have a name')
  if (api.generation.tree === 'v2' && address === undefined) return ok(body, 201)
  const where =
    address === undefined
      ? ''
      : `${textOf(address) ?? ''}${port === undefined ? '' : `:${Number(port)}`}`
  const words = [
    `add server ${backend}/${name} `,
    where,
    // seen with 2.9.25: without a check it is open at once
    ...(check === 'enabled' ? ['check'] : api.generation.tree === 'v2' ? ['enabled'] : []),
    ...(typeof weight === 'number' && api.generation.tree === 'v3' ? [`weight ${weight}`] : []),
  ]
  await command(api.cli, words.join(' '))
  return ok(body, 201)
}

/** Puts the server into maint, then deletes it; where that is refused it stays in maint. */
export async function remove(api: Api, call: Call): Promise<Answer> {
  const { backend, server } = target(api, call)
  await find(api, call, 404)
  await command(api.cli, `set server ${backend}/${server} state maint`)
  await command(api.cli, `del server ${backend}/${server}`)
  return { status: 204 }
}

async function find(api: Api, call: Call, missing: number): Promise<Record<string, unknown>> {
  const { backend, server } = target(api, call)
  const servers = await runtimeServers(api.cli, api.generation, backend)
  const found = servers?.find(({ name }) => name === server)
  return found ?? refuse(missing, `no data for ${backend}/${server}: not found`)
}
