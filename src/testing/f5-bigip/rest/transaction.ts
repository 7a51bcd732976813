import { Config } from '../device/config.js'
import { link, ok, word, type Call } from './call.js'
import { configError, Refusal, type Answer } from './replies.js'
import type { Transaction } from '../device/unit.js'

const TIMEOUT = 30

/** `/mgmt/tm/transaction...`: opened, filled by requests that carry its number, then validated. */
export function transactions(
  call: Call,
  run: (method: string, uri: string, body: unknown) => Answer,
): Answer | undefined {
  const [, , id, sub] = call.segments
  if (id === undefined) {
    if (call.method !== 'POST') return undefined
    const made: Transaction = {
      id: Number(`17${String(Date.now()).slice(-8)}`) + call.unit.transactions.size,
      until: Date.now() + TIMEOUT * 1_000,
      state: 'STARTED',
      commands: [],
    }
    call.unit.transactions.set(made.id, made)
    return ok(state(call, made))
  }
  const found = openTransaction(call, id)
  if (sub === 'commands')
    return ok({ kind: 'tm:transaction:commandscollectionstate', items: found.commands })
  if (call.method === 'GET') return ok(state(call, found))
  if (call.method === 'DELETE') {
    call.unit.transactions.delete(found.id)
    return { status: 200 }
  }
  if (call.method !== 'PATCH') return undefined
  if (word(call, 'state') !== 'VALIDATING') {
    throw configError(400, `invalid property value "state":"${word(call, 'state') ?? ''}"`)
  }
  commit(call, found, run, call.body['validateOnly'] === true)
  return ok(state(call, found))
}

/** Holds a request back for its transaction and answers with its place in the order. */
export function enqueue(call: Call, id: string, uri: string): Answer {
  const found = openTransaction(call, id)
  found.commands.push({ method: call.method, uri, body: call.body })
  return ok({
    method: call.method,
    uri: `https://localhost${uri}`,
    body: call.body,
    evalOrder: found.commands.length,
    commandId: found.commands.length,
    kind: 'tm:transaction:commandsstate',
    selfLink: link(call, `tm/transaction/${found.id}/commands/${found.commands.length}`),
  })
}

function openTransaction(call: Call, id: string): Transaction {
  const found = call.unit.transactions.get(Number(id))
  if (found === undefined || found.state !== 'STARTED' || found.until < Date.now()) {
    throw configError(404, `there is no transaction ${id}`)
  }
  return found
}

/** All or nothing: a command that is refused undoes those before it. */
function commit(
  call: Call,
  found: Transaction,
  run: (method: string, uri: string, body: unknown) => Answer,
  validateOnly: boolean,
): void {
  const { config } = call.unit
  const before = new Config()
  before.copyFrom(config)
  try {
    for (const { method, uri, body } of found.commands) run(method, uri, body)
    if (validateOnly) config.copyFrom(before)
    else found.state = 'COMPLETED'
  } catch (error) {
    config.copyFrom(before)
    found.state = 'FAILED'
    if (!(error instanceof Refusal)) throw error
    const reply = error.answer.json as { message?: string } | undefined
    throw configError(error.answer.status, `transaction failed:${reply?.message ?? ''}`, 2)
  }
}

function state(call: Call, of: Transaction): object {
  return {
    transId: of.id,
    state: of.state,
    timeoutSeconds: TIMEOUT,
    asyncExecution: false,
    validateOnly: false,
    executionTimeout: 300,
    executionTime: 0,
    failureReason: '',
    kind: 'tm:transactionstate',
    selfLink: link(call, `tm/transaction/${of.id}`),
  }
}
