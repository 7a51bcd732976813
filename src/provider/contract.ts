import type { Clock } from './clock.js'
import type { DrainableError } from './error.js'

/** The name of one member of one pool. `balancer` is the key given to `combineProviders`. */
export interface MemberRef {
  readonly pool: string
  readonly member: string
  readonly balancer?: string
}

/** Every member at an address; with a port, only members with that port. `balancer` as in {@link MemberRef}. */
export interface AddressTarget {
  readonly address: string
  readonly port?: number
  readonly balancer?: string
}

/**
 * The state that an operator or client sets for a member on the balancer.
 *
 * - `ready`: the member gets work
 * - `drain`: no new work, except from persistent clients
 * - `maint`: no new work at all
 */
export type AdminState = 'ready' | 'drain' | 'maint'

/** The result of the balancer's own health checks. `unchecked`: the balancer does not check this member. */
export type Health = 'up' | 'down' | 'unchecked' | 'unknown'

/** A plain JSON value. */
export type Json =
  null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** What the core passes to each provider call: the signal to stop it, and the clock. */
export interface CallContext {
  /** Ends the call at once; afterwards the call leaves no socket and no timer behind. */
  readonly signal: AbortSignal
  /** The clock for {@link LoadScope.sampledAt}. */
  readonly clock: Clock
  /** When the caller gives up, by the clock: a last try is made before, whatever pause the balancer asks for. */
  readonly until?: number
  /**
   * Takes the final result of one change of {@link DrainableProvider.apply} as soon as that change has ended, while
   * others of the call are still in progress; `index` is its position in the call. After a deadline or an abort in the
   * middle of the call, only changes without a reported result are unknown; on abort, the provider can report changes
   * that it has not sent as `rejected`. Calling it is optional: a provider that does so calls it once for each change,
   * and never after the call has ended. The array that `apply` returns is still the complete answer.
   */
  readonly result?: (index: number, result: ChangeResult) => void
}

/** What a raise to maint does to a member's established work. */
export type MaintEffect = 'gentle' | 'cuts' | 'unknown' | 'none'

/** What a product can do. The core asks once; the answer can depend on the product's version. */
export interface Capabilities {
  /** The admin states that the product knows. The core asks for no others. */
  readonly ladder: readonly AdminState[]
  /**
   * What a raise to maint does to established work: it is kept (`gentle`), cut (`cuts`), not known (`unknown`), or
   * the product has no maint (`none`). Unless it is `gentle`, the core raises only if the caller asked for it.
   * {@link PresentReading.maint} takes precedence.
   */
  readonly maint: MaintEffect
  /** Whether the product can cut the work left at a deadline. If `false`, `onTimeout: 'terminate'` is refused. */
  readonly terminate: boolean
  /** Whether the product can take a member out of its pool. If `false`, `until: 'removed'` is refused. */
  readonly remove: boolean
  /**
   * What a removal does to established work, or whether the product `refuses` it then. Under `onTimeout: 'remove'`
   * the core counts `cuts` and `unknown` as cut work, and cuts after a refusal. Default: `unknown`.
   */
  readonly removal?: 'keeps' | 'cuts' | 'refuses' | 'unknown'
  /**
   * Whether each removal reloads the balancer. The members of one call are then taken out together: once every one is
   * idle or has ended, or at the deadline. Default: `false`.
   */
  readonly removalReloads?: boolean
  /** Whether the product can add a member to a pool. */
  readonly add: boolean
  /**
   * What {@link LoadScope.active} counts. `none`: the product counts nothing. A drain is then never verified idle and
   * ends by {@link LoadScope.released}, or by time. `active` and `queued` must be 0: the core treats a `released`
   * process with other numbers as unread.
   */
  readonly counts: 'requests' | 'connections' | 'none'
  /** How old a count can be when it is read, in milliseconds. The core takes two samples at least that far apart. */
  readonly freshness: number
  /**
   * How long the product can hide work that is bound to a member, in milliseconds (HAProxy: a retry in turn-around,
   * 1,100). Arrivals must stay unchanged for at least that long.
   */
  readonly blind: number
  /** How long the product can still execute a call after it was given up, in milliseconds. */
  readonly lateBound: number
  /** Whether admin states survive a reload of the product: for the contract suite alone. Default: not stated. */
  readonly survivesReload?: boolean
  /**
   * Whether load can still be read after the member is removed. If `true`, the provider lists every process for an
   * absent member too, with zeros if the process never had work for it. A process that is not listed is unread, and
   * the drain of a member that vanishes ends only once every process has been read as idle or has ended. If `false`,
   * the core reports the work of an absent member in unlisted processes as lost.
   */
  readonly countsAfterRemove: boolean
  /** The product's own fixed delay, in milliseconds: a shorter `timeout` can't succeed. */
  readonly minTimeout?: number
  /** Shortest pause between two calls of `observe`, in milliseconds. */
  readonly minInterval?: number
}

