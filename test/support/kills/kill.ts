import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import {
  fileTickets,
  ready,
  restore,
  resumeDrain,
  startDrain,
  stepDrain,
  type DrainEvent,
  type DrainReport,
  type MemberRef,
  type MemberReport,
  type Ticket,
  type TicketStore,
} from 'drainable'
import { Balancer, type Fate } from './balancer.js'
import type { Children } from './children.js'
import { TICKET, type Story } from './wire.js'

/** How another process deals with what the killed one left. All of them end with an undo. */
export type Recovery = 'restore' | 'resume' | 'again' | 'steps' | 'ready'

export interface Kill {
  readonly story: Story
  /** 0: not at all. */
  readonly at: number
  readonly fate: Fate
  readonly recovery: Recovery
}

export interface Killed {
  readonly killed: boolean
  /** The points that were passed, the last one is where it was killed. */
  readonly points: readonly string[]
  /** What was found wrong. */
  readonly broken: readonly string[]
}

const MEMBERS = ['web1', 'web2', 'web3', 'web4'].map((member) => ({ pool: 'web', member }))
const [web1, web2] = MEMBERS as [(typeof MEMBERS)[0], (typeof MEMBERS)[0]]

/** Runs a child up to one point, takes over from its ticket, and judges what became of the members. */
export async function kill(
  { story, at, fate, recovery }: Kill,
  children: Children,
): Promise<Killed> {
  const instance = `fake-${randomUUID()}`
  const folder = join(children.folder, instance)
  const tickets = fileTickets(folder)
  await using balancer = new Balancer({ folder, instance, fate, ...WORK[story] })
  await prepare(story, balancer, tickets)
  const child = children.take()
  const killed = await child.run({ story, folder, instance, killAt: at }, (said, answer) =>
    balancer.hear(said, answer),
  )
  await balancer.done()
  const { points } = balancer
  const judge = new Judge(balancer, tickets, points, story)
  await judge.found(recovery)
  return { killed, points, broken: [...balancer.broken, ...judge.broken] }
}

/** What happens beside the drain. */
const WORK: Partial<Record<Story, { readonly busyUntil: number; readonly reloadAt?: number }>> = {
  action: { busyUntil: 4 },
  steps: { busyUntil: 4 },
  resume: { busyUntil: 4 },
  reload: { busyUntil: 7, reloadAt: 5 },
  abort: { busyUntil: 40 },
  restore: { busyUntil: 40 },
}

/** What there is before the child begins. */
async function prepare(story: Story, { lb }: Balancer, tickets: TicketStore): Promise<void> {
  // The fake lists the processes of a member that is gone only where they had work for it.
  if (story === 'removed') lb.occupy(web1)()
  if (story !== 'restore' && story !== 'resume' && story !== 'ready') return
  const run = startDrain(lb, web1, { timeout: '20s', settle: '0ms', tickets, id: TICKET })
  await run.inForce
  await run.release()
}

class Judge {
  readonly broken: string[] = []
  readonly #balancer: Balancer
  readonly #tickets: TicketStore
  readonly #points: readonly string[]
  readonly #story: Story

  constructor(balancer: Balancer, tickets: TicketStore, points: readonly string[], story: Story) {
    this.#balancer = balancer
    this.#tickets = tickets
    this.#points = points
    this.#story = story
  }

