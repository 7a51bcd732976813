/**
 * A list of ids in a store that can't list its keys, kept by any number of processes that know nothing
 * of each other and have get, set and delete, no compare-and-set.
 *
 * One shared list loses ids: two writers read it, both add theirs, the second write undoes the first.
 * So each writer has a list of its own, at a node of a binary tree that no other writer has. Readers
 * walk the tree.
 *
 * A node is taken by a splitter (Lamport 1987; Moir and Anderson 1995) of two keys, `last` and `door`: a
 * writer writes its name as the last to come; if the door is open it shuts it; if it is still the last
 * then, the node is its own. At most one writer takes a node. Any other goes on to one of the two nodes
 * below, drawn at random, so that few meet again. A node without `last` has nothing below it.
 *
 * A writer that finds no node down to the lowest level begins the next tree and clears the full one away.
 * It marks the full tree `shut`, takes over the ids in it whose tickets are still there, and deletes its
 * nodes. After each ticket it has written, a writer looks whether its tree is shut, and moves if so.
 *
 * Why nothing is lost: either the writer sees the mark, or the mark came after its ticket and its list,
 * and both are found by who clears. A list is in a later tree before it is deleted here, and readers go
 * from tree to tree in that order and read the mark of each after its nodes, so they meet one of the two.
 *
 * Guaranteed: a ticket whose save has resolved is listed until it is dropped, whichever process crashes,
 * stalls or reads meanwhile. Needed for it: a get sees each set that resolved before it began, and a get
 * that fails rejects. Keyv can answer a failed get with "nothing there". A writer whose node another one
 * has taken for that notices it at its next save, and moves; but one such get while a full tree is cleared
 * away can lose an id.
 *
 * What stays for good is the mark of each tree: one small key for some 130 writers.
 */