/** The product that a provider talks to. */
export interface ProviderInfo {
  /** The product's name, such as `haproxy`. */
  readonly product: string
  readonly version: string
  readonly capabilities: Capabilities
  /** What a person should know of this balancer before a member is taken out, each in one sentence: `plan()` says it. */
  readonly hints?: readonly string[]
}

/** The work that one process holds for one member. */
export interface LoadScope {
  /** The name of the process: a worker, a unit, a node, a proxy. Stable while the process lives. */
  readonly scope: string
  /**
   * A text that changes when this process may have lost counters or admin state (HAProxy: node, pid and start time;
   * an appliance: role and boot time).
   */
  readonly incarnation: string
  /** `read`: the numbers are valid. `unread`: it exists but could not be read. `ended`: it is certainly gone. */
  readonly state: 'read' | 'unread' | 'ended'
  /** The earliest moment the numbers can be from, by the call's clock. Readings with the same one are one sample. */
  readonly sampledAt: number
  /** Requests or connections in flight. */
  readonly active: number
  /**
   * How long the oldest of `active` has been in flight, in milliseconds, if the product reports it cheaply. It is
   * shown to people (`why()`, `DRAIN_TIMEOUT`, events) and never part of the proof. HAProxy (`show sess`): read once a
   * server has been drained and busy for 10 s; before 3.0 an HTTP request counts from the end of the previous one on
   * its connection.
   */
  readonly oldest?: number
  /** Requests or connections that wait in the balancer for this member. */
  readonly queued: number
  /**
   * `true`: work can be in neither count for a while (HAProxy: it has left the queue, and its thread is late). A zero is
   * then believed only once it has lasted for max(`settle`, `blind`). Default: false.
   */
  readonly mayHide?: boolean
  /** Reusable connections without work: information only, they do not prevent idle. */
  readonly pooled?: number
  /**
   * Cumulative counter of everything that starts or restarts work (HAProxy: stot + wretr). A decrease counts as a
   * change too. Without it, only `released`, or two zeros from after the member was sealed, verify idle.
   */
  readonly arrivals?: number
  /**
   * Identifies the lifetime in which `arrivals` began at zero (Envoy: the process; Citrix ADC: the boot). Another text:
   * the counter began anew, and all its arrivals are new, even if the figure is the same. Leave it out if the product
   * can carry counters into another lifetime (HAProxy: `stats-file`) or can't tell: then only the figure shows it.
   */
  readonly countersFrom?: string
  /**
   * The state that this process has taken for the member: its own or an inherited one, whichever is higher. The core
   * compares it with the wanted state, which it never tells the provider: in an old worker that stayed at ready or at
   * drain, the hold is not in force. Default: {@link PresentReading.own} applies to this process too.
   */
  readonly admin?: AdminState | 'unknown'
  /**
   * `false`: the last change sent to this process is not in force yet, whatever `admin` says (Envoy: the newest set was not
   * acknowledged, or has no effect yet; Citrix ADC: the numbers are from before the change). It does not compare with the
   * wanted state: `admin` is for that. `true` of an unread one: only its numbers are missing. Default: true if read.
   */
  readonly inForce?: boolean
  /**
   * `false`: no client can reach the member through this process any more, whatever its state (the process accepts no
   * connections, and none is left that could bring another request). Default: a client can.
   */
  readonly open?: boolean
  /**
   * The product's own clock in this process, in milliseconds. It excludes time in which the process did not run
   * (stopped, a paused VM), because hidden work waits by that clock (HAProxy: `Uptime_sec` of `show info float`).
   * Default: the core excludes the time of slow answers instead.
   */
  readonly lived?: number
  /**
   * The product's own word that nothing is attached to the member in this scope. `false`: it will say so, and has not
   * yet (Citrix ADC: TROFS); without arrivals, the drain waits for it until the deadline. Default: it says nothing.
   */
  readonly released?: boolean
  /** A few words for people: why the scope is unread, not in force or less reliable than usual. */
  readonly note?: string
  /**
   * Marks a process that is no longer the current one of this control point (an old worker): its work ends by itself,
   * and it takes no more changes.
   */
  readonly old?: boolean
}