  async found(recovery: Recovery): Promise<void> {
    const { lb } = this.#balancer
    const ids = [...((await this.#tickets.keys?.()) as Iterable<string>)]
    const ticket = (await this.#tickets.get(TICKET)) as Ticket | undefined
    this.#check(ids.length === (ticket === undefined ? 0 : 1), `listed: ${ids.join(' ')}`)
    const held = MEMBERS.filter((ref) => lb.state(ref) === 'drain' || lb.state(ref) === 'maint')
    for (const { member } of held) {
      const known = ticket?.members.find(({ ref }) => ref.member === member)
      const says = known !== undefined && owes(known)
      this.#check(says, `${member} is held and no ticket says so`)
    }
    if (ticket === undefined) {
      this.#check(!this.#balancer.isLate, 'a change is under way and there is no ticket')
      return
    }
    this.#balancer.handOver()
    const unsure = ticket.members.filter((member) => this.#mayBeUnsure(member.ref.member, ticket))
    let report: DrainReport
    try {
      report = await this.#recover(recovery, ticket)
    } catch (error) {
      this.broken.push(`the recovery failed: ${String(error)}`)
      return
    }
    this.#check(!this.#balancer.isLate, 'it ended before what was late')
    for (const ref of MEMBERS) {
      const said = report.members.find((member) => member.ref.member === ref.member)
      const allowed = unsure.some((member) => member.ref.member === ref.member)
      this.#end(ref, said, allowed)
    }
    const left = MEMBERS.some((ref) => lb.state(ref) === 'drain' || lb.state(ref) === 'maint')
    const kept = [...((await this.#tickets.keys?.()) as Iterable<string>)]
    this.#check(!left || kept.length === 1, 'a member is left out and no ticket says so')
  }

  /** What became of a member is as it is said to be, and nothing is left out that is known to be ours. */
  #end(ref: MemberRef, said: MemberReport | undefined, mayBeUnsure: boolean): void {
    const state = this.#balancer.lb.state(ref)
    const words = `${ref.member} is ${state}, said: ${said?.outcome} ${said?.error?.message ?? ''}`
    if (state === 'gone')
      this.#check(said?.outcome === 'gone' || said?.outcome === 'removed', words)
    else if (state === 'ready')
      this.#check(said === undefined || said.outcome === 'restored', words)
    else this.#check(mayBeUnsure && said?.error !== undefined && said.outcome !== 'restored', words)
  }

  /** The first hold of a member was sent, and no ticket was written since its answer. */
  #mayBeUnsure(member: string, ticket: Ticket): boolean {
    const known = ticket.members.find(({ ref }) => ref.member === member)
    if (known !== undefined && known.set !== null) return false
    const sent = this.#points.findLastIndex((point) => isSent(point, member))
    if (sent < 0) return false
    const after = this.#points.slice(sent)
    const answered = after.findIndex((point) => point.startsWith('apply end'))
    if (answered < 0) return true
    const begun = after.indexOf('set', answered)
    return begun < 0 || !after.includes('set end', begun)
  }

  async #recover(recovery: Recovery, ticket: Ticket): Promise<DrainReport> {
    const { lb } = this.#balancer
    const tickets = this.#tickets
    const onEvent = (event: DrainEvent): void => {
      if (event.type === 'idle') this.#balancer.judgeIdle(event.ref)
    }
    switch (recovery) {
      case 'restore':
        return restore(lb, ticket, { tickets })
      case 'resume': {
        const run = resumeDrain(lb, ticket, { tickets, onEvent })
        this.#idle(await run.done)
        await run.release()
        return restore(lb, await run.ticket, { tickets })
      }
      case 'again': {
        const target = this.#story === 'group' ? [web1, web2] : web1
        const policy = { timeout: '20s', settle: '0ms', tickets, id: TICKET, onEvent } as const
        await using run = startDrain(lb, target, policy)
        this.#idle(await run.done)
        return await run.restore()
      }
      case 'steps': {
        let step = await stepDrain(lb, ticket, { onEvent })
        while (step.outcome === undefined) {
          if (step.againIn > 0) await new Promise((resolve) => setTimeout(resolve, step.againIn))
          step = await stepDrain(lb, step.ticket, { onEvent })
        }
        this.#check(step.outcome === 'idle', `the steps ended ${step.outcome}`)
        return restore(lb, step.ticket, { tickets })
      }
      case 'ready':
        await ready(lb, web1)
        return restore(lb, ticket, { tickets })
      default:
        return recovery satisfies never
    }
  }

  #idle({ outcome, members, error }: DrainReport): void {
    // A process that ended with work takes the proof with it, and the report says so.
    const verified = members.every(({ verifiedIdle, lost }) => verifiedIdle || lost.length > 0)
    const fine =
      (outcome === 'idle' && verified) || (this.#story === 'removed' && outcome !== 'timeout')
    const reason = error ?? members.find((member) => member.error !== undefined)?.error
    this.#check(fine, `the drain went on and ended ${outcome}: ${reason?.message ?? ''}`)
  }

  #check(fine: boolean, broken: string): void {
    if (!fine) this.broken.push(broken)
  }
}

/** Whether a ticket says that a member is, or may be, held by us. */
function owes({ set, earlier, doubted, intended, late }: Ticket['members'][number]): boolean {
  return set !== null || intended !== null || earlier.length + doubted.length + late.length > 0
}

function isSent(point: string, member: string): boolean {
  return point.startsWith('apply sent') && point.includes(`${member}:`)
}