import { randomInt, randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { DrainableError } from '../../provider/error.js'
import { holdsTicket } from './listing.js'
import { isDamaged, type StoreCalls } from './calls.js'
import { isTicketId, parseStored } from './store.js'

/** Beginning of our keys. No id has a `=`; see `isTicketId`. */
const PREFIX = 'drainable='

/** Levels of a tree. All processes of a store must agree. */
const LEVELS = 9

/** How many trees are looked at: a store with more of them answers every key. */
const MOST_TREES = 100_000

/** How many times in all a list may be missing right after it was written. */
const MOST_FAILURES = 3

/** The root is node 1; below node n are 2n and 2n + 1. */
interface Place {
  readonly tree: number
  readonly node: number
}

/** What became of our list: it is as we wrote it; its tree is full; another writer has its node. */
type Standing = 'kept' | 'shut' | 'lost'

/** What one writer of the index knows between its calls. */
export class IndexWriter {
  readonly name = randomUUID()
  readonly ids = new Set<string>()
  place: Place | undefined
  /** What our node should list. */
  written: readonly string[] = []
  turn: Promise<void> = Promise.resolve()
}

/** One writer of the index, and a reader of it. */
export class TicketIndex {
  readonly #calls: Pick<StoreCalls, 'get' | 'set' | 'delete'>
  readonly #writer: IndexWriter
  readonly #levels: number
  readonly #draw: () => number

  /**
   * @param draw - 0 or 1: where to go on from a node that another writer has
   * @param writer - of earlier calls of this process
   */
  constructor(
    calls: Pick<StoreCalls, 'get' | 'set' | 'delete'>,
    levels = LEVELS,
    draw: () => number = () => randomInt(2),
    writer = new IndexWriter(),
  ) {
    this.#calls = calls
    this.#writer = writer
    this.#levels = levels
    this.#draw = draw
  }

  /**
   * Lists an id. To be called after each write of its ticket: when it resolves, the id is where readers
   * look.
   *
   * @throws what the store threw, or `TICKET_INVALID` where it does not keep what it is given
   */
  add(id: string): Promise<void> {
    return this.#inTurn(async () => {
      const standing = await this.#check()
      if (standing === 'kept' && this.#writer.ids.has(id)) return
      this.#writer.ids.add(id)
      await this.#publish(standing)
    })
  }

  /** Forgets an id, after its ticket was deleted. */
  remove(id: string): Promise<void> {
    return this.#inTurn(async () => {
      if (!this.#writer.ids.delete(id)) return
      const standing = await this.#check()
      if (standing === 'kept') await this.#write()
      else if (this.#writer.ids.size > 0) await this.#publish(standing)
    })
  }

  /** Ids that writers have listed; the tickets of some may be gone. */
  async ids(): Promise<Set<string>> {
    const found = new Set<string>()
    for await (const tree of this.#trees()) {
      for (const id of await this.#idsIn(tree)) found.add(id)
      // Last: if a node was deleted while we read, the mark is there by now.
      if (!(await this.#isShut(tree))) break
    }
    return found
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.#writer.turn.catch(() => undefined).then(work)
    this.#writer.turn = turn
    return turn
  }

  /**
   * Writes our list to a place where it is kept: the one it has, if it may stay. A list that came to a
   * full tree after that was cleared away would stay there for good, so it goes once the new one is kept.
   */
  async #publish(found: Standing): Promise<void> {
    const left: Place[] = []
    for (let standing = found, failures = 0; failures < MOST_FAILURES;) {
      if (standing === 'shut' && this.#writer.place !== undefined) left.push(this.#writer.place)
      if (standing !== 'kept') this.#writer.place = undefined
      const full = this.#writer.place === undefined ? await this.#claim() : []
      await this.#write()
      standing = await this.#check()
      if (standing === 'kept') {
        // What we can't clear away now, a later writer does.
        await this.#clear(full, left).catch(() => undefined)
        return
      }
      if (standing === 'lost') failures += 1
    }
    throw notKept()
  }

  /** Takes a place, and takes over what is listed in full trees before it. Answers with those trees. */
  async #claim(): Promise<readonly number[]> {
    const full: number[] = []
    let place: Place | undefined
    for await (const tree of this.#trees()) {
      if (!(await this.#isShut(tree))) place = await this.#descend(tree)
      if (place !== undefined) break
      full.push(tree)
    }
    for (const tree of full) {
      await this.#set(shutKey(tree), { shut: true })
      for (const id of await this.#idsIn(tree)) this.#writer.ids.add(id)
    }
    const [mark] = full
    if (mark !== undefined) await this.#forgetGone(mark)
    this.#writer.place = place // not before: readers come here only by way of trees that are shut
    return full
  }

  /** Forgets ids without a ticket. While a store finds nothing at all it does not find the mark either. */
  async #forgetGone(shut: number): Promise<void> {
    const ids = [...this.#writer.ids]
    const held = await Promise.all(ids.map((id) => holdsTicket(this.#calls, id)))
    if (!(await this.#isShut(shut))) throw notKept()
    for (const [n, id] of ids.entries()) if (held[n] === false) this.#writer.ids.delete(id)
  }

  async #descend(tree: number): Promise<Place | undefined> {
    for (let node = 1; node < 2 ** this.#levels; node = 2 * node + this.#draw()) {
      if (await this.#capture({ tree, node })) return { tree, node }
    }
    return undefined
  }

  async #capture(place: Place): Promise<boolean> {
    const last = keyOf(place, 'last')
    const door = keyOf(place, 'door')
    if ((await this.#read(door)) !== undefined) return false
    await this.#set(last, { writer: this.#writer.name }, place.tree)
    if ((await this.#read(door)) !== undefined) return false
    await this.#set(door, { shut: true }, place.tree)
    return isDeepStrictEqual(await this.#read(last), { writer: this.#writer.name })
  }

  /** Deletes trees whose ids are listed with us by now, and lists of ours in trees that others cleared away. */
  async #clear(trees: readonly number[], left: readonly Place[]): Promise<void> {
    for (const place of left) await this.#calls.delete(keyOf(place, 'ids'))
    const last = trees.at(-1)
    if (last === undefined) return
    for (const tree of trees) await this.#clearBelow({ tree, node: 1 })
    await this.#calls.set(FLOOR_KEY, { tree: last + 1 })
  }

  /** From the lowest nodes up, so that a later writer finds those that are left. */
  async #clearBelow(place: Place): Promise<void> {
    if (!(await this.#isEntered(place))) return
    await Promise.all(this.#below(place).map((next) => this.#clearBelow(next)))
    await Promise.all([
      this.#calls.delete(keyOf(place, 'ids')),
      this.#calls.delete(keyOf(place, 'door')),
    ])
    await this.#calls.delete(keyOf(place, 'last'))
  }

  async #write(): Promise<void> {
    if (this.#writer.place === undefined) return
    const key = keyOf(this.#writer.place, 'ids')
    this.#writer.written = [...this.#writer.ids]
    if (this.#writer.written.length === 0) await this.#calls.delete(key)
    else await this.#calls.set(key, { ids: this.#writer.written })
  }

  /** Whether our list is as we wrote it, in a tree that is not shut. */
  async #check(): Promise<Standing> {
    if (this.#writer.place === undefined) return 'lost'
    if (await this.#isShut(this.#writer.place.tree)) return 'shut'
    const ids = await this.#idsAt(this.#writer.place)
    return isDeepStrictEqual(ids, this.#writer.written) ? 'kept' : 'lost'
  }

  /**
   * Numbers of trees, from the first that is not cleared away on. That number is written in any order, so
   * it may be too low: then trees that are shut and empty come first.
   */
  async *#trees(): AsyncGenerator<number, void, undefined> {
    const floor = (await this.#read(FLOOR_KEY)) as { tree?: unknown } | undefined
    const first = Number.isSafeInteger(floor?.tree) ? (floor?.tree as number) : 0
    for (let tree = first; tree < first + MOST_TREES; tree += 1) yield tree
    throw notKept()
  }

  async #idsIn(tree: number, node = 1): Promise<string[]> {
    const place = { tree, node }
    if (!(await this.#isEntered(place))) return []
    const below = this.#below(place).map((next) => this.#idsIn(tree, next.node))
    return (await Promise.all([this.#idsAt(place), ...below])).flat()
  }

  async #idsAt(place: Place): Promise<string[]> {
    const list = (await this.#read(keyOf(place, 'ids'))) as { ids?: unknown } | undefined
    if (!Array.isArray(list?.ids)) return []
    return list.ids.filter((id): id is string => typeof id === 'string' && isTicketId(id))
  }

  #below({ tree, node }: Place): readonly Place[] {
    if (2 * node >= 2 ** this.#levels) return []
    return [
      { tree, node: 2 * node },
      { tree, node: 2 * node + 1 },
    ]
  }

  async #isEntered(place: Place): Promise<boolean> {
    return (await this.#read(keyOf(place, 'last'))) !== undefined
  }

  async #isShut(tree: number): Promise<boolean> {
    return (await this.#read(shutKey(tree))) !== undefined
  }

  /** Sets a key, and sees that it is there. A key of a tree may be cleared away at once with the tree. */
  async #set(key: string, value: object, tree?: number): Promise<void> {
    await this.#calls.set(key, value)
    if ((await this.#read(key)) !== undefined) return
    if (tree === undefined || !(await this.#isShut(tree))) throw notKept()
  }

  /** What is stored under a key of ours: `undefined` for nothing, `{}` for what can't be read. */
  async #read(key: string): Promise<object | undefined> {
    let value: unknown
    try {
      value = await this.#calls.get(key)
    } catch (error) {
      if (isDamaged(error)) return {}
      throw error
    }
    if (value === undefined || value === null) return undefined
    const read = parseStored(value)
    return typeof read === 'object' && read !== null ? read : {}
  }
}

const FLOOR_KEY = `${PREFIX}floor`

function shutKey(tree: number): string {
  return `${PREFIX}${tree}.shut`
}

function keyOf({ tree, node }: Place, name: 'last' | 'door' | 'ids'): string {
  return `${PREFIX}${tree}.${node}.${name}`
}

function notKept(): DrainableError {
  return new DrainableError(
    'TICKET_INVALID',
    `the ticket store did not keep the list of tickets under '${PREFIX}', check that it can write`,
  )
}