/** A member that is in the configuration. */
export interface PresentReading {
  readonly ref: MemberRef
  readonly present: true
  /**
   * Address, port and the product's id: another identity is another member, even under the same name. Empty while the
   * member has no address (its name does not resolve): it is then taken for the member that was there before, and
   * the next address that is known decides.
   */
  readonly identity: string
  readonly address?: string
  readonly port?: number
  readonly weight?: number
  /**
   * The member's own state, which a provider can change. `unknown`: the product contradicts itself, or reports a
   * state this package does not know.
   */
  readonly own: AdminState | 'unknown'
  /** The state that it inherits (from a tracked server, a node, a server object, DNS). */
  readonly inherited?: AdminState
  /**
   * The state that the product's stored configuration gives the member at the next reload, if that keeps new work
   * away and `restore` can take it back (HAProxy Data Plane API: `weight 0` in the file, while the process runs it as
   * ready). The proof of a drain ignores it. An undo and `ready()` finish only when it is gone: they ask for a
   * `restore` to `ready` even if the member is ready.
   */
  readonly stored?: 'drain' | 'maint'
  /** Whether it would get new, non-persistent work now. */
  readonly serves: boolean
  readonly health: Health
  readonly scopes: readonly LoadScope[]
  /**
   * What maint does to this member's established work, if it can be read; takes precedence over
   * {@link Capabilities.maint}.
   */
  readonly maint?: MaintEffect
  /** The adapter's own data, which it needs for a restore. */
  readonly native?: Json
  /**
   * `true`: the own state counts as sealed although it is not maint (Citrix ADC: OUT OF SERVICE under our own
   * graceful disable). `false`: clients can still come although it is maint (HAProxy: through an old worker that
   * takes no more changes, if the option oldWorkers accepts that). Default: only maint is sealed.
   */
  readonly sealed?: boolean
  /**
   * What this provider can't see of the member's work, in one sentence that names the option or setting that would
   * help. The core then reports idle with `verifiedIdle: false` and this reason.
   */
  readonly unverified?: string
  /**
   * What sets the member's own state besides people, as words for a sentence: `its agent at 10.0.0.1:9000`. Messages
   * name it instead of another client if the state is not the one we set.
   */
  readonly setBy?: string
  /**
   * How long one change of this member takes, in milliseconds, if the product takes changes one after the other. The
   * drain of many members includes it: a `timeout` too short for the changes and the proof is refused. Default: 0.
   */
  readonly changeTime?: number
  /** Hints of the product for people who ask why the member is not idle, such as `3 persistence records`. */
  readonly hints?: readonly string[]
  /** A fault of the balancer's set-up: `plan()` and `why()` say it, also of a member that is drained, held and idle. */
  readonly advice?: Advice
}

/** What is wrong with a balancer's set-up, such as a reload that opened what was drained, and the step that mends it. */
export interface Advice {
  readonly text: string
  readonly hint: string
}

/** A member that is not in the configuration. Its scopes are listed nevertheless: an old worker may still be busy. */
export interface AbsentReading {
  readonly ref: MemberRef
  readonly present: false
  readonly scopes: readonly LoadScope[]
  /** Hints why the member is absent, or where it is instead; the `NOT_FOUND` of a drain quotes them. */
  readonly hints?: readonly string[]
}

/** One member at one moment. */
export type Reading = PresentReading | AbsentReading

/** How many members of a pool would get new work. */
export interface PoolReading {
  readonly pool: string
  readonly balancer?: string
  /** Members that would get new, non-persistent work now. */
  readonly serving: number
  readonly total: number
  /** What the product does when no member serves: refuse, send elsewhere, or use all members. */
  readonly whenNone: 'refuse' | 'spill' | 'all' | 'unknown'
  /** Why it is not known how many serve: `keepReady` then refuses with these words. Default: it is known. */
  readonly unknown?: string
}

/** The result of one {@link DrainableProvider.observe}. */
export interface Snapshot {
  readonly readings: readonly Reading[]
  readonly pools: readonly PoolReading[]
  /**
   * The processes that have ended: their names; or `unlisted`: the product listed every process at this moment (`show
   * proc`, a list of units), so a process that a reading does not list has ended. Without it, a process that is no
   * longer listed is unread, because nothing shows that it is gone. A provider lists what it sees now and need not
   * remember anything: the core knows which processes it has seen for a member, including those from a ticket.
   */
  readonly ended?: readonly string[] | 'unlisted'
}

/** * One requested change of one member. `identity`: a member with another one is not changed. */
export type Change = { readonly ref: MemberRef; readonly identity?: string } & (
  | {
      /** Raises the state, never lowers it: a member found in maint stays there. */
      readonly kind: 'hold'
      readonly to: 'drain' | 'maint'
    }
  | {
      /** Undoes our own change, and only if the member is found in the state `expect`. */
      readonly kind: 'restore'
      readonly expect: AdminState
      readonly to: AdminState
      /** {@link PresentReading.native} from before our first change. */
      readonly native?: Json
    }
  | {
      /** Cuts the work in flight. */
      readonly kind: 'terminate'
    }
  | {
      /** Takes the member out of its pool, without ever opening it in between. */
      readonly kind: 'remove'
    }
  | {
      readonly kind: 'add'
      readonly address: string
      readonly port: number
      readonly weight?: number
      readonly native?: Json
    }
)

/** The result of one change. A refusal is a value, not a throw. */
export type ChangeResult =
  | {
      readonly ref: MemberRef
      /** `unchanged`: the member already had the requested state. */
      readonly status: 'applied' | 'unchanged'
      /** How many requests or connections were cut. */
      readonly terminated?: number
      /** `true`: `terminated` is the load of the last reading before the cut, an upper bound. */
      readonly atMost?: boolean
    }
  | {
      readonly ref: MemberRef
      /** `unknown`: the change may have happened, or may still happen within {@link Capabilities.lateBound}. */
      readonly status: 'rejected' | 'unknown'
      readonly error: DrainableError
    }

/**
 * One control point of a load balancer: the interface between the core and a product.
 *
 * The contract is level-triggered and works on sets: `observe` reads the current state, `apply` asks for the wanted
 * state, and the core compares them. After a throw, a time-out or an abort of `apply`, every change is unknown unless
 * its result was reported with {@link CallContext.result}. Test your own implementation with `providerContract` of
 * `drainable/testing`.
 */
export interface DrainableProvider extends AsyncDisposable {
  readonly specVersion: 1
  /** The kind of provider, such as `haproxy-runtime`. */
  readonly name: string
  /**
   * The balancer's own name, such as `unix:/run/haproxy/admin.sock`: two providers with the same name and instance
   * are the same balancer. No secrets.
   */
  readonly instance: string
  /** Returns product, version and capabilities. */
  describe(ctx: CallContext): Promise<ProviderInfo>
  /**
   * Reads members in one or a few round trips, however many refs are given. Unknown refs come back with `present:
   * false`. A provider that counts never returns a present member without a scope.
   */
  observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot>
  /** Makes changes; returns one result per change, in order. */
  apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]>
  /**
   * Finds the members at an address, if that costs less than a look at everything; called for a target `{ address,
   * port? }`. The core looks at these members next and leaves out those with another address or port. Without a port,
   * one ref can stand for the whole machine (BIG-IP: a node, in every pool). Returns an empty list if nothing is
   * found.
   */
  find?(wanted: AddressTarget, ctx: CallContext): Promise<readonly MemberRef[]>
  /** Pushes snapshots, if the product can push. */
  watch?(refs: readonly MemberRef[], ctx: CallContext): AsyncIterable<Snapshot>
  /**
   * Closes every socket. After that, every call throws `CONNECTION_LOST` with `retryable: false`. No other failure
   * can use that combination: it tells the core that the provider is closed, and the core stops looking.
   */
  close(): Promise<void>
}
